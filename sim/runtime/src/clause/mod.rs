//! The rules of the CLR that the simulator keeps: clauses, by number.
//!
//! A clause states in a sentence or two what a profiler can observe, in which [`Generations`], and
//! how that is known. Code that implements a clause names it (C-014), and so do the events that
//! explain a call. A number never changes its meaning, and is never reused.
//!
//! ```
//! use clr_runtime::clause::{Chapter, Clause, Support};
//! use clr_runtime::generation::Generation;
//!
//! let clause: Clause = "C-019".parse()?;
//! let entry = clause.entry().expect("parsed clauses are in the table");
//! assert_eq!(entry.chapter, Chapter::EntryChecks);
//! assert_eq!(entry.support(Generation::CoreClr31Unix), Some(Support::Shown));
//! assert_eq!(entry.support(Generation::Net10Windows), None, "it does not hold there");
//! # Ok::<(), clr_runtime::clause::NoClause>(())
//! ```
//!
//! The rules use the terms of the field: a *Frame* (capital F) is the runtime's explicit Frame
//! object, a *marker* the callback with FunctionID 0, a *seed* the CONTEXT given to
//! `DoStackSnapshot`. Names of files without a path are those of CoreCLR 3.1, in `src/vm`.

/// Defines the entries of a chapter: number, generations, source and rule of each.
macro_rules! clauses {
    (
        $chapter:ident:
        $($number:literal: $generations:ident, $source:literal, $rule:literal;)+
    ) => {
        pub(super) const ENTRIES: &[ClauseEntry] = &[$(ClauseEntry {
            clause: super::Clause::new($number),
            chapter: super::Chapter::$chapter,
            rule: $rule,
            generations: $generations,
            source: $source,
        },)+];
    };
}

mod arguments;
mod callbacks;
mod companions;
mod ending;
mod entry_checks;
mod forced_gc;
mod guidelines;
mod observed;
mod reported;
mod reports;
mod seeds;
mod sets;
mod support;
mod suspension;
#[cfg(test)]
mod tests;
mod unwinder;

pub use support::{Support, Witness, is_source_read};

use crate::generation::Generations;
use core::fmt;
use core::str::FromStr;
use thiserror::Error;

/// The number of a clause.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Clause(u16);

impl Clause {
    /// Creates the clause with this number, which need not exist: see [`entry`](Self::entry).
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Returns the entry of the clause, or `None` if there is no such clause.
    pub fn entry(self) -> Option<&'static ClauseEntry> {
        entries().find(|entry| entry.clause == self)
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("C-{:03}", self.0))
    }
}

impl fmt::Debug for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Error for a text that names no clause.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no such clause; they are {first} to {last}", first = Clause::new(1), last = last())]
pub struct NoClause;

/// Parses `C-014`, and also `c-14` and `14`.
impl FromStr for Clause {
    type Err = NoClause;

    fn from_str(text: &str) -> Result<Self, NoClause> {
        let digits =
            text.strip_prefix(['C', 'c']).map_or(Some(text), |rest| rest.strip_prefix('-'));
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let clause = digits.and_then(|digits| digits.parse().ok()).map(Self);
        clause.filter(|clause| clause.entry().is_some()).ok_or(NoClause)
    }
}

/// A clause with its rule and sources. [`support`](Self::support) says how well it is known on each runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClauseEntry {
    /// Number of the clause.
    pub clause: Clause,
    /// Chapter of the clause.
    pub chapter: Chapter,
    /// Behavior that a profiler can observe, or a requirement on a profiler.
    pub rule: &'static str,
    /// Runtimes in which the rule holds.
    pub generations: Generations,
    /// Sources of the rule: files and functions of the runtime, pages of its documentation,
    /// recordings. Several are separated by semicolons.
    pub source: &'static str,
}

/// Defines chapters with their command-line name, their title and the module with their entries.
macro_rules! chapters {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $title:literal, $module:ident;)+) => {
        /// Topic of clauses.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Chapter {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Chapter {
            /// All chapters, in the order of their clauses.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the name on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Returns the title.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }

            /// Returns the clauses, ascending by number.
            pub const fn entries(self) -> &'static [ClauseEntry] {
                match self { $(Self::$variant => $module::ENTRIES,)+ }
            }
        }
    };
}

chapters! {
    /// Checks before a walk begins, and their order.
    EntryChecks = "entry-checks", "Entry checks", entry_checks;
    /// Suspension of a call's target, and refusals to walk it.
    Suspension = "suspension", "Suspension of the target", suspension;
    /// Effects of the context argument.
    Seeds = "seeds", "Seeds", seeds;
    /// Frames that a walk visits, and those that it reports.
    Reported = "reported", "What is walked and reported", reported;
    /// Arguments of the callback.
    Arguments = "arguments", "Callback arguments", arguments;
    /// End of a walk, and its HRESULT.
    Ending = "ending", "Ending and result", ending;
    /// Other methods that a stack profiler calls.
    Companions = "companions", "Companion methods", companions;
    /// Calls that are made from a callback of the profiler.
    Callbacks = "callbacks", "Calls from callbacks", callbacks;
    /// Unwinding of managed frames on x64.
    Unwinder = "unwinder", "Unwinder", unwinder;
    /// Requirements of the documentation on a profiler.
    Guidelines = "guidelines", "Guidelines", guidelines;
    /// Behavior known only from recordings.
    Observed = "observed", "Observed", observed;
    /// GCs that a profiler forces.
    ForcedGc = "forced-gc", "Forced GCs", forced_gc;
    /// Compilations, exceptions, collections and ends, as the runtime reports them.
    Reports = "reports", "What the runtime reports", reports;
}

impl Chapter {
    /// Returns the chapter with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|chapter| chapter.name() == name)
    }
}

impl fmt::Display for Chapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.title())
    }
}

/// Returns all clauses, ascending by number.
pub fn entries() -> impl Iterator<Item = &'static ClauseEntry> {
    Chapter::ALL.iter().flat_map(|chapter| chapter.entries())
}

/// Returns the clause with the highest number.
fn last() -> Clause {
    entries().last().map_or(Clause::new(1), |entry| entry.clause)
}
