//! Writes into a text what walks found where its program stops, in place of expectations that were not
//! met.

use super::Scenario;
use super::bless::{apply, end_of, indentation};
use super::error::ScenarioError;
use super::expect::{Expectation, ExpectedFrame, WalkEnd};
use super::format::expectation_text;
use super::parse::tokens::Tokens;
use super::places::{inside, named};
use super::run::StopReport;
use super::walk::FoundWalk;
use kdl::{KdlDocument, KdlNode};

/// The text with the `expect` nodes of stops rewritten where `reports` tell that they were not met.
/// All other bytes stay as they are. A node keeps its rules, asks for no more of a frame than it did,
/// and for no more frames if it does not matter how the walk ends.
///
/// What a walk by precise rules finds beside the truth is a mistake of the walk: it is not written.
///
/// # Errors
/// [`ScenarioError`] if the text is no scenario.
pub fn bless_walks(text: &str, reports: &[StopReport]) -> Result<String, ScenarioError> {
    let scenario = Scenario::parse(text)?;
    let Ok(document) = KdlDocument::parse_v2(text) else { return Ok(text.to_owned()) };
    let tokens: Vec<_> = Tokens::new(text).collect();
    let nodes: Vec<&KdlNode> = named(document.nodes(), "stop").collect();
    let mut edits = Vec::new();
    for report in reports {
        let Ok(reached) = &report.reached else { continue };
        let Some(stop) = scenario.stops.get(report.stop) else { continue };
        let Some(node) = nodes.get(report.stop) else { continue };
        let places = named(inside(node), "expect").map(|node| node.name().span().offset());
        for ((old, walk), start) in stop.expect.iter().zip(&reached.walks).zip(places) {
            if walk.differences.is_empty() || walk.untrue.is_some() {
                continue;
            }
            let depth = indentation(text, start).len() / 4;
            let new = expectation_text(&scenario, &blessed(old, &walk.found), depth);
            edits.push((start..end_of(&tokens, start), new));
        }
    }
    Ok(apply(text, edits))
}

/// What is expected of a walk now.
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
