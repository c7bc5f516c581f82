//! Suggestions for wrong names.

use std::collections::BTreeSet;

/// Maximum number of names that a message lists beside the nearest ones.
const LIST_LIMIT: usize = 24;

/// Minimum number of near names that stand for a longer list.
const NEAREST_LEAST: usize = 3;

/// Maximum number of the nearest names of a longer list.
const NEAREST_LIMIT: usize = 6;

/// Maximum number of names to compare with a wrong one.
const SUGGEST_LIMIT: usize = 1000;

/// Length of the shortest beginning of a name that stands for it, in bytes.
const LEAST_START: usize = 3;

/// Returns the function of a label, which may have an offset.
pub(crate) fn function_of(label: &str) -> &str {
    label.rsplit_once("+0x").map_or(label, |(function, _)| function)
}

/// Returns all names, quoted.
pub(crate) fn list<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    names.join(", ")
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
    near.map(|(_, name)| name).or_else(|| continued(found, allowed))
}

/// Returns the shortest allowed name that begins with a part of a word.
fn continued<'a>(found: &str, allowed: &[&'a str]) -> Option<&'a str> {
    let begins = |name: &&&str| {
        let start = name.get(..found.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(found))
    };
    let longer = allowed.iter().take(SUGGEST_LIMIT).filter(begins);
    longer.copied().filter(|_| found.len() >= LEAST_START).min_by_key(|name| name.len())
}

/// Returns where two names differ that look the same: in a character beyond ASCII.
fn lookalike(found: &str, near: &str) -> Option<String> {
    let mut pairs = found.chars().zip(near.chars()).zip(1..);
    let ((one, other), number) = pairs.find(|((one, other), _)| one != other)?;
    let is_other =
        one.is_ascii() != other.is_ascii() && found.chars().count() == near.chars().count();
    is_other.then(|| {
        format!(
            "they differ in character {number}: `{one}` is U+{:04X}, not `{other}`, U+{:04X}; ",
            u32::from(one),
            u32::from(other)
        )
    })
}

/// Returns a hint with the allowed names, each once, and a similar one in the first place. Of a long
/// list only the nearest names are in it, if there are any.
pub(crate) fn suggest<S: AsRef<str>>(found: &str, allowed: &[S], what: &str) -> String {
    let mut listed = BTreeSet::new();
    let allowed = allowed.iter().map(AsRef::as_ref);
    let allowed: Vec<&str> =
        allowed.filter(|name| !name.is_empty() && listed.insert(*name)).collect();
    if allowed.is_empty() {
        return "none is defined".to_owned();
    }
    let near = nearest(found, &allowed);
    let meant = near.map_or_else(String::new, |name| {
        let looks = lookalike(found, name).unwrap_or_default();
        format!("did you mean `{name}`? {looks}")
    });
    let (count, close) = (allowed.len(), similar(found, &allowed));
    if count <= LIST_LIMIT || near.is_none() && close.len() < NEAREST_LEAST {
        // Few near names say little to a reader whose word is another one.
        return format!("{meant}expected {what}: {}", list(&allowed));
    }
    let close: Vec<_> = close.into_iter().filter(|name| Some(*name) != near).collect();
    match (close.as_slice(), near) {
        ([], _) => format!("{meant}it is one of {count} names"),
        (close, None) => format!("of the {count} names these are nearest: {}", list(close)),
        (close, Some(_)) => {
            format!("{meant}of the {count} names these are near, too: {}", list(close))
        }
    }
}

/// Returns the names that are most similar to a wrong one: by their distance, or because one contains
/// the other.
fn similar<'a>(found: &str, allowed: &[&'a str]) -> Vec<&'a str> {
    let lower = found.to_lowercase();
    let contains = |name: &str| {
        let name = name.to_lowercase();
        lower.len() > 2 && (name.contains(&lower) || lower.contains(&name))
    };
    let rated = allowed.iter().take(SUGGEST_LIMIT).map(|name| (distance(found, name), *name));
    let mut rated: Vec<_> = rated
        .map(|(distance, name)| (!contains(name), distance, name))
        .filter(|(is_apart, distance, name)| {
            !is_apart || *distance <= name.chars().count().max(found.chars().count()) / 2
        })
        .collect();
    rated.sort_unstable();
    rated.into_iter().take(NEAREST_LIMIT).map(|(_, _, name)| name).collect()
}

/// Maximum length of a name for comparisons, in characters.
const COMPARE_LIMIT: usize = 64;

/// Returns the number of characters that must be inserted, removed, replaced, or swapped with their
/// neighbour. Case is ignored.
fn distance(one: &str, other: &str) -> usize {
    let lower = |text: &str| text.to_lowercase().chars().take(COMPARE_LIMIT).collect::<String>();
    strsim::osa_distance(&lower(one), &lower(other))
}
