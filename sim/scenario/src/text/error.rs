//! The error of a text: a list of problems with their positions.

use crate::text::grammar::Level;
use crate::text::problem::ProblemKind;
use core::fmt;
use miette::{
    Diagnostic, LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents,
};
use std::sync::Arc;

/// A part of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Start offset in bytes.
    pub offset: usize,
    /// Length in bytes.
    pub len: usize,
}

impl Span {
    /// Creates the span from one offset to another.
    #[must_use]
    pub(crate) const fn between(start: usize, end: usize) -> Self {
        Self { offset: start, len: end.saturating_sub(start) }
    }

    /// Returns the offset after the last byte.
    #[must_use]
    pub const fn end(self) -> usize {
        self.offset.saturating_add(self.len)
    }
}

impl From<SourceSpan> for Span {
    fn from(span: SourceSpan) -> Self {
        Self { offset: span.offset(), len: span.len() }
    }
}

impl From<Span> for SourceSpan {
    fn from(span: Span) -> Self {
        Self::new(span.offset.into(), span.len)
    }
}

/// A position in a text, as line and column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineColumn {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl LineColumn {
    /// Returns the position of a byte. Offsets past the end count as the end of the text.
    #[must_use]
    pub fn of(text: &str, offset: usize) -> Self {
        let offset = (0..=offset.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        let before = &text[..offset.unwrap_or(0)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        // U+FEFF at the start marks the encoding and is no character of the line.
        let line = before[line_start..].chars().filter(|c| *c != '\u{FEFF}');
        Self { line: before.matches('\n').count() as u32 + 1, column: line.count() as u32 + 1 }
    }
}

impl fmt::Display for LineColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A text with the name of its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Source {
    name: Option<String>,
    text: String,
}

impl SourceCode for Source {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let contents = self.text.read_span(span, before, after)?;
        let Some(name) = &self.name else { return Ok(contents) };
        Ok(Box::new(MietteSpanContents::new_named(
            name.clone(),
            contents.data(),
            *contents.span(),
            contents.line(),
            contents.column(),
            contents.line_count(),
        )))
    }
}

/// Returns true if a text with these problems was not written as a scenario: no line begins with one of
/// the outermost nodes, or hardly any in a text that is not even KDL.
fn is_foreign(text: &str, problems: &[(Span, ProblemKind)]) -> bool {
    let is_node = |line: &&str| {
        let line = line.trim_start_matches("/-");
        let rest = Level::Text.nodes().iter().find_map(|node| line.strip_prefix(node.name));
        rest.is_some_and(|rest| rest.starts_with([' ', '\t', '{', ';', '\r']) || rest.is_empty())
    };
    let nodes = text.lines().filter(is_node).count();
    let is_kdl = !matches!(problems.first(), Some((_, ProblemKind::Syntax(_))));
    nodes == 0 || !is_kdl && nodes.saturating_mul(ScenarioError::LINES_OF_NODE) < problems.len()
}

/// The reasons why a text is not a scenario. `Display` prints one line for each problem, as
/// compilers do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScenarioError {
    source: Arc<Source>,
    problems: Vec<Problem>,
}

impl ScenarioError {
    /// Creates the error from problems in any order. At most [`ScenarioError::LIMIT`] are kept.
    pub(crate) fn new(text: &str, mut found: Vec<(Span, ProblemKind)>) -> Self {
        let source = Arc::new(Source { name: None, text: text.to_owned() });
        found.sort_by_key(|(span, _)| span.offset);
        if found.len() > Self::MOST_OF_FOREIGN && is_foreign(text, &found) {
            let start = found.first().map_or(0, |(span, _)| span.offset);
            found = vec![(Span::between(start, start), ProblemKind::Foreign)];
        }
        found.truncate(Self::LIMIT);
        let problems = found.into_iter().map(|(span, kind)| Problem {
            source: Arc::clone(&source),
            span,
            position: LineColumn::of(text, span.offset),
            kind,
        });
        Self { problems: problems.collect(), source }
    }

    /// Maximum number of problems reported: a text with more is not a scenario at all.
    pub const LIMIT: usize = 100;

    /// Maximum number of problems that a text without any known node has, each with a place: with
    /// more it was not written as a scenario.
    const MOST_OF_FOREIGN: usize = 4;

    /// Number of problems for each outermost node with which a text that is not KDL was not written as
    /// a scenario.
    const LINES_OF_NODE: usize = 20;

    /// Adds the name of the text's file, for messages.
    #[must_use]
    pub fn with_name(self, name: impl Into<String>) -> Self {
        let source = Source { name: Some(name.into()), text: self.source.text.clone() };
        let source = Arc::new(source);
        let problems = self
            .problems
            .into_iter()
            .map(|problem| Problem { source: Arc::clone(&source), ..problem })
            .collect();
        Self { source, problems }
    }

    /// Returns the problems, at least one, in the order of the text.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ScenarioError {}

impl ScenarioError {
    /// Returns the problem if there is only one, which needs no list.
    fn only(&self) -> Option<&Problem> {
        match self.problems.as_slice() {
            [problem] => Some(problem),
            _ => None,
        }
    }
}

/// A single problem is shown directly; several are shown one after the other as related
/// diagnostics.
impl Diagnostic for ScenarioError {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&*self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.only()?.labels()
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.only()?.help()
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        if self.only().is_some() {
            return None;
        }
        Some(Box::new(self.problems.iter().map(|problem| problem as &dyn Diagnostic)))
    }
}

/// A single problem with its position. `Display` starts with line and column.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    source: Arc<Source>,
    /// Source range of the problem.
    pub span: Span,
    /// Start of the source range.
    pub position: LineColumn,
    /// Kind of the problem.
    pub kind: ProblemKind,
}

impl Problem {
    /// Returns the name of the text's file, if it is known.
    #[must_use]
    pub fn file_name(&self) -> Option<&str> {
        self.source.name.as_deref()
    }

    /// Returns the part of the text that the problem is about.
    #[must_use]
    pub fn text(&self) -> &str {
        self.source.text.get(self.span.offset..self.span.end()).unwrap_or_default()
    }

    /// Returns the part of the text before the problem.
    pub(crate) fn before(&self) -> &str {
        self.source.text.get(..self.span.offset).unwrap_or_default()
    }

    /// Returns the whole text.
    pub(crate) fn source_text(&self) -> &str {
        &self.source.text
    }

    /// Returns what the text has at the problem up to the next blank, brace, or `;`, from the last one on.
    pub(crate) fn word(&self) -> &str {
        let ends = |c: char| c.is_whitespace() || matches!(c, '{' | '}' | ';' | '=');
        let (before, rest) =
            self.source.text.split_at_checked(self.span.offset).unwrap_or_default();
        let start = before
            .rfind(ends)
            .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
        let end = self.span.offset + rest.find(ends).unwrap_or(rest.len());
        self.source.text.get(start..end).unwrap_or_default()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.source.name {
            write!(f, "{name}:")?;
        }
        write!(f, "{}: {}", self.position, self.kind)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&*self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::new_with_span(Some(self.kind.label().to_owned()), self.span);
        Some(Box::new(core::iter::once(label)))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.advice()?))
    }
}
