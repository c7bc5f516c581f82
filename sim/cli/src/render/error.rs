//! Errors of commands, and how they are printed.

use crate::render::console::BAD;
use crate::render::style::marked;
use crate::render::wrap::{width, wrapped};
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use clr_explore::visible;
use clr_scenario::{Problem, ProblemKind, ScenarioError};
use miette::{Diagnostic as _, SourceCode, SourceSpan};
use serde::Serialize;
use std::fmt::{self, Display};
use std::io;
use std::ops::Range;

/// The reason why a command cannot do what it was asked, with the name of the input.
#[derive(Debug)]
pub(crate) enum CliError {
    /// An error without a place in a text.
    Text(String),
    /// An error of an input or an output.
    Input {
        /// The name of the file, or of the argument.
        name: String,
        problem: String,
        code: &'static str,
    },
    /// Problems with places in a text.
    Scenario(Box<ScenarioError>),
}

impl CliError {
    /// Creates the error `problem` of the input called `name`.
    pub(crate) fn new(name: &str, problem: impl Display) -> Self {
        Self::Input { name: name.to_owned(), problem: problem.to_string(), code: INPUT }
    }

    /// Sets the code of an error of an input.
    pub(crate) fn with_code(self, code: &'static str) -> Self {
        match self {
            Self::Input { name, problem, .. } => Self::Input { name, problem, code },
            other => other,
        }
    }

    /// Returns the text that is printed for the error. `terminal` is true if lines may be drawn with
    /// characters beyond ASCII.
    pub(crate) fn render(&self, terminal: bool) -> String {
        match self {
            Self::Scenario(error) => match error.problems() {
                [problem] if matches!(problem.kind, ProblemKind::Foreign | ProblemKind::Empty) => {
                    let help = problem.kind.help().unwrap_or_default();
                    format!("{BAD}error:{BAD:#} {problem}; {help}\n")
                }
                _ => {
                    let problems = problems(error, terminal);
                    format!("{BAD}error:{BAD:#} this text is not a scenario\n{problems}\n")
                }
            },
            other => format!("{BAD}error:{BAD:#} {other}\n"),
        }
    }

    /// Returns the error as objects, one for each problem.
    pub(crate) fn diagnostics(&self) -> Vec<Diagnostic> {
        match self {
            Self::Text(text) => vec![Diagnostic::new(None, OTHER, text.clone())],
            Self::Input { name, problem, code } => {
                vec![Diagnostic::new(Some(name.clone()), code, problem.clone())]
            }
            Self::Scenario(error) => error.problems().iter().map(Diagnostic::of).collect(),
        }
    }
}

/// The code of errors of inputs that have no other.
const INPUT: &str = "input";
/// The code of errors that are not of an input.
const OTHER: &str = "other";

/// The code of arguments that are wrong.
const USAGE: &str = "usage";

/// Codes of errors beside [`ProblemKind::CODES`].
#[cfg(test)]
pub(crate) const CODES: [&str; 8] =
    [INPUT, OTHER, USAGE, "checks-nothing", "file-exists", "is-input", "not-found", "renamed"];

/// An error as an object of JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Diagnostic {
    kind: &'static str,
    severity: &'static str,
    /// The name of the file, or of the argument.
    file: Option<String>,
    /// The place in the file, from 1.
    line: Option<u32>,
    column: Option<u32>,
    /// Length of the text in characters that the problem is about.
    length: Option<usize>,
    code: &'static str,
    message: String,
    help: Option<String>,
}

impl Diagnostic {
    /// Creates the description of an error without a place.
    pub(crate) const fn new(file: Option<String>, code: &'static str, message: String) -> Self {
        let (line, column, length, help) = (None, None, None, None);
        let (kind, severity) = ("diagnostic", "error");
        Self { kind, severity, file, line, column, length, code, message, help }
    }

    /// Creates the description of wrong arguments: of what clap says, the first paragraph.
    pub(crate) fn usage(said: &str, help: Option<String>) -> Self {
        let paragraph = said.split("\n\n").next().unwrap_or_default();
        let paragraph = paragraph.strip_prefix("error: ").unwrap_or(paragraph);
        let message = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        Self { help, ..Self::new(None, USAGE, message) }
    }

    /// Creates the description of a problem of a text.
    fn of(problem: &Problem) -> Self {
        let file = problem.file_name().map(str::to_owned);
        Self {
            line: Some(problem.position.line),
            column: Some(problem.position.column),
            length: Some(problem.text().chars().count()),
            help: problem.advice(),
            ..Self::new(file, problem.kind.code(), problem.kind.to_string())
        }
    }
}

/// Converts the problems of a text, which name their file.
impl From<ScenarioError> for CliError {
    fn from(error: ScenarioError) -> Self {
        Self::Scenario(Box::new(error))
    }
}

impl Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            // A name may have a line end, and the rest would look like a line of ours.
            Self::Input { name, problem, .. } => write!(f, "{}: {problem}", visible(name)),
            Self::Scenario(error) => error.fmt(f),
        }
    }
}

/// Converts an error of the output; errors of inputs are created with the name of the file.
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        Self::Text(format!("the output cannot be written: {}", error.kind()))
    }
}

/// Returns the problems with their places in the text. `unicode` is true if lines may be drawn with
/// characters beyond ASCII.
fn problems(error: &ScenarioError, unicode: bool) -> String {
    let style = if unicode { DecorStyle::Unicode } else { DecorStyle::Ascii };
    let renderer = Renderer::styled().decor_style(style).term_width(width());
    let shown = error.problems().iter().take(MOST_PROBLEMS);
    let mut texts: Vec<_> = shown.map(|problem| text(problem, &renderer)).collect();
    if let more @ 1.. = error.problems().len().saturating_sub(MOST_PROBLEMS) {
        texts.push(format!("{more} more problems are not shown"));
    }
    texts.join("\n")
}

/// Maximum number of problems of a text that are shown.
const MOST_PROBLEMS: usize = 20;

/// Most lines of a text that are shown of one problem.
const MOST_LINES: usize = 12;

/// Longest line of a text that is shown, in bytes: longer ones are not written by hand.
const LINE_LIMIT: usize = 400;

/// Indentation of a help text: "help: " after the column of line numbers.
const HELP_INDENT: usize = 14;

fn text(problem: &Problem, renderer: &Renderer) -> String {
    let help = problem
        .help()
        .map(|help| wrapped(&visible(&help.to_string()), width() - HELP_INDENT).join("\n"));
    let help = help.map(|help| Level::HELP.message(help));
    let excerpt = problem.source_code().and_then(|source| Excerpt::new(source, problem));
    // The renderer shows what controls a terminal in excerpts alone.
    let titled =
        |title: String| Level::ERROR.primary_title(visible(&title)).id(problem.kind.code());
    let group = match &excerpt {
        Some(excerpt) => {
            let label = problem.labels().and_then(|mut labels| labels.next());
            let label = label.and_then(|label| label.label().map(visible));
            let annotation = AnnotationKind::Primary.span(excerpt.span.clone()).label(label);
            let snippet = Snippet::source(&excerpt.text)
                .line_start(excerpt.line)
                .path(excerpt.path.as_deref())
                .fold(false)
                .annotation(annotation);
            titled(problem.kind.to_string()).element(snippet)
        }
        None => Group::with_title(titled(problem.to_string())),
    };
    let group = match help {
        Some(help) => group.element(help),
        None => group,
    };
    marked(&renderer.render(&[group]))
}

/// The line of a problem, with the lines before and after it.
struct Excerpt {
    path: Option<String>,
    /// Number of the first line, from 1.
    line: usize,
    text: String,
    /// Range of the problem in the excerpt, in bytes.
    span: Range<usize>,
}

impl Excerpt {
    /// Returns `None` if the lines are too long to be shown, or are none of the text.
    fn new(source: &dyn SourceCode, problem: &Problem) -> Option<Self> {
        let whole = source.read_span(&problem.span.into(), 0, 0).ok()?;
        let ends = whole.data().iter().filter(|byte| **byte == b'\n');
        let span = if ends.count() < MOST_LINES { problem.span.len } else { 0 };
        let span = SourceSpan::new(problem.span.offset.into(), span);
        let lines = source.read_span(&span, 1, 1).ok()?;
        if lines.data().split(|byte| *byte == b'\n').any(|line| line.len() > LINE_LIMIT) {
            return None;
        }
        let text = std::str::from_utf8(lines.data()).ok()?;
        let start = problem.span.offset.checked_sub(lines.span().offset())?;
        // U+FEFF at the start of a text marks the encoding and has no column.
        let shown =
            if lines.span().offset() == 0 { text.trim_start_matches('\u{FEFF}') } else { text };
        let start = start.saturating_sub(text.len() - shown.len());
        let end = start.saturating_add(span.len()).min(shown.len());
        Some(Self {
            path: lines.name().map(visible),
            line: lines.line() + 1,
            text: shown.to_owned(),
            span: start.min(end)..end,
        })
    }
}
