//! The data about what a program has arranged with the runtime.

use clr_walker::profiling::ThreadId;
use std::collections::{BTreeSet, VecDeque};

/// The arrangements of the program. Methods are named by their ids.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Arranged {
    /// Number of changes.
    pub changes: u64,
    pub first_chance: Option<u64>,
    pub unhandled: Option<u64>,
    /// The handler that is called now.
    pub called: u64,
    pub process_exit: Option<u64>,
    /// Methods that were called once.
    pub once: BTreeSet<u64>,
    /// Finalizers of objects that are alive, and of those that the finalizer's thread has still to run.
    pub finalizable: Vec<u64>,
    pub finalizing: VecDeque<u64>,
    /// Threads of the runtime that have ended in the system, which the finalizer's thread has still to remove.
    pub detached: VecDeque<ThreadId>,
    /// The finalizer's thread runs a method, or removes a thread.
    pub is_finalizing: bool,
    /// Threads that were started, by index.
    pub started: BTreeSet<usize>,
    /// The process has ended.
    pub exited: bool,
}

/// A wait of a thread for another thread of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Awaited {
    /// The thread is started.
    Start,
    /// The runtime's start is over.
    Runtime,
    /// The thread with this index has ended.
    End(usize),
    /// There is a method for the thread of tiered compilation.
    Tiers,
    /// There is a method or a thread for the finalizer's thread.
    Finalizable,
    /// The finalizer's thread has run all methods, and removed all threads.
    Finalizers,
}

impl Arranged {
    /// Returns true if the finalizer's thread has nothing to do.
    pub(super) fn is_idle(&self) -> bool {
        self.finalizing.is_empty() && self.detached.is_empty()
    }

    /// Returns true if objects wait for the finalizer's thread.
    pub(super) fn is_queued(&self) -> bool {
        !self.finalizing.is_empty()
    }

    /// Returns the finalizer of the object that was queued last.
    pub(super) fn last_queued(&self) -> u64 {
        self.finalizing.back().copied().unwrap_or_default()
    }
}
