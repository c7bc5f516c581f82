//! The interface of search strategies: who has the next turn.

use super::contents::Contents;
use super::ending::Ending;
use super::footprint::Footprint;
use super::ids::ThreadIndex;
use super::patience::LimitBound;
use clr_runtime::profiling::{CallFault, CallFaults};
use core::fmt;

/// A search strategy: it chooses the thread of each turn. The same search makes the same choices on
/// every system.
///
/// For each interleaving the engine calls [`begin`](Self::begin), then [`choose`](Self::choose) before each
/// turn, and [`end`](Self::end). [`Explorer::search`](super::Explorer::search) does so until there is no
/// interleaving left, an interleaving fails, or the budget is used up.
pub trait Search {
    /// Starts an interleaving.
    ///
    /// `number` counts the interleavings of a campaign from 0. A search whose interleavings depend on their
    /// numbers alone may be called with any numbers, in any order; any other is called with each, in
    /// order. Returns false if there is no interleaving left to execute: the search is over.
    fn begin(&mut self, number: u64) -> bool;

    /// Chooses the thread of the next turn.
    ///
    /// `at` is the switch point: the threads that can run, of which there is at least one, and the
    /// thread of the last turn. `None` gives the interleaving up: the search knows already what can follow.
    /// So does a thread that cannot run.
    ///
    /// Beyond the [limit](super::Limits::turns) of an interleaving the search is not asked any more: threads
    /// get turns round-robin.
    fn choose(&mut self, at: &Choice<'_>) -> Option<ThreadIndex>;

    /// Ends an interleaving, which [`begin`](Self::begin) has started.
    ///
    /// `ending` has the verdict and the schedule string; of an interleaving that was given up, it has those
    /// of its beginning.
    fn end(&mut self, ending: &Ending);

    /// Returns the part of the search that looks at interleavings, or `None` if the choices of an interleaving do
    /// not depend on what happened before.
    ///
    /// With an observer the engine also computes what costs time: access sets, and the threads that wait.
    fn observer(&mut self) -> Option<&mut dyn Observer> {
        None
    }

    /// Returns the part of the search that makes calls fail, or `None` if none does.
    fn injector(&mut self) -> Option<&mut dyn Injector> {
        None
    }

    /// Returns how far the search is.
    fn progress(&self) -> Progress {
        Progress::default()
    }
}

/// The part of a search that learns from interleavings.
pub trait Observer {
    /// Called at the start of an interleaving whose future depends only on its current state.
    ///
    /// `contents` computes that state; it returns `None` if there are too many threads. Without a
    /// declaration of the profiler's [data](super::Setup::keeps) this is not called.
    fn started(&mut self, contents: &dyn Fn() -> Option<Contents>) {
        let _ = contents;
    }

    /// Called after each turn that the search has chosen.
    fn stepped(&mut self, step: &Step<'_>) {
        let _ = step;
    }

    /// Called when no thread can run any more, with the threads that wait, and what each of them would
    /// have to find changed. There are none if all threads have ended.
    fn stopped(&mut self, waits: &[(ThreadIndex, Footprint)]) {
        let _ = waits;
    }
}

/// The part of a search that makes calls fail.
pub trait Injector {
    /// Chooses if a call fails, of the ways that are possible.
    fn fails(&mut self, call: FallibleCall) -> Option<CallFault>;
}

/// A call that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FallibleCall {
    /// The thread.
    pub thread: ThreadIndex,
    /// Number of such calls of the thread before.
    pub number: u32,
    /// The ways in which it may fail.
    pub possible: CallFaults,
}

/// A turn that was executed.
#[derive(Clone, Copy)]
pub struct Step<'s> {
    /// The thread that had the turn.
    pub thread: ThreadIndex,
    /// The access set of the turn.
    pub footprint: Footprint,
    /// Computes the contents of what the turn has changed; `None` if they do not determine what
    /// follows, because the turn depends on time or the profiler's data is not declared.
    pub contents: &'s dyn Fn() -> Option<Contents>,
}

impl fmt::Debug for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { thread, footprint, .. } = self;
        f.debug_tuple("Step").field(thread).field(footprint).finish()
    }
}

/// A switch point, at which a thread is chosen.
#[derive(Debug)]
pub struct Choice<'c> {
    /// Number of turns so far.
    pub turn: u64,
    /// Threads that can run, ascending; at least one.
    pub runnable: &'c [ThreadIndex],
    /// Thread of the last turn.
    pub last: Option<ThreadIndex>,
    /// The last turn was an ordinary instruction, after which threads switch only if each instruction is a
    /// [switch point](super::Limits::every_instruction).
    pub within: bool,
    /// The threads that wait, and what decides about that, for a search with an
    /// [observer](Search::observer).
    pub waits: &'c [(ThreadIndex, Footprint)],
    /// The state of the process.
    pub process: &'c dyn ProcessState,
}

/// The state of a process at a switch point, as hashes.
pub trait ProcessState: fmt::Debug {
    /// Returns a hash of the state that deadlocks depend on: owners and waits, suspensions and modes.
    fn abstract_state(&self) -> u64;

    /// Returns the contents of all things but the profiler's data; `None` if the interleaving is executed
    /// elsewhere, or has too many threads.
    fn contents(&self) -> Option<Contents>;
}

/// Progress of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// True if an interleaving was another one than the search expected: the code depends on something else
    /// than the schedule, or has changed.
    pub strayed: bool,
    /// Share of the search space that has been explored, if it is known.
    pub covered: Option<Coverage>,
}

/// Share of the search space that has been explored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Coverage {
    /// The search is complete: each step of a thread was executed after all that can have happened before it, and each end
    /// at which threads wait, up to the order of independent steps.
    pub everything: bool,
    /// Share that has been explored, in millionths, with equal weight for the alternatives of each
    /// choice.
    pub millionths: u32,
    /// Number of interleavings pruned as redundant.
    pub cut: u64,
    /// Maximum number of preemptions in an interleaving, if it was bounded.
    pub preemptions: Option<u32>,
    /// The bound on limits of waits that pass, if an interleaving has a wait with one while other threads can run.
    pub limits: Option<LimitBound>,
}
