//! Mutation of inputs that are texts: on what they say, not on their bytes.

use super::text::scenario;
use clr_generate::{Choices as _, Seeded};
use clr_scenario::Scenario;

/// Of this number of mutants of a text one is made from its bytes: it shows what is wrong in a text.
const BYTES: u32 = 32;

/// Returns a mutant of an input that is a text, with at most `limit` bytes. Returns `None` for
/// inputs that are not, and for a few that are: their bytes are to be changed.
#[must_use]
pub fn mutant(data: &[u8], limit: usize, seed: u32) -> Option<Vec<u8>> {
    let mut choices = Seeded::new(u64::from(seed));
    let text = scenario(data)?;
    if choices.chance(1, BYTES) {
        return None;
    }
    printed(&text.mutant(None, &mut choices)?, limit)
}

/// Returns an input with parts of two others, with at most `limit` bytes: if the first is a text, a
/// text with nodes of both; otherwise the beginning of one and the end of the other.
#[must_use]
pub fn crossed(data: &[u8], other: &[u8], limit: usize, seed: u32) -> Vec<u8> {
    let mut choices = Seeded::new(u64::from(seed));
    let text = scenario(data).and_then(|text| {
        let other = scenario(other);
        printed(&text.mutant(other.as_ref(), &mut choices)?, limit)
    });
    text.unwrap_or_else(|| {
        let head = choices.below(data.len() as u32 + 1) as usize;
        let tail = choices.below(other.len() as u32 + 1) as usize;
        let mut crossed = [&data[..head], &other[tail..]].concat();
        crossed.truncate(limit);
        crossed
    })
}

/// Returns the text of a scenario, unless it is too long.
fn printed(scenario: &Scenario, limit: usize) -> Option<Vec<u8>> {
    let text = scenario.to_string().into_bytes();
    (text.len() <= limit).then_some(text)
}
