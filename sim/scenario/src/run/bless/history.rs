//! Blessing of histories: updating the schedule strings of a text.

use crate::Scenario;
use crate::model::{ExpectedEnd, ExpectedHistory};
use crate::run::bless::{apply, end_of, indentation};
use crate::run::exploration::{Explored, HistoryDifference};
use crate::text::codec::text_of;
use crate::text::document::{Node, named};
use crate::text::error::ScenarioError;
use crate::text::nodes::expected_history;
use crate::text::parse;
use crate::text::parse::tokens::Tokens;

/// Updates the schedule string of each expectation whose search failed as expected. It is written
/// if all generations of the expectation have the same string, and the text has none or an outdated
/// one. All other bytes stay as they are. The result that a search should have is for people to
/// decide.
///
/// # Errors
/// Returns [`ScenarioError`] if the text is not a scenario.
pub(super) fn bless(text: &str, explored: &[Explored]) -> Result<String, ScenarioError> {
    let scenario = Scenario::parse(text)?;
    let Ok(nodes) = parse::read(text) else { return Ok(text.to_owned()) };
    let tokens: Vec<_> = Tokens::new(text).collect();
    let nodes = named(&nodes, "explore");
    let mut edits = Vec::new();
    for ((index, explore), node) in scenario.explore.iter().enumerate().zip(nodes) {
        let of = |node: &Node<'_>| node.name.span.offset;
        let places = named(node.children(), "expect").map(of);
        for ((place, old), start) in explore.expect.iter().enumerate().zip(places) {
            let of_it = |it: &&Explored| (it.explore, it.expected) == (index, place);
            let made: Vec<_> = explored.iter().filter(of_it).collect();
            if let Some(new) = blessed(old, &made) {
                let depth = indentation(text, start).len() / 4;
                let new = text_of(&scenario, depth, "expect", &new, expected_history);
                edits.push((start..end_of(&tokens, start), new));
            }
        }
    }
    Ok(apply(text, edits))
}

/// Returns the new expectation if it changes.
fn blessed(old: &ExpectedHistory, made: &[&Explored]) -> Option<ExpectedHistory> {
    let only_string = |it: &&Explored| {
        let is_string = |difference: &HistoryDifference| {
            matches!(difference, HistoryDifference::Strays | HistoryDifference::Replay(_))
        };
        it.differences.iter().all(is_string)
    };
    // A string that still replays stays, whatever failure the search has found now.
    let holds = old.replay.is_some() && made.iter().all(|it| it.is_right());
    let all_made = old.on.iter().all(|on| made.iter().any(|it| it.generation == on));
    if matches!(old.ends, ExpectedEnd::Survives { .. })
        || holds
        || !all_made
        || !made.iter().all(only_string)
    {
        return None;
    }
    let mut schedules = made.iter().map(|it| it.found.failure.as_ref().map(|it| &it.schedule));
    let first = schedules.next()??;
    let replay = schedules.all(|schedule| schedule == Some(first)).then(|| first.clone());
    (replay != old.replay).then(|| ExpectedHistory { replay, ..old.clone() })
}
