//! Status of the scheduler and of each thread.
//!
//! Waiting is a value: the scheduler evaluates the wait conditions on the state whenever it has to choose a thread.

use super::callback::Callback;
use super::condition::ConditionState;
use super::footprint::Footprint;
use super::history::{History, ThreadKind, ThreadSummary, TurnEvent};
use super::ids::ThreadIndex;
use super::lock::LockState;
use super::patience::Patience;
use super::verdict::{ProfilerRule, Verdict};
use clr_coroutine::Id;
use clr_runtime::clause::Clause;
use clr_runtime::{OsThreadId, Wait};
use clr_unwind::Registers;
use core::panic::Location;
use std::rc::Rc;

/// A condition that code on a coroutine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// A lock of the profiler is released.
    Lock(u32),
    /// The owner of a lock of the profiler releases it.
    Shared(u32),
    /// A condition variable is notified, which wakes the thread with this ticket.
    Condition(u32, u64),
    /// A condition that only the runtime or the process can satisfy.
    Runtime(Wait),
    /// An event of the profiler is set.
    Event(u32),
    /// Another thread ends.
    Join(ThreadIndex),
    /// Time passes.
    Time,
}

/// The handlers that end a call's waits (signal(7) of the Linux manual pages).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// Handlers that were set without `SA_RESTART`.
    UnlessRestarted,
    /// All handlers.
    Always,
}

/// Code of the profiler that a thread executes: its own code, a callback, a hook or a signal
/// handler.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activity {
    pub id: Id,
    pub ends_with: TurnEvent,
    pub waiting: Option<Waiting>,
    /// Deadline of the wait (µs).
    pub until: Option<u64>,
    /// The wait ended at its deadline, or by a handler.
    pub timed_out: bool,
    /// The handlers that end the waits of the call of the system that the code is in.
    pub interruption: Option<Interruption>,
    /// A handler has ended a wait of that call.
    pub interrupted: bool,
    /// Access set added to each turn, because the code is in the middle of a call.
    pub within: Footprint,
    /// Place in the profiler's source of the last operation.
    pub place: Option<&'static Location<'static>>,
}

#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub kind: ThreadKind,
    pub name: Rc<str>,
    pub os: OsThreadId,
    /// Code of the profiler on the thread, innermost last.
    pub activities: Vec<Activity>,
    /// Threads that have suspended this one by calls of the system.
    pub suspended_by: Vec<ThreadIndex>,
    /// Thread that this one walks with `DoStackSnapshot`.
    pub walks: Option<ThreadIndex>,
    /// Nesting depth of calls of the runtime in callbacks.
    pub calls: u32,
    /// Number of calls that might have failed, if the search injects failures.
    pub fallible_calls: u32,
    /// Callbacks that the thread is in, innermost last.
    pub callbacks: Vec<Callback>,
    /// Number of walk callbacks that the thread is in.
    pub walk_callbacks: u32,
    /// Locks of the profiler that the thread has ever owned, each once.
    pub has_owned: Vec<u32>,
    /// The thread is in a call of the system that suspends another one: if it is suspended itself,
    /// it stops when the call returns (H-01).
    pub in_system: bool,
    /// The thread is in an unwinder that is not reentrant.
    pub unwinds: bool,
    /// Number of signals not handled yet.
    pub signals: u32,
    /// Number of calls that the thread is in which a signal interrupts in their waits alone.
    pub uninterrupted: u32,
    /// Registers that the current signal handler has interrupted.
    pub interrupted: Option<Box<Registers>>,
    /// Number of waits in which the thread was blocked, and of those that are over.
    pub waits: u64,
    pub went_on: u64,
    pub ended: bool,
    pub patience: Patience,
}

impl Thread {
    pub(super) fn new(kind: ThreadKind, name: Rc<str>, os: OsThreadId) -> Self {
        Self {
            kind,
            name,
            os,
            activities: Vec::new(),
            suspended_by: Vec::new(),
            walks: None,
            calls: 0,
            fallible_calls: 0,
            callbacks: Vec::new(),
            walk_callbacks: 0,
            has_owned: Vec::new(),
            in_system: false,
            unwinds: false,
            signals: 0,
            uninterrupted: 0,
            interrupted: None,
            waits: 0,
            went_on: 0,
            ended: false,
            patience: Patience::default(),
        }
    }

    /// Makes this a thread that begins. The memory of the thread that it was, in an ended interleaving, is used again.
    pub(super) fn restart(&mut self, kind: ThreadKind, name: Rc<str>, os: OsThreadId) {
        let mut activities = core::mem::take(&mut self.activities);
        let mut has_owned = core::mem::take(&mut self.has_owned);
        activities.clear();
        has_owned.clear();
        *self = Self { activities, has_owned, ..Self::new(kind, name, os) };
    }

    pub(super) fn summary(&self) -> ThreadSummary {
        ThreadSummary { name: self.name.to_string(), kind: self.kind, os: self.os }
    }

    /// Returns true if a signal would be handled in the profiler's code that the thread executes:
    /// signals are blocked while one is being handled, and in calls that are not interrupted.
    pub(super) fn takes_signal(&self) -> bool {
        let handles = |activity: &Activity| activity.ends_with == TurnEvent::SignalOver;
        self.signals > 0 && !self.activities.iter().any(handles) && !self.is_uninterrupted()
    }

    fn is_uninterrupted(&self) -> bool {
        let waiting = || self.activities.last().and_then(|activity| activity.waiting);
        self.uninterrupted > 0 && !matches!(waiting(), Some(Waiting::Condition(..)))
    }
}

/// Scheduler state that is not part of the simulated process.
#[derive(Debug, Default)]
pub(super) struct State {
    pub threads: Vec<Thread>,
    /// The profiler's locks.
    pub locks: Vec<LockState>,
    pub conditions: Vec<ConditionState>,
    pub events: Vec<bool>,
    /// Times at which the events were last set (µs), if they were, and that is of interest.
    pub set_at: Vec<Option<u64>>,
    /// The events whose times are of interest.
    pub timed: Vec<bool>,
    /// Virtual time (µs).
    pub now: u64,
    pub turns: u64,
    pub verdict: Option<Verdict>,
    /// The thread that starts the runtime: no thread of the program runs before it has ended.
    pub starter: Option<ThreadIndex>,
    /// Limits of waits expire while other threads can run.
    pub limits_expire: bool,
    /// Stacks have no places in the profiler's source.
    pub hides_places: bool,
    /// The clauses that have decided calls, in ascending order; `None` if they are not noted.
    pub clauses: Option<Vec<Clause>>,
    /// Number of times that each coverage point was passed.
    pub points: Vec<u32>,
    /// Rule violations without harm.
    pub broken: Vec<(ThreadIndex, ProfilerRule)>,
    /// The interleaving, if it is recorded.
    pub history: Option<History>,
}

impl State {
    /// Returns the innermost code of the profiler that a thread executes.
    pub(super) fn activity_mut(&mut self, thread: ThreadIndex) -> Option<&mut Activity> {
        self.threads.get_mut(thread.index())?.activities.last_mut()
    }
}
