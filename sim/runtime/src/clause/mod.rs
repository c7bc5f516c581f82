//! The rules of the CLR that the simulator keeps: clauses, by number.
//!
//! A clause says in a sentence or two what a profiler can observe, in which [`Generations`], and how
//! that is known. Code that keeps one names it (C-014); so do the events that tell why a call went as
//! it did. A number never changes its meaning, and is never used again.
//!
//! ```
//! use clr_runtime::clause::{Chapter, Clause, Evidence};
//! use clr_runtime::generation::Generation;
//!
//! let clause: Clause = "C-019".parse()?;
//! let entry = clause.entry().expect("parsed clauses are in the table");
//! assert_eq!((entry.chapter, entry.evidence), (Chapter::EntryChecks, Evidence::Observed));
//! assert!(!entry.generations.contains(Generation::Net10Windows));
//! # Ok::<(), crate::clause::NoClause>(())
//! ```
//!
//! The words are those of the field: a *Frame* (capital F) is the runtime's explicit Frame object, a
//! *marker* the callback with FunctionID 0, a *seed* the CONTEXT given to `DoStackSnapshot`. Names of
//! files without a path are those of CoreCLR 3.1, in `src/vm`.

/// The entries of a chapter: number, generations, evidence, source and rule of each.
macro_rules! clauses {
    (
        $chapter:ident:
        $($number:literal: $generations:ident, $evidence:ident, $source:literal, $rule:literal;)+
    ) => {
        pub(super) const ENTRIES: &[Entry] = &[$(Entry {
            clause: super::Clause::new($number),
            chapter: super::Chapter::$chapter,
            rule: $rule,
            generations: $generations,
            source: $source,
            evidence: $evidence,
        },)+];
    };
}

mod arguments;
mod callbacks;
mod companions;
mod ending;
mod entry_checks;
mod guidelines;
mod observed;
mod reported;
mod seeds;
mod sets;
mod suspension;
#[cfg(test)]
mod tests;
mod unwinder;

use crate::generation::Generations;
use core::fmt;
use core::str::FromStr;
use thiserror::Error;

/// The number of a clause.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Clause(u16);

impl Clause {
    /// The clause with this number. Whether there is one is for [`entry`](Self::entry) to tell.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// What it says, if there is such a clause.
    #[must_use]
    pub fn entry(self) -> Option<&'static Entry> {
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

/// A text names no clause.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no such clause; they are {first} to {last}", first = Clause::new(1), last = last())]
pub struct NoClause;

/// Understands `C-014`, and also `c-14` and `14`.
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

/// A clause with what is known about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which one it is.
    pub clause: Clause,
    /// Where it belongs.
    pub chapter: Chapter,
    /// What a profiler can observe, or is asked to do.
    pub rule: &'static str,
    /// The runtimes in which that is so.
    pub generations: Generations,
    /// Where it stands: files and functions of the runtime, pages of its documentation, recordings.
    /// Several are separated by semicolons.
    pub source: &'static str,
    /// How well it is known.
    pub evidence: Evidence,
}

/// How well a clause is known. The weakest comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// The documentation says so.
    Documented,
    /// The source of a runtime says so.
    Read,
    /// Recorded calls of a real runtime show it, in one of its generations at least.
    Observed,
}

impl Evidence {
    /// It as a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Documented => "documented",
            Self::Read => "read",
            Self::Observed => "observed",
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Chapters, with the name for command lines, the title and the module that has the entries.
macro_rules! chapters {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $title:literal, $module:ident;)+) => {
        /// What clauses are about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Chapter {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Chapter {
            /// All of them, in the order of their clauses.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Its name on a command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Its title.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }

            /// Its clauses, ascending by number.
            #[must_use]
            pub const fn entries(self) -> &'static [Entry] {
                match self { $(Self::$variant => $module::ENTRIES,)+ }
            }
        }
    };
}

chapters! {
    /// What is checked before a walk begins, and in which order.
    EntryChecks = "entry-checks", "Entry checks", entry_checks;
    /// How a call stops its target, and when it refuses to walk it.
    Suspension = "suspension", "Suspension of the target", suspension;
    /// What the context argument does.
    Seeds = "seeds", "Seeds", seeds;
    /// Which frames a walk visits, and which of them it reports.
    Reported = "reported", "What is walked and reported", reported;
    /// What the callback is given.
    Arguments = "arguments", "Callback arguments", arguments;
    /// How a walk ends, and with which HRESULT.
    Ending = "ending", "Ending and result", ending;
    /// Other methods that a stack profiler calls.
    Companions = "companions", "Companion methods", companions;
    /// What a call gets that is made from a callback of the profiler.
    Callbacks = "callbacks", "Calls from callbacks", callbacks;
    /// How managed frames are unwound on x64.
    Unwinder = "unwinder", "Unwinder", unwinder;
    /// What the documentation asks of a profiler.
    Guidelines = "guidelines", "Guidelines", guidelines;
    /// What only recordings show.
    Observed = "observed", "Observed", observed;
}

impl Chapter {
    /// The one with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|chapter| chapter.name() == name)
    }
}

impl fmt::Display for Chapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.title())
    }
}

/// All clauses, ascending by number.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    Chapter::ALL.iter().flat_map(|chapter| chapter.entries())
}

/// The clause with the highest number.
fn last() -> Clause {
    entries().last().map_or(Clause::new(1), |entry| entry.clause)
}
