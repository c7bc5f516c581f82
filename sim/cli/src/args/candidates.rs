//! Values that a shell completes: names of embedded files, of runtimes, and of rules.

use crate::input::PROGRAM;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter as _};
use clr_fixtures::Fixture;
use clr_runtime::clause;
use clr_runtime::generation::Generations;
use clr_story::Hazard;
use std::ffi::OsStr;

/// Returns paths, and the embedded scenarios.
pub(super) fn scenarios(current: &OsStr) -> Vec<CompletionCandidate> {
    let is_scenario = |fixture: &&Fixture| fixture.name.ends_with(PROGRAM);
    files_beginning(current, clr_fixtures::all().iter().filter(is_scenario))
}

/// Returns paths, and all embedded files.
pub(super) fn files(current: &OsStr) -> Vec<CompletionCandidate> {
    files_beginning(current, clr_fixtures::all().iter())
}

fn files_beginning<'f>(
    current: &OsStr,
    embedded: impl Iterator<Item = &'f Fixture>,
) -> Vec<CompletionCandidate> {
    let mut found = PathCompleter::any().complete(current);
    let embedded = embedded.map(|fixture| fixture.name.to_owned());
    found.extend(beginning(current, "", embedded));
    found
}

/// Returns the names of runtimes and of sets of them, after the last comma.
pub(super) fn runtimes(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = current.to_string_lossy();
    let before = text.rfind(',').map_or("", |at| &text[..=at]);
    beginning(current, before, Generations::all_words().map(str::to_owned))
}

/// Returns the ids of clauses and hazards.
pub(super) fn rules(current: &OsStr) -> Vec<CompletionCandidate> {
    let clauses = clause::entries().map(|entry| entry.clause.to_string());
    let hazards = Hazard::ALL.iter().map(ToString::to_string);
    beginning(current, "", clauses.chain(hazards))
}

/// Returns the words, each after `before`, that begin as what is written.
fn beginning(
    current: &OsStr,
    before: &str,
    words: impl Iterator<Item = String>,
) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let words = words.map(|word| format!("{before}{word}"));
    words.filter(|word| word.starts_with(&*current)).map(CompletionCandidate::new).collect()
}
