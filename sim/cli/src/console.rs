//! Where output goes, and how trouble is told.

use anstyle::{AnsiColor, Style};
use clr_scenario::{Problem, ScenarioError};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, ThemeCharacters, ThemeStyles};
use std::fmt::{self, Display};
use std::io::{self, ErrorKind, Write};

/// What is wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What is right.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// What the eye should find first.
pub(crate) const HEAD: Style = Style::new().bold();
/// What is less important than the rest.
pub(crate) const DIM: Style = Style::new().dimmed();

/// The streams of a command. Colours are written always; the streams strip them where need be.
pub(crate) struct Console<'w> {
    /// For the answer.
    pub(crate) out: &'w mut dyn Write,
    /// For errors.
    pub(crate) err: &'w mut dyn Write,
    /// Whether progress may be drawn on the terminal.
    pub(crate) progress: bool,
}

impl Console<'_> {
    /// Tells of trouble. If even that cannot be written, the exit code has to do.
    pub(crate) fn complain(&mut self, trouble: &Trouble) {
        let _: io::Result<()> = match &trouble.0 {
            What::Text(text) => writeln!(self.err, "{BAD}error:{BAD:#} {text}"),
            What::Scenario(error) => {
                let error = drawn(error, self.progress);
                writeln!(self.err, "{BAD}error:{BAD:#} this is no scenario\n{error}")
            }
        };
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

/// How wide problems of a text are drawn, as wide as the help.
const WIDTH: usize = 100;

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

/// Why a command cannot do what it was asked: names the input, and says what to do.
#[derive(Debug)]
pub(crate) struct Trouble(What);

#[derive(Debug)]
enum What {
    Text(String),
    /// Problems that have places in a text.
    Scenario(Box<ScenarioError>),
}

impl Trouble {
    /// `what` is wrong with the input called `name`.
    pub(crate) fn with(name: &str, what: impl Display) -> Self {
        Self(What::Text(format!("{name}: {what}")))
    }
}

/// The error has the name of its file.
impl From<ScenarioError> for Trouble {
    fn from(error: ScenarioError) -> Self {
        Self(What::Scenario(Box::new(error)))
    }
}

impl Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            What::Text(text) => f.write_str(text),
            What::Scenario(error) => error.fmt(f),
        }
    }
}

/// Only output makes an error of its own accord; a failed read is told with the name of the file.
impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self(What::Text(format!("the output cannot be written: {}", error.kind())))
    }
}

/// A stream whose reader may go away, as `head` does: what it does not want is dropped, and the
/// exit code is still right.
pub(crate) struct Quiet<W> {
    inner: W,
    closed: bool,
}

impl<W> Quiet<W> {
    /// Writes to `inner` as long as somebody reads.
    pub(crate) const fn new(inner: W) -> Self {
        Self { inner, closed: false }
    }
}

impl<W: Write> Write for Quiet<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed {
            return Ok(bytes.len());
        }
        match self.inner.write(bytes) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(bytes.len())
            }
            result => result,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        match self.inner.flush() {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            result => result,
        }
    }
}
