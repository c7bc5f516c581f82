//! What happened in a history: who did what when, and how all stood afterwards.

use super::lock::LockName;
use super::verdict::Edge;
use clr_runtime::OsThreadId;
use clr_runtime::Outcome;
use clr_runtime::profiling::CallbackKind;
use core::fmt;

/// Which thread of a history: its place among them, threads of the program first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadIndex(pub u32);

impl ThreadIndex {
    /// As an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One of the program: an emulated CPU, in which the profiler's callbacks run too.
    App,
    /// One of the profiler's own, which the runtime does not know.
    Profiler,
    /// One of the profiler's own that has run managed code (H-02).
    ManagedProfiler,
}

impl Kind {
    /// Whether it is one of the program.
    #[must_use]
    pub const fn is_app(self) -> bool {
        matches!(self, Self::App)
    }
}

/// A thread as it is told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The system's id of it.
    pub os: OsThreadId,
}

/// Something that a thread did or that happened to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// It executed so many instructions of the program.
    Executed(u32),
    /// It took a lock.
    Acquired(LockName),
    /// It gave a lock back.
    Released(LockName),
    /// It found that it has to wait; for what, its standing tells.
    Waits,
    /// It suspended another thread.
    Suspended(ThreadIndex),
    /// It resumed another thread.
    Resumed(ThreadIndex),
    /// It became cooperative, or preemptive.
    Mode {
        /// Which.
        cooperative: bool,
    },
    /// A callback of the profiler begins.
    Callback(CallbackKind),
    /// It is over.
    CallbackOver(CallbackKind),
    /// A hook of the profiler begins.
    Hook,
    /// It is over.
    HookOver,
    /// A signal's handler begins.
    Signal,
    /// It is over.
    SignalOver,
    /// A profiling method is called.
    Called(&'static str),
    /// A profiling method ended.
    Returned(&'static str, Outcome),
    /// `StackSnapshotCallback` begins.
    SnapshotCallback,
    /// It reads the registers of another thread.
    Context(ThreadIndex),
    /// It does something of the system for which a lock may be needed.
    System(&'static str),
    /// It sleeps for so long (µs).
    Sleeps(u64),
    /// A wait of its own ended because its time was over.
    TimedOut,
    /// It says this.
    Says(&'static str),
    /// It begins.
    Begins,
    /// It has ended.
    Ends,
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Executed(1) => f.write_str("executes an instruction"),
            Self::Executed(count) => write!(f, "executes {count} instructions"),
            Self::Acquired(lock) => write!(f, "takes {lock}"),
            Self::Released(lock) => write!(f, "gives back {lock}"),
            Self::Waits => f.write_str("has to wait"),
            Self::Suspended(thread) => write!(f, "suspends thread {}", thread.0),
            Self::Resumed(thread) => write!(f, "resumes thread {}", thread.0),
            Self::Mode { cooperative: true } => f.write_str("becomes cooperative"),
            Self::Mode { cooperative: false } => f.write_str("becomes preemptive"),
            Self::Callback(kind) => write!(f, "enters {}", kind.name()),
            Self::CallbackOver(kind) => write!(f, "leaves {}", kind.name()),
            Self::Hook => f.write_str("enters a hook"),
            Self::HookOver => f.write_str("leaves a hook"),
            Self::Signal => f.write_str("handles a signal"),
            Self::SignalOver => f.write_str("has handled a signal"),
            Self::Called(method) => write!(f, "calls {method}"),
            Self::Returned(method, outcome) => write!(f, "{method}: {outcome}"),
            Self::SnapshotCallback => f.write_str("gets a frame"),
            Self::Context(thread) => write!(f, "reads the registers of thread {}", thread.0),
            Self::System(what) => write!(f, "{what}"),
            Self::Sleeps(micros) => write!(f, "sleeps for {micros} µs"),
            Self::TimedOut => f.write_str("has waited long enough"),
            Self::Says(words) => f.write_str(words),
            Self::Begins => f.write_str("begins"),
            Self::Ends => f.write_str("ends"),
        }
    }
}

/// How a thread stands behind a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Its stack, leaf first: functions of the program and of the runtime, and what of the profiler
    /// runs on it.
    pub stack: Vec<String>,
    /// The locks that it owns.
    pub holds: Vec<LockName>,
    /// Who keeps it from going on, and why.
    pub edges: Vec<Edge>,
    /// What it does instead of going on if nobody keeps it from that, in words: it sleeps.
    pub waits: Option<String>,
    /// By whom it is suspended, once for each time.
    pub suspended_by: Vec<ThreadIndex>,
    /// Its mode, if the runtime knows it.
    pub cooperative: Option<bool>,
    /// It has ended.
    pub ended: bool,
}

/// A turn of a thread: from one switch point to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// When it began (µs of virtual time).
    pub at: u64,
    /// Whose it was.
    pub thread: ThreadIndex,
    /// What happened, in order.
    pub happenings: Vec<Happening>,
    /// How each thread stands behind it, if the history was recorded with that.
    pub standing: Vec<Standing>,
}

/// A history: everything that happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Its threads.
    pub lanes: Vec<Lane>,
    /// The names of the profiler's locks.
    pub locks: Vec<String>,
    /// Their turns, in order.
    pub slices: Vec<Slice>,
}

impl History {
    /// The name of a thread.
    #[must_use]
    pub fn name(&self, thread: ThreadIndex) -> &str {
        self.lanes.get(thread.index()).map_or("", |lane| &lane.name)
    }

    /// What a lock is called.
    #[must_use]
    pub fn lock_name(&self, lock: LockName) -> String {
        let name = match lock {
            LockName::Profiler(index) => self.locks.get(index as usize),
            LockName::Runtime(_) => None,
        };
        name.map_or_else(|| lock.to_string(), |name| format!("the profiler's lock {name:?}"))
    }
}
