//! Recorded histories: the turns of all threads, and the thread status after each turn.

use super::ids::{LockName, ThreadIndex};
use super::verdict::{Edge, ProfilerRule};
use clr_runtime::OsThreadId;
use clr_runtime::Outcome;
use clr_runtime::profiling::{CallFault, CallbackKind};
use core::fmt;
use std::sync::Arc;

/// Kind of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThreadKind {
    /// A thread of the program: an emulated CPU, which also executes the profiler's callbacks.
    App,
    /// A thread of the profiler that the runtime does not know.
    Profiler,
    /// A thread of the profiler that has run managed code (H-02).
    ManagedProfiler,
}

impl ThreadKind {
    /// Returns true if this is a thread of the program.
    #[must_use]
    pub const fn is_app(self) -> bool {
        matches!(self, Self::App)
    }
}

/// Description of a thread in an interleaving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadSummary {
    /// Name of the thread.
    pub name: String,
    /// Kind of the thread.
    pub kind: ThreadKind,
    /// Id of the thread in the operating system.
    pub os: OsThreadId,
}

/// A turn event: an action of a thread, or an effect on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEvent {
    /// The thread executed this number of instructions of the program.
    Executed(u32),
    /// The thread took a lock.
    Acquired(LockName),
    /// The thread released a lock.
    Released(LockName),
    /// The thread has to wait; the reason is in its status.
    Waits,
    /// The thread suspended another thread.
    Suspended(ThreadIndex),
    /// The thread started another thread.
    Started(ThreadIndex),
    /// The thread resumed another thread.
    Resumed(ThreadIndex),
    /// The thread became cooperative or preemptive.
    Mode {
        /// The new mode is cooperative.
        cooperative: bool,
    },
    /// A callback of the profiler begins.
    Callback(CallbackKind),
    /// A callback of the profiler ends.
    CallbackOver(CallbackKind),
    /// A hook of the profiler begins.
    Hook,
    /// A hook of the profiler ends.
    HookOver,
    /// A call of an export of the profiler begins.
    Export,
    /// A call of an export of the profiler ends.
    ExportOver,
    /// A signal handler begins.
    Signal,
    /// A signal handler ends.
    SignalOver,
    /// A profiling method is called, about this thread if it is another one.
    Called(&'static str, Option<ThreadIndex>),
    /// A profiling method ended.
    Returned(&'static str, Outcome),
    /// The search makes a method fail so.
    Injected(CallFault),
    /// The method has failed for this reason, an index of [`History::reasons`].
    Refused(u32),
    /// `StackSnapshotCallback` begins.
    SnapshotCallback,
    /// The thread reads the registers of another thread.
    Context(ThreadIndex),
    /// The thread performs an action of the system that may need a lock.
    System(&'static str),
    /// The thread sleeps for this time (µs).
    Sleeps(u64),
    /// A timed wait of the thread ended because its time was over.
    TimedOut,
    /// A wait of the thread in a call of the system ended because of a signal's handler.
    Interrupted,
    /// The thread notified the condition variable of this number, on which no thread waited: the notification is lost.
    Unheard(u32),
    /// The thread breaks this rule, for the first time.
    Breaks(ProfilerRule),
    /// The thread records this text.
    Says(&'static str),
    /// The thread begins.
    Begins,
    /// The thread has ended.
    Ends,
}

impl TurnEvent {
    /// The thread writes the registers of another one.
    pub const REDIRECTS: Self = Self::System("writes the registers of a thread");

    /// The thread leaves the callback of a walk by a jump.
    pub const ESCAPES: Self = Self::System("leaves the callback of a walk by a jump");

    /// A walk reported a frame that is not on the stack.
    pub const UNTRUE: Self = Self::System("gets a frame that is not on the stack");

    /// A walk from a seed reported a frame that is not on the stack.
    pub const UNTRUE_SEED: Self = Self::System("gets a frame from a seed that is not on the stack");

    /// A walk claims to have the whole stack, and has not.
    pub const CLAIMS: Self = Self::System("takes a part of a stack for the whole");
}

impl fmt::Display for TurnEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Executed(1) => f.write_str("executes an instruction"),
            Self::Executed(count) => write!(f, "executes {count} instructions"),
            Self::Acquired(lock) => write!(f, "takes {lock}"),
            Self::Released(lock) => write!(f, "gives back {lock}"),
            Self::Waits => f.write_str("has to wait"),
            Self::Suspended(thread) => write!(f, "suspends thread {}", thread.0),
            Self::Started(thread) => write!(f, "starts thread {}", thread.0),
            Self::Resumed(thread) => write!(f, "resumes thread {}", thread.0),
            Self::Mode { cooperative: true } => f.write_str("becomes cooperative"),
            Self::Mode { cooperative: false } => f.write_str("becomes preemptive"),
            Self::Callback(kind) => write!(f, "enters {}", kind.name()),
            Self::CallbackOver(kind) => write!(f, "leaves {}", kind.name()),
            Self::Hook => f.write_str("enters a hook"),
            Self::HookOver => f.write_str("leaves a hook"),
            Self::Export => f.write_str("calls an export of the profiler"),
            Self::ExportOver => f.write_str("has called an export of the profiler"),
            Self::Signal => f.write_str("handles a signal"),
            Self::SignalOver => f.write_str("has handled a signal"),
            Self::Called(method, None) => write!(f, "calls {method}"),
            Self::Called(method, Some(thread)) => {
                write!(f, "calls {method} of thread {}", thread.0)
            }
            Self::Returned(method, outcome) => write!(f, "{method}: {outcome}"),
            Self::Injected(fault) => write!(f, "{}", injection(fault)),
            Self::Breaks(rule) => write!(f, "breaks a rule: {rule}"),
            Self::Refused(reason) => write!(f, "has failed for reason {reason}"),
            Self::SnapshotCallback => f.write_str("gets a frame"),
            Self::Context(thread) => write!(f, "reads the registers of thread {}", thread.0),
            Self::System(what) => write!(f, "{what}"),
            Self::Sleeps(micros) => write!(f, "sleeps for {micros} µs"),
            Self::TimedOut => f.write_str("has waited long enough"),
            Self::Interrupted => f.write_str("is interrupted in its wait"),
            Self::Unheard(condition) => {
                write!(f, "notifies condition {condition}, on which no thread waits")
            }
            Self::Says(words) => f.write_str(words),
            Self::Begins => f.write_str("begins"),
            Self::Ends => f.write_str("ends"),
        }
    }
}

/// Returns words for an injected failure.
fn injection(CallFault { method, result, frames }: &CallFault) -> String {
    let after = match frames {
        0 => "",
        _ => " after a frame",
    };
    format!("{method} is made to fail with {result}{after}: fault injection")
}

/// Status of a thread after a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadStatus {
    /// Stack, leaf first: functions of the program and of the runtime, and code of the profiler
    /// that runs on the thread. Turns that do not change it share it.
    pub stack: Arc<[String]>,
    /// Locks that the thread owns.
    pub holds: Vec<LockName>,
    /// Threads that block this one, with the reasons.
    pub edges: Vec<Edge>,
    /// Reason for waiting that is not another thread, in words, such as sleeping.
    pub waits: Option<String>,
    /// Threads that have suspended this one, once for each suspension.
    pub suspended_by: Vec<ThreadIndex>,
    /// The thread is in a call of the system, which it finishes even if it is suspended (H-01).
    pub in_system: bool,
    /// Mode, if the runtime knows the thread.
    pub cooperative: Option<bool>,
    /// The thread has ended.
    pub ended: bool,
}

/// A turn of a thread: execution from one switch point to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Start of the turn (µs of virtual time).
    pub at: u64,
    /// Thread that had the turn.
    pub thread: ThreadIndex,
    /// Events of the turn, in order.
    pub events: Vec<TurnEvent>,
    /// Status of each thread after the turn, if the interleaving was recorded with it.
    pub statuses: Vec<ThreadStatus>,
}

/// A recorded interleaving.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Threads of the interleaving.
    pub threads: Vec<ThreadSummary>,
    /// Names of the profiler's locks.
    pub locks: Vec<String>,
    /// Reasons of failed calls, each with its clauses.
    pub reasons: Vec<String>,
    /// Turns, in order.
    pub turns: Vec<Turn>,
    /// The thread that starts the runtime, and ends before the program begins.
    pub starter: Option<ThreadIndex>,
}

impl History {
    /// Returns the name of a thread.
    #[must_use]
    pub fn name(&self, thread: ThreadIndex) -> &str {
        self.threads.get(thread.index()).map_or("", |thread| &thread.name)
    }

    /// Returns the reason of a failed call.
    #[must_use]
    pub fn reason(&self, reason: u32) -> &str {
        self.reasons.get(reason as usize).map_or("", String::as_str)
    }

    /// Returns the name of a lock.
    #[must_use]
    pub fn lock_name(&self, lock: LockName) -> String {
        let name = match lock {
            LockName::Profiler(index) => self.locks.get(index as usize),
            LockName::Runtime(_) => None,
        };
        name.map_or_else(|| lock.to_string(), |name| format!("the profiler's lock {name:?}"))
    }
}
