//! Writes into a text the strings of the histories that its searches have found.

use super::Scenario;
use super::bless::{apply, end_of, indentation};
use super::error::ScenarioError;
use super::format::expected_history_text;
use super::histories::{ExpectedEnd, ExpectedHistory, Explored, HistoryDifference};
use super::parse::tokens::Tokens;
use super::places::{inside, named};
use kdl::{KdlDocument, KdlNode};

/// The text with the strings of the histories that failed as they should: where all generations that an
/// expectation is for have the same one, and no string or one that is out of date is written. All other
/// bytes stay as they are. What a search should come to is for people to say.
///
/// # Errors
/// [`ScenarioError`] if the text is no scenario.
pub fn bless_histories(text: &str, explored: &[Explored]) -> Result<String, ScenarioError> {
    let scenario = Scenario::parse(text)?;
    let Ok(document) = KdlDocument::parse_v2(text) else { return Ok(text.to_owned()) };
    let tokens: Vec<_> = Tokens::new(text).collect();
    let nodes = named(document.nodes(), "explore");
    let mut edits = Vec::new();
    for ((index, explore), node) in scenario.explore.iter().enumerate().zip(nodes) {
        let of = |node: &KdlNode| node.name().span().offset();
        let places = named(inside(node), "expect").map(of);
        for ((place, old), start) in explore.expect.iter().enumerate().zip(places) {
            let of_it = |it: &&Explored| (it.explore, it.expected) == (index, place);
            let made: Vec<_> = explored.iter().filter(of_it).collect();
            if let Some(new) = blessed(old, &made) {
                let depth = indentation(text, start).len() / 4;
                let new = expected_history_text(&scenario, &new, depth);
                edits.push((start..end_of(&tokens, start), new));
            }
        }
    }
    Ok(apply(text, edits))
}

/// What is expected now, if that changes.
fn blessed(old: &ExpectedHistory, made: &[&Explored]) -> Option<ExpectedHistory> {
    let only_string = |it: &&Explored| {
        let is_string = |difference: &HistoryDifference| {
            matches!(difference, HistoryDifference::Strays | HistoryDifference::Replay(_))
        };
        it.differences.iter().all(is_string)
    };
    // A string that still holds stays, whatever the search has found now.
    let holds = old.replay.is_some() && made.iter().all(|it| it.is_right());
    let all_made = old.on.iter().all(|on| made.iter().any(|it| it.generation == on));
    if matches!(old.ends, ExpectedEnd::Survives { .. })
        || holds
        || !all_made
        || !made.iter().all(only_string)
    {
        return None;
    }
    let mut trails = made.iter().map(|it| it.found.failure.as_ref().map(|it| &it.trail));
    let first = trails.next()??;
    let replay = trails.all(|trail| trail == Some(first)).then(|| first.clone());
    (replay != old.replay).then(|| ExpectedHistory { replay, ..old.clone() })
}
