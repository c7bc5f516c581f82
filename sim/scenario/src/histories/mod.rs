//! Histories in texts: a profiler made of small scripts, how its histories are searched, and what that
//! must come to.

mod act;
mod explore;
mod shrink;

pub use explore::{Explored, Exploring, HistoryDifference};
pub use shrink::ScriptStep;

use super::snapshot::Provenance;
use clr_explore::{Budget, Hazard, Limits, LockName, Rule, Strategy, Trail};
use clr_runtime::clause::Clause;
use clr_runtime::generation::{Generation, Generations};
use clr_runtime::profiling::{CallbackKind, HResult};
use clr_walker::mixed::Policy;

/// How many histories are searched if a text does not say.
pub(crate) const SCHEDULES: u64 = 1000;

/// In how many steps in order a bug may lie for `pct` if a text does not say.
pub(crate) const DEPTH: u32 = 3;

/// A profiler: its locks, its threads, and what it does when it is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfilerScript {
    /// The names of its locks.
    pub locks: Vec<String>,
    /// The names of its events.
    pub events: Vec<String>,
    /// Its threads.
    pub threads: Vec<ScriptThread>,
    /// What it does in callbacks: each kind once.
    pub callbacks: Vec<(CallbackKind, Vec<Action>)>,
    /// What it does in hooks that code calls directly.
    pub hook: Option<Vec<Action>>,
    /// What it does when a thread gets a signal.
    pub signal: Option<Vec<Action>>,
    /// What it does when the process is about to end by an exception that nothing has caught.
    pub crash: Option<Vec<Action>>,
}

/// A thread of the profiler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptThread {
    /// Its name, which no other thread of the text has.
    pub name: String,
    /// It has run managed code: the runtime knows it (H-02).
    pub managed: bool,
    /// What it does.
    pub actions: Vec<Action>,
}

/// A thread, for an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    /// The one that executes the action.
    Own,
    /// One of the program, or behind those one of the profiler, in the order of the text.
    Thread(u32),
}

/// What a snapshot's seed is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ScriptSeed {
    /// There is none.
    #[default]
    None,
    /// The registers that were last read of the thread; if none were, they are read.
    Leaf,
    /// The registers of its first managed frame, as unwinding without a mistake finds them.
    TopManaged,
}

/// What else is to be said of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Care {
    /// It is made again as long as the thread cannot be walked.
    pub again: bool,
    /// It is made only if `EnumThreads` tells of the thread.
    pub listed: bool,
    /// Each managed frame that it tells has to be on the stack.
    pub checked: bool,
}

/// A method of the runtime that a script can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `GetFunctionFromIP`, with the ip of the thread's registers.
    GetFunctionFromIp,
    /// `GetFunctionFromIP2`, with the same: it may trigger a GC (H-06).
    GetFunctionFromIp2,
    /// `GetFunctionFromIP3`, with the same.
    GetFunctionFromIp3,
    /// `GetFunctionInfo2`, with the function that was last found on the thread.
    GetFunctionInfo2,
    /// `GetCodeInfo2`, with the same.
    GetCodeInfo2,
    /// `GetThreadInfo`, with the thread's id.
    GetThreadInfo,
    /// `GetHandleFromThread`, with the thread's id.
    GetHandleFromThread,
    /// `GetCurrentThreadID`.
    GetCurrentThreadId,
    /// `EnumThreads`.
    EnumThreads,
    /// `InitializeCurrentThread`.
    InitializeCurrentThread,
    /// `GetEventMask`.
    GetEventMask,
}

/// Something that a profiler does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Suspends a thread by a call of the system.
    Suspend(Who),
    /// The same, does something, and resumes it. If it cannot be suspended, nothing is done.
    Suspended(Who, Vec<Action>),
    /// Resumes it.
    Resume(Who),
    /// Reads its registers, and remembers them.
    Context(Who),
    /// Writes the registers that were last read of it.
    SetContext(Who),
    /// Calls `DoStackSnapshot`.
    Snapshot {
        /// Of this thread.
        of: Who,
        /// With this seed.
        seed: ScriptSeed,
        /// It has to return this, if that matters.
        returns: Option<HResult>,
        /// How it is made, and looked at.
        care: Care,
        /// What the callback does for each frame.
        callback: Vec<Action>,
    },
    /// Walks the whole stack by the reference walker.
    Walk {
        /// Of this thread.
        of: Who,
        /// By this policy.
        policy: Policy,
    },
    /// Takes a lock, does something, and gives it back.
    Lock(u32, Vec<Action>),
    /// Takes a lock.
    Acquire(u32),
    /// Gives it back.
    Release(u32),
    /// Takes a lock if that can be had in time, and gives it back behind what is done.
    TryLock {
        /// Which.
        lock: u32,
        /// How long it waits (µs).
        micros: u64,
        /// What it does with the lock.
        then: Vec<Action>,
        /// What it does without.
        otherwise: Vec<Action>,
    },
    /// Leaves the callback of a walk by a jump to behind the walk.
    Escape,
    /// Calls `RequestProfilerDetach`.
    Detach,
    /// Sets an event.
    Set(u32),
    /// Resets it.
    Reset(u32),
    /// Waits until it is set.
    Wait {
        /// Which.
        event: u32,
        /// How long at most (µs); for ever if that is not said.
        micros: Option<u64>,
        /// What it does then.
        then: Vec<Action>,
        /// What it does if it was not set in time.
        otherwise: Vec<Action>,
    },
    /// Does something if an event was set longer ago than this (µs).
    Since {
        /// Which event.
        event: u32,
        /// How long ago.
        micros: u64,
        /// What it does.
        then: Vec<Action>,
    },
    /// Sleeps for so long (µs).
    Sleep(u64),
    /// Allocates memory and frees it.
    Allocate,
    /// Logs something.
    Log,
    /// Loads a library.
    LoadLibrary,
    /// Has the system look unwind data up.
    LookUpFunctionEntry,
    /// Unwinds its own stack by a library that is not re-entrant.
    Unwind,
    /// Calls a method of the runtime.
    Call {
        /// Which.
        method: Method,
        /// With something of this thread.
        of: Who,
        /// It has to return this, if that matters.
        returns: Option<HResult>,
    },
    /// Calls `SuspendRuntime`.
    SuspendRuntime,
    /// The same, does something, and calls `ResumeRuntime`. If the runtime is not suspended, nothing is
    /// done.
    RuntimeSuspended(Vec<Action>),
    /// Calls `ResumeRuntime`.
    ResumeRuntime,
    /// Makes a first call to the runtime, which comes to nothing.
    Prepare,
    /// Sends a signal to a thread.
    Signal(Who),
    /// Does something so many times.
    Repeat(u32, Vec<Action>),
    /// Waits for the end of a thread.
    Join(Who),
    /// The watchdog has seen enough: the history fails.
    Bark,
    /// Something is wrong: the history fails.
    Fail(String),
}

impl Action {
    /// What stands in its block.
    pub fn inner(&self) -> impl Iterator<Item = &Self> {
        let (block, otherwise): (&[Self], &[Self]) = match self {
            Self::Suspended(_, block)
            | Self::Snapshot { callback: block, .. }
            | Self::Since { then: block, .. }
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
}

/// How the histories of a text are searched, and what that must come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exploration {
    /// The way to search.
    pub by: Strategy,
    /// At most so many histories.
    pub schedules: u64,
    /// The same seed makes the same histories.
    pub seed: u64,
    /// Every instruction is a switch point.
    pub instructions: bool,
    /// A rule that is broken is a failure, even if nothing came of it.
    pub rules: bool,
    /// What it must come to: the first one that is for a generation counts, and where none is it is not
    /// searched.
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
            expect: Vec::new(),
        }
    }
}

impl Exploration {
    /// What is expected on a generation, and its place.
    #[must_use]
    pub fn expected_on(&self, generation: Generation) -> Option<(usize, &ExpectedHistory)> {
        self.expect.iter().enumerate().find(|(_, expect)| expect.on.contains(generation))
    }

    /// How long and how to search.
    #[must_use]
    pub fn budget(&self) -> Budget {
        let limits = Limits { every_instruction: self.instructions, ..Limits::default() };
        let budget = Budget::random(self.seed, self.schedules).by(self.by);
        Budget { limits, rules: self.rules, ..budget }
    }
}

/// What a search must come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedHistory {
    /// On which generations.
    pub on: Generations,
    /// How that is known.
    pub from: Provenance,
    /// How the first history that fails ends, or that none does.
    pub ends: ExpectedEnd,
    /// Who waits for whom in it: others may, too.
    pub waits: Vec<ExpectedWait>,
    /// The hazard that it is an instance of, if that matters.
    pub hazard: Option<Hazard>,
    /// The clauses that say so.
    pub clauses: Vec<Clause>,
    /// A history that must end so without a search.
    pub replay: Option<Trail>,
}

/// How a history is expected to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExpectedEnd {
    /// Well, all of them.
    Survives {
        /// And the search has seen all there is to see.
        everything: bool,
    },
    /// Threads wait for each other.
    Deadlock,
    /// There is no progress.
    LiveLock,
    /// Nobody is left to set an event.
    LostWakeUp,
    /// A thread that has been destroyed is used.
    DestroyedThread,
    /// Code that has been unloaded is used.
    UnloadedCode,
    /// The process dies.
    Killed,
    /// The watchdog barks.
    Watchdog,
    /// A rule is broken.
    Rule(Rule),
    /// The profiler says that something is wrong.
    Failed,
}

/// A thread waits for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExpectedWait {
    /// Who.
    pub waits: Who,
    /// For whom.
    pub for_whom: Who,
    /// Why, if that matters.
    pub why: Option<WaitKind>,
    /// For which lock, if that matters.
    pub lock: Option<LockName>,
}

/// Why a thread waits for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitKind {
    /// For a lock that the other owns.
    Lock,
    /// The other has suspended it.
    Suspended,
    /// For the other to stop.
    ToStop,
    /// The other has suspended the runtime.
    RuntimeSuspended,
    /// For the other's collection.
    Collection,
    /// For the other's end.
    Join,
    /// For the other to leave the code manager's tables.
    CodeManagerReader,
}
