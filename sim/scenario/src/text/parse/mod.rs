//! Parsing of texts to scenarios.

mod document;
mod fit;
mod order;
mod rules;
mod stops;
pub(crate) mod syntax;
pub(crate) mod tokens;

use crate::Scenario;
use crate::text::codec::Reader;
use crate::text::document::{Node, named, nodes_of_kdl};
use crate::text::error::{ScenarioError, Span};
use crate::text::problem::ProblemKind;
use crate::text::source_map::SourceMap;
use kdl::{KdlDocument, KdlError};

impl Scenario {
    /// Parses a text.
    ///
    /// # Errors
    /// Returns [`ScenarioError`] with all problems of the text's nodes; if there are none, with the
    /// first rule that the program violates. If the text is not KDL, only the syntax errors are
    /// reported.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let scenario = read(text).and_then(|nodes| Self::of_nodes(&nodes));
        scenario.map_err(|problems| ScenarioError::new(text, problems))
    }

    /// Parses a text, and finds the positions of its stops, calls and expectations. The program is
    /// linked, to check that stops name instructions that exist.
    ///
    /// # Errors
    /// Returns what [`Scenario::parse`] returns, and stops at instructions that their functions lack
    /// on every generation.
    pub fn parse_with_places(text: &str) -> Result<(Self, SourceMap), ScenarioError> {
        let both = read(text).and_then(|nodes| {
            let scenario = Self::of_nodes(&nodes)?;
            let spans: Vec<_> = named(&nodes, "stop").map(|stop| stop.name.span).collect();
            stops::check(&scenario, &spans)?;
            Ok((scenario, SourceMap::of_nodes(&nodes, text)))
        });
        both.map_err(|problems| ScenarioError::new(text, problems))
    }

    /// Reads the nodes of a text.
    pub(crate) fn of_nodes(nodes: &[Node<'_>]) -> Result<Self, Problems> {
        let mut reader = Reader::new(nodes);
        let mut scenario = Self::default();
        crate::text::nodes::text(&mut scenario, &mut reader);
        let mut problems = reader.problems;
        order::check(&mut scenario, nodes, &mut problems);
        if problems.is_empty() {
            match &scenario.stack {
                Some(stack) => fit::check(stack, nodes, &mut problems),
                None => rules::check(&scenario, nodes, &mut problems),
            }
        }
        if problems.is_empty() { Ok(scenario) } else { Err(problems) }
    }
}

impl core::str::FromStr for Scenario {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        Self::parse(text)
    }
}

type Problems = Vec<(Span, ProblemKind)>;

/// Parses a text as KDL. The syntax is checked first: it bounds the parser's time and stack.
pub(crate) fn read(text: &str) -> Result<Vec<Node<'_>>, Problems> {
    let tokens = syntax::check(text).map_err(|errors| -> Problems {
        errors.into_iter().map(|(span, error)| (span, error.into())).collect()
    })?;
    if let Some(nodes) = document::of_tokens(text, &tokens) {
        return Ok(nodes);
    }
    let document = KdlDocument::parse_v2(text).map_err(|error| kdl_problems(&error, text))?;
    Ok(nodes_of_kdl(&document))
}

/// Converts the errors that the KDL parser reports although the syntax check passed.
fn kdl_problems(error: &KdlError, text: &str) -> Problems {
    let problem = |span: Span, message: Option<&str>| {
        let start = span.offset.min(text.len());
        let span = Span::between(start, span.end().min(text.len()));
        (span, ProblemKind::Kdl(message.unwrap_or("this is not KDL").to_owned()))
    };
    let mut problems: Vec<_> = error
        .diagnostics
        .iter()
        .map(|diagnostic| problem(diagnostic.span.into(), diagnostic.message.as_deref()))
        .collect();
    if problems.is_empty() {
        problems.push(problem(Span::default(), None));
    }
    problems
}
