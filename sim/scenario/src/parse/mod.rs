//! Parsing of texts to scenarios.

mod body;
mod fit;
mod function;
mod histories;
mod mixed;
mod modules;
mod node;
mod nodes;
mod reader;
mod rules;
mod snapshot;
mod stack;
mod stop;
mod stops;
pub(crate) mod syntax;
pub(crate) mod tokens;
mod words;

use super::document::{Node, nodes_of_kdl};
use super::error::{ScenarioError, Span};
use super::problem::ProblemKind;
use super::source_map::SourceMap;
use super::{PlacedStack, Scenario, ScenarioThread};
use clr_codegen::{CallingConvention, FunctionIndex};
use clr_runtime::MethodKind;
use kdl::{KdlDocument, KdlError};
use node::Fields;
pub(crate) use reader::FREE_SLOT;
use reader::Reader;
pub(crate) use words::{ALL_SAVED, OWN_FLAGS};

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
            let (scenario, places) = Self::and_places(&nodes)?;
            stops::check(&scenario, &places.stops)?;
            Ok((scenario, SourceMap::of_nodes(&nodes, text)))
        });
        both.map_err(|problems| ScenarioError::new(text, problems))
    }

    /// Reads the nodes of a text.
    pub(super) fn of_nodes(nodes: &[Node<'_>]) -> Result<Self, Problems> {
        Ok(Self::and_places(nodes)?.0)
    }

    fn and_places(nodes: &[Node<'_>]) -> Result<(Self, rules::Places), Problems> {
        let mut reader = Reader::new(nodes);
        let (scenario, places) = reader.scenario(nodes);
        if reader.problems.is_empty() {
            match &scenario.stack {
                Some(stack) => fit::check(stack, &places.stack, &mut reader.problems),
                None => rules::check(&scenario, &places, &mut reader.problems),
            }
        }
        if reader.problems.is_empty() { Ok((scenario, places)) } else { Err(reader.problems) }
    }
}

type Problems = Vec<(Span, ProblemKind)>;

/// Parses a text as KDL. The syntax is checked first: it bounds the parser's time and stack.
pub(super) fn read(text: &str) -> Result<Vec<Node<'_>>, Problems> {
    let tokens = syntax::check(text).map_err(|errors| -> Problems {
        errors.into_iter().map(|(span, error)| (span, error.into())).collect()
    })?;
    if let Some(nodes) = nodes::of_tokens(text, &tokens) {
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

impl Reader {
    fn scenario(&mut self, nodes: &[Node<'_>]) -> (Scenario, rules::Places) {
        let mut scenario = Scenario::default();
        let mut places = rules::Places::default();
        let (mut stack, mut snapshots, mut mixed_walks) = (None, Vec::new(), Vec::new());
        for fields in self.nodes(nodes, super::grammar::Level::Text) {
            let name = fields.rule.name;
            match name {
                "shows" => scenario.about.shows = Some(fields.arg_text().to_owned()),
                "tag" => scenario.about.tags = fields.arg_texts(),
                "module" => {
                    let module = self.module(&fields);
                    scenario.modules.push(module);
                    continue;
                }
                "stack" => {
                    stack = Some(self.stack(&fields, &mut places.stack));
                    continue;
                }
                "snapshot" => {
                    snapshots.push(self.snapshot(&fields));
                    places.stack.snapshots.push(fields.span());
                    continue;
                }
                "mixed-walk" => {
                    mixed_walks.push(self.mixed_walk(&fields));
                    places.stack.mixed_walks.push(fields.span());
                    continue;
                }
                "profiler" => {
                    scenario.profiler = Some(self.profiler(&fields));
                    places.profiler = fields.span();
                }
                "explore" => {
                    scenario.explore.push(self.explore(&fields));
                }
                "hooks" => scenario.hooks = fields.arg_term(),
                "stop-threads" => scenario.stop_by = fields.arg_term(),
                "signal-stack" => scenario.program.signal_stack = fields.arg_number(),
                "convention" => {
                    scenario.program.convention = fields.arg_term::<CallingConvention>();
                }
                "function" => {
                    let (function, export, place) = self.function(&fields);
                    let id = FunctionIndex(scenario.program.functions.len() as u32);
                    // The default that is written out is the same as none.
                    let method = fields.term::<MethodKind>("method");
                    let method = method.filter(|method| *method != MethodKind::Ordinary);
                    scenario.methods.extend(method.map(|method| (id, method)));
                    scenario.exports.extend(export.map(|export| (id, export)));
                    scenario.program.functions.push(function);
                    places.functions.push(place);
                }
                "interrupt" => {
                    scenario.program.interrupts.push(interrupt(&fields));
                    places.interrupts.push(fields.span());
                }
                "thread" => {
                    let name = fields.arg_text().to_owned();
                    let start = fields.function("start").unwrap_or_default();
                    let gc = fields.flag("gc").unwrap_or_default();
                    let exits = fields.flag("exits").unwrap_or_default();
                    scenario.threads.push(ScenarioThread { name, start, gc, exits });
                    places.threads.push(fields.span());
                }
                _ => {
                    let stop = self.stop(&fields, &scenario.stops);
                    scenario.stops.push(stop);
                    places.stops.push(fields.span());
                }
            }
            if !matches!(name, "shows" | "tag") {
                places.program.get_or_insert((name, fields.span()));
            }
        }
        if let Some(items) = stack {
            if let Some((name, span)) = places.program {
                self.problem(span, ProblemKind::Excluded("stack", name));
            }
            scenario.stack = Some(PlacedStack { items, snapshots, mixed_walks });
            return (scenario, places);
        }
        for span in places.stack.snapshots.iter().chain(&places.stack.mixed_walks) {
            self.problem(*span, ProblemKind::SnapshotOfNothing);
        }
        if scenario.threads.is_empty() {
            scenario.threads.push(ScenarioThread::main());
            places.threads.push(Span::default());
        }
        (scenario, places)
    }
}

fn interrupt(fields: &Fields<'_>) -> clr_codegen::Interrupt {
    clr_codegen::Interrupt {
        after: fields.number("after").unwrap_or_default(),
        handler: fields.function("handler").unwrap_or_default(),
    }
}
