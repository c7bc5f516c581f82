//! Errors of commands, and how they are printed.

use crate::render::console::BAD;
use crate::render::wrap::WIDTH;
use clr_scenario::{Problem, ScenarioError};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, ThemeCharacters, ThemeStyles};
use std::fmt::{self, Display};
use std::io;

/// The reason why a command cannot do what it was asked, with the name of the input.
#[derive(Debug)]
pub(crate) enum CliError {
    /// An error without a place in a text.
    Text(String),
    /// Problems with places in a text.
    Scenario(Box<ScenarioError>),
}

impl CliError {
    /// Creates the error `problem` of the input called `name`.
    pub(crate) fn new(name: &str, problem: impl Display) -> Self {
        Self::Text(format!("{name}: {problem}"))
    }

    /// Returns the text that is printed for the error. `terminal` is true if lines may be drawn with
    /// characters beyond ASCII.
    pub(crate) fn render(&self, terminal: bool) -> String {
        match self {
            Self::Text(text) => format!("{BAD}error:{BAD:#} {text}\n"),
            Self::Scenario(error) => {
                let problems = drawn(error, terminal);
                format!("{BAD}error:{BAD:#} this is no scenario\n{problems}\n")
            }
        }
    }
}

/// The error has the name of its file.
impl From<ScenarioError> for CliError {
    fn from(error: ScenarioError) -> Self {
        Self::Scenario(Box::new(error))
    }
}

impl Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Scenario(error) => error.fmt(f),
        }
    }
}

/// Only output makes an error of its own accord; a failed read is told with the name of the file.
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        Self::Text(format!("the output cannot be written: {}", error.kind()))
    }
}

/// The problems of a text in their places. Lines are drawn with ASCII where there is no terminal.
fn drawn(error: &ScenarioError, terminal: bool) -> String {
    let characters = if terminal { ThemeCharacters::unicode() } else { ThemeCharacters::ascii() };
    let theme = GraphicalTheme { characters, styles: ThemeStyles::ansi() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(WIDTH).with_links(false);
    let mut text = String::new();
    for problem in error.problems() {
        let unplaced = Unplaced(problem);
        let shown: &dyn Diagnostic = if can_be_drawn(problem) { problem } else { &unplaced };
        if handler.render_report(&mut text, shown).is_err() {
            return error.to_string();
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// The longest line of a text that is shown: nobody reads longer ones, and what points to a column
/// beyond the 65,535th cannot be written.
const LINE_LIMIT: usize = 400;

/// Whether the lines around a problem are short enough to be shown.
fn can_be_drawn(problem: &Problem) -> bool {
    let Some(source) = problem.source_code() else { return true };
    let Ok(shown) = source.read_span(&problem.span.into(), 1, 1) else { return true };
    shown.data().split(|byte| *byte == b'\n').all(|line| line.len() <= LINE_LIMIT)
}

/// A problem without the lines of its text. The message names the place all the same.
#[derive(Debug)]
struct Unplaced<'p>(&'p Problem);

impl Display for Unplaced<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Unplaced<'_> {}

impl Diagnostic for Unplaced<'_> {
    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        self.0.help()
    }
}
