//! Blessing of walks: rewriting unmet expectations of stops with the frames found.

use crate::Scenario;
use crate::model::{Expectation, ExpectedFrame, WalkEnd};
use crate::run::bare::StopReport;
use crate::run::bless::{apply, end_of, indentation};
use crate::run::walk::FoundWalk;
use crate::text::codec::text_of;
use crate::text::document::{Node, named};
use crate::text::error::ScenarioError;
use crate::text::nodes::expectation;
use crate::text::parse;
use crate::text::parse::tokens::Tokens;

/// Rewrites the `expect` nodes of stops that are not met according to `reports`. All other bytes
/// stay as they are. A node keeps its rules. It does not state more about a frame than before, nor
/// more frames if its `ends` is `any`.
///
/// A difference between a walk by precise rules and the shadow stack is a bug of the unwinder: it
/// is not written.
///
/// # Errors
/// Returns [`ScenarioError`] if the text is not a scenario.
pub(super) fn bless(text: &str, reports: &[StopReport]) -> Result<String, ScenarioError> {
    let scenario = Scenario::parse(text)?;
    let Ok(nodes) = parse::read(text) else { return Ok(text.to_owned()) };
    let tokens: Vec<_> = Tokens::new(text).collect();
    let nodes: Vec<&Node<'_>> = named(&nodes, "stop").collect();
    let mut edits = Vec::new();
    for report in reports {
        let Ok(reached) = &report.reached else { continue };
        let Some(stop) = scenario.stops.get(report.stop) else { continue };
        let Some(node) = nodes.get(report.stop) else { continue };
        let places = named(node.children(), "expect").map(|node| node.name.span.offset);
        for ((old, walk), start) in stop.expect.iter().zip(&reached.walks).zip(places) {
            if walk.differences.is_empty() || walk.shadow_stack_difference.is_some() {
                continue;
            }
            let depth = indentation(text, start).len() / 4;
            let new = text_of(&scenario, depth, "expect", &blessed(old, &walk.found), expectation);
            edits.push((start..end_of(&tokens, start), new));
        }
    }
    Ok(apply(text, edits))
}

/// Returns the new expectation of a walk.
fn blessed(old: &Expectation, found: &FoundWalk) -> Expectation {
    let is_any = old.ends == WalkEnd::Any;
    let count = if is_any { old.frames.len() } else { found.frames.len() };
    let all_trust = old.frames.iter().any(|frame| frame.trust.is_some());
    let frames = found.frames.iter().take(count).enumerate().map(|(index, found)| {
        let before = old.frames.get(index);
        let wants_trust = before.map_or(all_trust, |frame| frame.trust.is_some());
        let registers = before.map_or(&[][..], |frame| &frame.registers);
        let value = |register| (register, found.registers.get(register));
        ExpectedFrame {
            function: found.function,
            trust: found.trust.filter(|_| wants_trust),
            registers: registers.iter().map(|(register, _)| value(*register)).collect(),
        }
    });
    Expectation {
        rules: old.rules,
        frames: frames.collect(),
        ends: if is_any { WalkEnd::Any } else { found.end.kind() },
    }
}
