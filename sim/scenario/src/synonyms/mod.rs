//! Words of the field for what texts have under other names: one table, for errors, for `clrsim list`, for the site's
//! search and for editors.
//!
//! Names of the profiling interfaces are no part of the table: they are callbacks and methods, and what texts do with
//! those follows from their kind.

mod interfaces;
mod table;

use clr_runtime::profiling::CallbackKind;
use clr_walker::profiling::InfoMethod;
pub use table::SYNONYMS;

use crate::model::ProfilerMethod;

/// Words of the field that mean the same, and what this project has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synonym {
    /// The words, as people write them.
    pub words: &'static [&'static str],
    /// A sentence without full stop: the words to write here.
    pub here: &'static str,
    /// Words of this project for the same thing, for searches in texts and pages. Each finds something.
    pub find: &'static [&'static str],
}

/// The meaning of a word of the field here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// A sentence without full stop: the words to write here.
    pub here: String,
    /// Words of this project for the same thing, for searches.
    pub find: Vec<&'static str>,
}

/// Returns what this project has for a word of the field, or for a public name of the profiling interfaces. Case,
/// blanks, and signs do not count.
#[must_use]
pub fn meaning(word: &str) -> Option<Meaning> {
    let name = word.rsplit("::").next().unwrap_or(word);
    let bare = bare(name);
    if bare.is_empty() {
        return None;
    }
    let is_meant = |synonym: &&Synonym| synonym.words.iter().any(|word| self::bare(word) == bare);
    if let Some(synonym) = SYNONYMS.iter().find(is_meant) {
        return Some(Meaning { here: synonym.here.to_owned(), find: synonym.find.to_vec() });
    }
    of_callback(name).or_else(|| of_method(name))
}

/// Returns all public names of the profiling interfaces that have a meaning and are not in the table.
pub fn interface_names() -> impl Iterator<Item = &'static str> {
    let callbacks = CallbackKind::ALL.iter().map(|kind| kind.name());
    let methods = InfoMethod::ALL.iter().map(|method| method.name());
    let others = interfaces::CALLBACKS.iter().chain(interfaces::METHODS).copied();
    callbacks.chain(methods).chain(others)
}

fn of_callback(name: &str) -> Option<Meaning> {
    if let Some(kind) = CallbackKind::ALL.iter().find(|kind| kind.name().eq_ignore_ascii_case(name))
    {
        let name = kind.name();
        let here = format!(
            "it is a callback: `stop callback=\"{name}\"`, and in a profiler `on \"{name}\" {{ … }}`"
        );
        return Some(Meaning { here, find: vec![name] });
    }
    let name = one_of(interfaces::CALLBACKS, name)?;
    let here = format!("`{name}` is a callback that no text raises");
    Some(Meaning { here, find: Vec::new() })
}

fn of_method(name: &str) -> Option<Meaning> {
    let own = InfoMethod::ALL.iter().map(|method| method.name());
    let own = own.into_iter().find(|own| own.eq_ignore_ascii_case(name));
    let method = own.or_else(|| one_of(interfaces::METHODS, name))?;
    let here = if ProfilerMethod::NAMES.contains(&method) {
        format!(
            "an action of a profiler calls it: `call \"{method}\"`; so does a profiler in `clrsim host`"
        )
    } else {
        format!("`{method}` is a method that texts do not call: a profiler in `clrsim host` can")
    };
    Some(Meaning { here, find: own.into_iter().collect() })
}

fn one_of(names: &[&'static str], name: &str) -> Option<&'static str> {
    names.iter().copied().find(|own| own.eq_ignore_ascii_case(name))
}

/// Returns the letters and digits of a word, in lower case.
fn bare(word: &str) -> String {
    word.chars()
        .filter(|c| c.is_alphanumeric() || *c == '+' || *c == '#')
        .flat_map(char::to_lowercase)
        .collect()
}
