//! The state of the process that profiling methods look at (contract §2.1).

use super::OsThreadId;
use super::lock::{Lock, Locks};
use clr_walker::profiling::EventMask;

/// Where a profiler is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ProfilerStatus {
    /// There is none.
    None,
    /// It is being detached (C-001).
    Detaching,
    /// It is in `Initialize`.
    InitializingForStartup,
    /// It is in `InitializeForAttach`.
    InitializingForAttach,
    /// It works.
    #[default]
    Active,
    /// It is being loaded.
    PreInitializing,
}

/// How far the runtime is suspended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Suspension {
    /// It runs.
    #[default]
    None,
    /// Threads are being stopped by this thread (C-017).
    Suspending(OsThreadId),
    /// All are stopped, on behalf of this thread.
    Suspended(OsThreadId),
}

impl Suspension {
    /// On behalf of whom it is.
    #[must_use]
    pub const fn by(self) -> Option<OsThreadId> {
        match self {
            Self::None => None,
            Self::Suspending(os) | Self::Suspended(os) => Some(os),
        }
    }
}

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the runtime itself")]
pub struct Process {
    /// Where the profiler is in its life.
    pub profiler: ProfilerStatus,
    /// The profiler was attached to the running process.
    pub attached: bool,
    /// What it is told, and may ask.
    pub event_mask: EventMask,
    /// `g_fEEStarted` (C-002).
    pub started: bool,
    /// The GC is fully initialized (C-012).
    pub gc_initialized: bool,
    /// How far the runtime is suspended.
    pub suspension: Suspension,
    /// `fProfilerRequestedRuntimeSuspend` (contract §2.4).
    pub suspended_by_profiler: bool,
    /// How many suspensions of the profiler have not been resumed.
    pub profiler_suspensions: u32,
    /// Its locks, but for the code manager's.
    pub locks: Locks,
    /// Who writes to the code manager's tables: the owner of [`Lock::CodeManager`].
    pub code_manager_writer: Option<OsThreadId>,
    /// The runtime does not know any more who has locked the list of threads: in the middle of a
    /// suspension it was enumerated, by which it was locked and unlocked once more (G17).
    pub thread_store_forgotten: bool,
    /// The stress log is on: each thread has one of its own, made when it is needed first
    /// (contract §2.4).
    pub stress_log: bool,
    /// The process is ending: nobody is told of threads that end from now on (G16).
    pub shutting_down: bool,
    /// The process's GS cookie; `None` if cookies are not looked at.
    pub gs_cookie: Option<u64>,
}

impl Default for Process {
    fn default() -> Self {
        Self {
            profiler: ProfilerStatus::Active,
            attached: false,
            event_mask: EventMask::ENABLE_STACK_SNAPSHOT,
            started: true,
            gc_initialized: true,
            suspension: Suspension::None,
            suspended_by_profiler: false,
            profiler_suspensions: 0,
            locks: Locks::default(),
            code_manager_writer: None,
            thread_store_forgotten: false,
            stress_log: false,
            shutting_down: false,
            gs_cookie: None,
        }
    }
}

impl Process {
    /// Whether `DoStackSnapshot` is allowed: a profiler is loaded or being loaded, and asked for it
    /// (contract §1.3).
    #[must_use]
    pub fn enables_stack_snapshot(&self) -> bool {
        self.profiler != ProfilerStatus::None
            && self.event_mask.contains(EventMask::ENABLE_STACK_SNAPSHOT)
    }

    /// Who has a lock.
    #[must_use]
    pub fn owner(&self, lock: Lock) -> Option<OsThreadId> {
        match lock {
            Lock::CodeManager => self.code_manager_writer,
            _ => self.locks.owner(lock),
        }
    }

    /// Who keeps a thread from taking a lock: another one, or itself if the lock cannot be taken twice.
    #[must_use]
    pub fn in_the_way(&self, lock: Lock, thread: OsThreadId) -> Option<OsThreadId> {
        self.owner(lock).filter(|owner| *owner != thread || !lock.is_reentrant())
    }

    /// Takes a lock, if nobody is in the way: whether that is so.
    pub fn try_acquire(&mut self, lock: Lock, thread: OsThreadId) -> bool {
        let free = self.in_the_way(lock, thread).is_none();
        if free {
            match lock {
                Lock::CodeManager => self.code_manager_writer = Some(thread),
                _ => self.locks.take(lock, thread),
            }
        }
        free
    }

    /// Gives a lock back once: whether the thread had it.
    pub fn release(&mut self, lock: Lock, thread: OsThreadId) -> bool {
        let had = self.owner(lock) == Some(thread);
        if had {
            match lock {
                Lock::CodeManager => self.code_manager_writer = None,
                _ => self.locks.give_back(lock),
            }
            self.thread_store_forgotten &= self.owner(Lock::ThreadStore).is_some();
        }
        had
    }

    /// The locks that a thread has.
    pub fn locks_of(&self, thread: OsThreadId) -> impl Iterator<Item = Lock> {
        let process = *self;
        Lock::ALL.into_iter().filter(move |lock| process.owner(*lock) == Some(thread))
    }
}
