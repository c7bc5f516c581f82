//! Mutation of inputs that are texts: on what they say, not on their bytes.

use clr_generate::{Choices as _, Seeded};
use clr_scenario::Parent;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Of this number of mutants of a text one is made from its bytes: it shows what is wrong in a text.
const BYTES: u32 = 32;

/// Number of texts whose nodes are remembered: a fuzzer changes the same input several times in succession, and what
/// came of it.
const REMEMBERED: usize = 16;

thread_local! {
    /// The texts that were read or printed last.
    static LAST: RefCell<VecDeque<(Vec<u8>, Rc<Parent>)>> = const { RefCell::new(VecDeque::new()) };
}

/// Returns a mutant of an input that is a text, with at most `limit` bytes. Returns `None` for
/// inputs that are not, and for a few that are: their bytes are to be changed.
#[must_use]
pub fn mutant(data: &[u8], limit: usize, seed: u32) -> Option<Vec<u8>> {
    let mut choices = Seeded::new(u64::from(seed));
    let text = parent(data)?;
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
    let text = parent(data).and_then(|text| {
        let other = parent(other);
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

/// Returns the scenario of an input that is a text, with its nodes.
fn parent(data: &[u8]) -> Option<Rc<Parent>> {
    let known = LAST.with_borrow(|last| {
        let found = last.iter().find(|(text, _)| text == data);
        found.map(|(_, parent)| Rc::clone(parent))
    });
    known.or_else(|| {
        let parent = Rc::new(Parent::of_text(std::str::from_utf8(data).ok()?)?);
        remember(data.to_vec(), Rc::clone(&parent));
        Some(parent)
    })
}

/// Remembers what a text says, in place of the oldest one.
fn remember(text: Vec<u8>, parent: Rc<Parent>) {
    LAST.with_borrow_mut(|last| {
        last.truncate(REMEMBERED - 1);
        last.push_front((text, parent));
    });
}

/// Returns the text of a mutant, unless it is too long.
fn printed(mutant: Parent, limit: usize) -> Option<Vec<u8>> {
    let text = mutant.scenario().to_string().into_bytes();
    if text.len() > limit {
        return None;
    }
    remember(text.clone(), Rc::new(mutant));
    Some(text)
}
