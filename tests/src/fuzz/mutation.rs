//! Mutation of inputs that are texts: on what they say, not on their bytes.

use super::text;
use clr_generate::{Choices as _, Seeded};
use clr_scenario::Scenario;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Of this number of mutants of a text one is made from its bytes: it shows what is wrong in a text.
const BYTES: u32 = 32;

/// Number of texts whose scenarios are remembered: a fuzzer changes the same input several times in succession, and what
/// came of it.
const REMEMBERED: usize = 16;

thread_local! {
    /// The texts that were read or printed last.
    static LAST: RefCell<VecDeque<(Vec<u8>, Rc<Scenario>)>> = const { RefCell::new(VecDeque::new()) };
}

/// Returns a mutant of an input that is a text, with at most `limit` bytes. Returns `None` for
/// inputs that are not, and for a few that are: their bytes are to be changed.
#[must_use]
pub fn mutant(data: &[u8], limit: usize, seed: u32) -> Option<Vec<u8>> {
    let mut choices = Seeded::new(u64::from(seed));
    let text = scenario(data)?;
    if choices.chance(1, BYTES) {
        return None;
    }
    printed(text.mutant(None, &mut choices)?, limit)
}

/// Returns an input with parts of two others, with at most `limit` bytes: if the first is a text, a
/// text with nodes of both; otherwise the beginning of one and the end of the other.
#[must_use]
pub fn crossed(data: &[u8], other: &[u8], limit: usize, seed: u32) -> Vec<u8> {
    let mut choices = Seeded::new(u64::from(seed));
    let text = scenario(data).and_then(|text| {
        let other = scenario(other);
        printed(text.mutant(other.as_deref(), &mut choices)?, limit)
    });
    text.unwrap_or_else(|| {
        let head = choices.below(data.len() as u32 + 1) as usize;
        let tail = choices.below(other.len() as u32 + 1) as usize;
        let mut crossed = [&data[..head], &other[tail..]].concat();
        crossed.truncate(limit);
        crossed
    })
}

/// Returns the scenario of an input that is a text.
fn scenario(data: &[u8]) -> Option<Rc<Scenario>> {
    let known = LAST.with_borrow(|last| {
        let found = last.iter().find(|(text, _)| text == data);
        found.map(|(_, scenario)| Rc::clone(scenario))
    });
    known.or_else(|| {
        let scenario = Rc::new(text::scenario(data)?);
        remember(data.to_vec(), Rc::clone(&scenario));
        Some(scenario)
    })
}

/// Remembers the scenario of a text, in place of the oldest one.
fn remember(text: Vec<u8>, scenario: Rc<Scenario>) {
    LAST.with_borrow_mut(|last| {
        last.truncate(REMEMBERED - 1);
        last.push_front((text, scenario));
    });
}

/// Returns the text of a scenario, unless it is too long.
fn printed(scenario: Scenario, limit: usize) -> Option<Vec<u8>> {
    let text = scenario.to_string().into_bytes();
    if text.len() > limit {
        return None;
    }
    remember(text.clone(), Rc::new(scenario));
    Some(text)
}
