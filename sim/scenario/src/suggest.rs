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

/// Returns the allowed name that is most similar to a wrong one, or `None` if none is similar.
#[must_use]
pub fn nearest<'a>(found: &str, allowed: &[&'a str]) -> Option<&'a str> {
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
    near.map(|(_, name)| name)
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
    let expected = format!("expected {what}: {}", list(&allowed));
    match nearest(found, &allowed) {
        Some(name) => format!("did you mean `{name}`? {expected}"),
        None => expected,
    }
}

/// Maximum length of a name for comparisons, in characters.
const COMPARE_LIMIT: usize = 64;

/// Returns the number of characters that must be inserted, removed, replaced, or swapped with their
/// neighbour. Case is ignored.
fn distance(one: &str, other: &str) -> usize {
    let lower = |text: &str| text.to_lowercase().chars().take(COMPARE_LIMIT).collect::<String>();
    strsim::osa_distance(&lower(one), &lower(other))
}
