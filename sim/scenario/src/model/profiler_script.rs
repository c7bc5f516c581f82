//! Interleavings in texts: a profiler made of small scripts, the search settings, and the expected
//! results.

use super::profiler_method::ProfilerMethod;
use super::scenario::Scenario;
use crate::model::snapshot::Provenance;
use clr_explore::{Budget, Faults, Limits, LockName, ProfilerRule, ScheduleString, Strategy};
use clr_runtime::clause::Clause;
use clr_runtime::generation::{Generation, Generations};
use clr_runtime::profiling::{CallbackKind, HResult, Policy};
use clr_story::Hazard;

/// Number of interleavings to search if a text does not give one.
pub(crate) const SCHEDULES: u64 = 1000;

/// Depth of bugs (number of ordered steps) for `pct` if a text does not give one.
pub(crate) const DEPTH: u32 = 3;

/// A profiler: locks, threads, and actions in callbacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfilerScript {
    /// Names of the locks.
    pub locks: Vec<String>,
    /// Names of the events.
    pub events: Vec<String>,
    /// Threads of the profiler.
    pub threads: Vec<ScriptThread>,
    /// Actions in callbacks; each kind at most once.
    pub callbacks: Vec<(CallbackKind, Vec<Action>)>,
    /// Actions in hooks that code calls directly.
    pub hook: Option<Vec<Action>>,
    /// Actions in the signal handler of a thread.
    pub signal: Option<Vec<Action>>,
    /// Actions when the process is about to end by an unhandled exception.
    pub crash: Option<Vec<Action>>,
}

impl ProfilerScript {
    /// Returns all actions, without those in blocks.
    pub(crate) fn actions(&self) -> impl Iterator<Item = &Action> {
        let threads = self.threads.iter().map(|thread| &thread.actions);
        let callbacks = self.callbacks.iter().map(|(_, actions)| actions);
        let others = self.hook.iter().chain(&self.signal).chain(&self.crash);
        threads.chain(callbacks).chain(others).flatten()
    }

    /// Returns true if the script asks since when an event is set.
    pub(crate) fn times(&self, event: u32) -> bool {
        self.actions().any(|action| action.times(event))
    }
}

/// A thread of the profiler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptThread {
    /// Name, unique among the threads of the text.
    pub name: String,
    /// The thread has run managed code, so the runtime knows it (H-02).
    pub managed: bool,
    /// Actions of the thread.
    pub actions: Vec<Action>,
}

/// The thread that an action names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ThreadName {
    /// The thread that executes the action.
    #[default]
    Own,
    /// Index of a thread: those of the program in the order of the text, followed by those of the
    /// profiler.
    Thread(u32),
}

/// The source of a snapshot's seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ScriptSeed {
    /// The call has no seed.
    #[default]
    None,
    /// The registers of the thread that were read last; they are read if there are none.
    Leaf,
    /// The registers of the first managed frame, as correct unwinding finds them.
    TopManaged,
}

/// Options of a snapshot in a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SnapshotOptions {
    /// The snapshot is repeated as long as the thread cannot be walked.
    pub again: bool,
    /// The snapshot is made only if `EnumThreads` lists the thread.
    pub listed: bool,
    /// Each managed frame that is reported must be on the stack.
    pub checked: bool,
}

/// An action of a profiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Suspends a thread with a call of the operating system.
    Suspend(ThreadName),
    /// Suspends a thread, executes actions, and resumes the thread. Nothing is executed if the
    /// suspension fails.
    Suspended(ThreadName, Vec<Action>),
    /// Resumes a thread.
    Resume(ThreadName),
    /// Reads and remembers the registers of a thread.
    Context(ThreadName),
    /// Writes the registers of a thread that were read last.
    SetContext(ThreadName),
    /// Calls `DoStackSnapshot`.
    Snapshot {
        /// Thread to walk.
        of: ThreadName,
        /// Source of the seed.
        seed: ScriptSeed,
        /// Expected result; `None` if it is not checked.
        returns: Option<HResult>,
        /// Options of the call.
        care: SnapshotOptions,
        /// Actions of the callback for each frame.
        callback: Vec<Action>,
    },
    /// Walks the whole stack with the reference walker.
    Walk {
        /// Thread to walk.
        of: ThreadName,
        /// Policy of the walk.
        policy: Policy,
        /// The address that the profiler takes for the return address of a thread's first function
        /// (VA); `None` for the true one.
        root: Option<u64>,
        /// The interleaving fails if the walk claims to have the whole stack, and has not.
        checked: bool,
    },
    /// Takes a lock, executes actions, and releases the lock.
    Lock(u32, Vec<Action>),
    /// Takes a lock.
    Acquire(u32),
    /// Releases a lock.
    Release(u32),
    /// Takes a lock if it becomes free in time, and releases it after the actions.
    TryLock {
        /// Index of the lock.
        lock: u32,
        /// Maximum time to wait (µs).
        micros: u64,
        /// Actions while the lock is held.
        then: Vec<Action>,
        /// Actions if the lock was not taken.
        otherwise: Vec<Action>,
    },
    /// Leaves the callback of a walk by a jump past the walk.
    Escape,
    /// Calls `RequestProfilerDetach`.
    Detach,
    /// Sets an event.
    Set(u32),
    /// Resets an event.
    Reset(u32),
    /// Waits until an event is set.
    Wait {
        /// Index of the event.
        event: u32,
        /// Maximum time to wait (µs); `None` waits for ever.
        micros: Option<u64>,
        /// Actions after the event was set.
        then: Vec<Action>,
        /// Actions if the event was not set in time.
        otherwise: Vec<Action>,
    },
    /// Executes actions if an event was set longer ago than a time.
    Since {
        /// Index of the event.
        event: u32,
        /// Time (µs).
        micros: u64,
        /// Actions to execute.
        then: Vec<Action>,
    },
    /// Sleeps for a time (µs).
    Sleep(u64),
    /// Allocates memory and frees it.
    Allocate,
    /// Writes to a log.
    Log,
    /// Loads a library.
    LoadLibrary,
    /// Calls the operating system's lookup of unwind data.
    LookUpFunctionEntry,
    /// Unwinds its own stack with a library that is not re-entrant.
    Unwind,
    /// Calls a method of the runtime.
    Call {
        /// Method to call.
        method: ProfilerMethod,
        /// Thread that the arguments are taken from.
        of: ThreadName,
        /// Expected result; `None` if it is not checked.
        returns: Option<HResult>,
        /// Actions if the call succeeds.
        then: Vec<Action>,
    },
    /// Calls `SuspendRuntime`.
    SuspendRuntime,
    /// Calls `SuspendRuntime`, executes actions, and calls `ResumeRuntime`. Nothing is executed if
    /// the suspension fails.
    RuntimeSuspended(Vec<Action>),
    /// Calls `ResumeRuntime`.
    ResumeRuntime,
    /// Makes a first call to the runtime, which has no effect.
    Prepare,
    /// Sends a signal to a thread.
    Signal(ThreadName),
    /// Repeats actions a number of times.
    Repeat(u32, Vec<Action>),
    /// Waits for the end of a thread.
    Join(ThreadName),
    /// Lets the watchdog give up: the interleaving fails.
    Bark,
    /// Reports an error: the interleaving fails.
    Fail(String),
}

impl Action {
    /// Returns the actions in the action's block, including those of `else`.
    pub fn inner(&self) -> impl Iterator<Item = &Self> {
        let (block, otherwise): (&[Self], &[Self]) = match self {
            Self::Suspended(_, block)
            | Self::Snapshot { callback: block, .. }
            | Self::Since { then: block, .. }
            | Self::Call { then: block, .. }
            | Self::Lock(_, block)
            | Self::RuntimeSuspended(block)
            | Self::Repeat(_, block) => (block, &[]),
            Self::TryLock { then, otherwise, .. } | Self::Wait { then, otherwise, .. } => {
                (then, otherwise)
            }
            _ => (&[], &[]),
        };
        block.iter().chain(otherwise)
    }

    /// Returns true if the action asks since when an event is set.
    pub(crate) fn times(&self, event: u32) -> bool {
        matches!(self, Self::Since { event: timed, .. } if *timed == event)
            || self.inner().any(|action| action.times(event))
    }
}

/// A search of the interleavings of a text, with its expectations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exploration {
    /// Search algorithm.
    pub by: Strategy,
    /// Maximum number of interleavings.
    pub schedules: u64,
    /// Seed of the search: the same seed makes the same interleavings.
    pub seed: u64,
    /// Every instruction is a switch point.
    pub instructions: bool,
    /// A rule violation is a failure, even if it has no consequences.
    pub rules: bool,
    /// Failures of calls that the search injects.
    pub faults: Faults,
    /// Expectations. For each generation the first matching one is used; on a generation without
    /// one, no search is made.
    pub expect: Vec<ExpectedHistory>,
}

impl Default for Exploration {
    fn default() -> Self {
        Self {
            by: Strategy::Random,
            schedules: SCHEDULES,
            seed: 0,
            instructions: false,
            rules: false,
            faults: Faults::default(),
            expect: Vec::new(),
        }
    }
}

impl Exploration {
    /// Returns the expectation for a generation, with its index.
    #[must_use]
    pub fn expected_on(&self, generation: Generation) -> Option<(usize, &ExpectedHistory)> {
        self.expect.iter().enumerate().find(|(_, expect)| expect.on.contains(generation))
    }

    /// Returns the budget and the settings of the search.
    #[must_use]
    pub fn budget(&self) -> Budget {
        let limits = Limits { every_instruction: self.instructions, ..Limits::default() };
        let budget = Budget::random(self.seed, self.schedules).by(self.by);
        Budget { limits, rules: self.rules, faults: self.faults, ..budget }
    }
}

/// The expected result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedHistory {
    /// Generations that the expectation is for.
    pub on: Generations,
    /// Provenance of the expectation.
    pub from: Provenance,
    /// End of the first interleaving that fails, or the statement that none fails.
    pub ends: ExpectedEnd,
    /// Waits that the deadlock must contain, perhaps among others.
    pub waits: Vec<ExpectedWait>,
    /// Hazard that the failure is an instance of; `None` if it is not checked.
    pub hazard: Option<Hazard>,
    /// Clauses that state the rule.
    pub clauses: Vec<Clause>,
    /// Schedule string of an interleaving that must end like this without a search.
    pub replay: Option<ScheduleString>,
}

/// The expected end of an interleaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExpectedEnd {
    /// All interleavings end without a failure.
    Survives {
        /// The search is exhaustive.
        everything: bool,
    },
    /// Threads wait for each other.
    Deadlock,
    /// There is no progress.
    LiveLock,
    /// No thread is left to set an event.
    LostWakeUp,
    /// A thread that has been destroyed is used.
    DestroyedThread,
    /// Code that has been unloaded is used.
    UnloadedCode,
    /// The process dies.
    Killed,
    /// The watchdog gives up.
    Watchdog,
    /// A profiler rule is violated.
    Rule(ProfilerRule),
    /// The profiler reports an error.
    Failed,
}

/// A thread that waits for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExpectedWait {
    /// The waiting thread.
    pub waits: ThreadName,
    /// The thread that it waits for.
    pub for_whom: ThreadName,
    /// Reason of the wait; `None` if it is not checked.
    pub why: Option<WaitKind>,
    /// Lock that the thread waits for; `None` if it is not checked.
    pub lock: Option<LockName>,
}

/// The reason why a thread waits for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitKind {
    /// The other thread owns a lock.
    Lock,
    /// The other thread has suspended the waiting one.
    Suspended,
    /// The thread waits for the other thread to stop.
    ToStop,
    /// The other thread has suspended the runtime.
    RuntimeSuspended,
    /// The thread waits for the other thread's GC.
    Collection,
    /// The thread waits for the other thread's end.
    Join,
    /// The thread waits for the other thread to leave the code manager's tables.
    CodeManagerReader,
    /// The thread waits for an event that the other thread could set, or for its notification.
    WakeUp,
    /// The thread waits for itself: a signal handler of it has interrupted a wait, and waits again.
    InterruptedWait,
}

impl Scenario {
    /// Returns the name of the thread that an action names.
    #[must_use]
    pub fn name_of(&self, who: ThreadName) -> &str {
        let ThreadName::Thread(index) = who else { return "own" };
        let index = index as usize;
        let threads = self.threads.iter().map(|thread| &*thread.name);
        let profiler = self.profiler.iter().flat_map(|profiler| &profiler.threads);
        let mut names = threads.chain(profiler.map(|thread| &*thread.name));
        names.nth(index).unwrap_or_default()
    }

    /// Returns the name of a lock in a text.
    #[must_use]
    pub fn name_of_lock(&self, lock: LockName) -> &str {
        match lock {
            LockName::Runtime(lock) => lock.name(),
            LockName::Profiler(index) => {
                let name = self.profiler.as_ref().and_then(|it| it.locks.get(index as usize));
                name.map_or("", String::as_str)
            }
        }
    }
}
