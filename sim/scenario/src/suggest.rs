//! Suggestions for wrong names.

use std::collections::BTreeSet;

/// Maximum number of names that a message lists.
const LIST_LIMIT: usize = 24;

/// Maximum number of names to compare with a wrong one.
const SUGGEST_LIMIT: usize = 1000;

pub(super) fn list<S: AsRef<str>>(names: &[S]) -> String {
    let mut text = String::new();
    for (index, name) in names.iter().take(LIST_LIMIT).enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        text.push('`');
        text.push_str(name.as_ref());
        text.push('`');
    }
    if names.len() > LIST_LIMIT {
        text.push_str(", …");
    }
    text
}

/// Returns a hint with the allowed names, each once, and a similar one in the first place.
pub(super) fn suggest<S: AsRef<str>>(found: &str, allowed: &[S], what: &str) -> String {
    let mut listed = BTreeSet::new();
    let allowed = allowed.iter().map(AsRef::as_ref);
    let allowed: Vec<&str> =
        allowed.filter(|name| !name.is_empty() && listed.insert(*name)).collect();
    if allowed.is_empty() {
        return "none is defined".to_owned();
    }
    let near = allowed
        .iter()
        .take(SUGGEST_LIMIT)
        .map(|name| (distance(found, name), *name))
        .filter(|(distance, name)| {
            let len = name.chars().count();
            *distance <= (len / 3).max(1) && *distance < len
        })
        // A partial word may be the start of a longer one.
        .min_by_key(|(distance, name)| (*distance, !name.starts_with(found)));
    let expected = format!("expected {what}: {}", list(&allowed));
    match near {
        Some((_, name)) => format!("did you mean `{name}`? {expected}"),
        None => expected,
    }
}

/// Maximum length of a name for comparisons, in characters.
const COMPARE_LIMIT: usize = 64;

/// Returns the number of characters that must be inserted, removed, replaced, or swapped with their
/// neighbour. Case is ignored.
fn distance(one: &str, other: &str) -> usize {
    let lower = |text: &str| text.to_lowercase().chars().take(COMPARE_LIMIT).collect::<Vec<_>>();
    let (one, other) = (lower(one), lower(other));
    // Distances of each prefix of `other` from the last prefixes of `one`.
    let mut before_previous = Vec::new();
    let mut previous: Vec<usize> = (0..=other.len()).collect();
    for i in 0..one.len() {
        let mut row = vec![i + 1];
        for j in 0..other.len() {
            let replaced = previous[j] + usize::from(one[i] != other[j]);
            let mut best = replaced.min(row[j] + 1).min(previous[j + 1] + 1);
            if i > 0 && j > 0 && one[i] == other[j - 1] && one[i - 1] == other[j] {
                let swapped: &Vec<usize> = &before_previous;
                best = best.min(swapped[j - 1] + 1);
            }
            row.push(best);
        }
        before_previous = core::mem::replace(&mut previous, row);
    }
    previous.last().copied().unwrap_or(0)
}
