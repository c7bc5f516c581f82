//! The state of the process that profiling methods look at (contract §2.1).

use super::lock::{Lock, Locks};
use super::profiling::CallbackKind;
use super::{HeapKind, OsThreadId};
use clr_walker::profiling::EventMask;

/// The events of `COR_PRF_HIGH_MONITOR` (corprof.idl) that a profiler has asked for and the runtime knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HighEvents(pub u32);

impl HighEvents {
    /// `COR_PRF_HIGH_BASIC_GC`: the start and the end of GCs, without details.
    pub const BASIC_GC: Self = Self(0x10);
    /// `COR_PRF_HIGH_MONITOR_GC_MOVED_OBJECTS`: the objects that a GC has moved or left where they are (`ETW::GCLog::MovedReference` in
    /// src/vm/eventtrace.cpp of 5.0.2).
    pub const MOVED_OBJECTS: Self = Self(0x20);
    /// `COR_PRF_HIGH_MONITOR_LARGEOBJECT_ALLOCATED`: allocations of large objects.
    pub const LARGE_OBJECTS: Self = Self(0x40);
    /// `COR_PRF_HIGH_MONITOR_PINNEDOBJECT_ALLOCATED`: allocations in the pinned heap.
    pub const PINNED_OBJECTS: Self = Self(0x100);
    /// `COR_PRF_HIGH_MONITOR_GC_SKIP_ALLOCATED_BY_CLASS_STATISTIC`: no `ObjectsAllocatedByClass` (.NET 11: the CLR's own test of it passes in
    /// 11.0.0, and fails in 8.0.34 and 10.0.15).
    pub const SKIP_STATISTIC: Self = Self(0x200);

    /// Returns true if all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Life cycle of a profiler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ProfilerStatus {
    /// No profiler is loaded.
    None,
    /// The profiler is being detached (C-001).
    Detaching,
    /// The profiler is in `Initialize`.
    InitializingForStartup,
    /// The profiler is in `InitializeForAttach`.
    InitializingForAttach,
    /// The profiler is fully initialized.
    #[default]
    Active,
    /// The profiler is being loaded.
    PreInitializing,
}

/// Progress of a suspension of the runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Suspension {
    /// The runtime is not suspended.
    #[default]
    None,
    /// This thread is stopping the others (C-017).
    Suspending(OsThreadId),
    /// All threads are stopped, on behalf of this thread.
    Suspended(OsThreadId),
}

impl Suspension {
    /// Returns the thread on whose behalf the runtime is suspended.
    pub const fn by(self) -> Option<OsThreadId> {
        match self {
            Self::None => None,
            Self::Suspending(os) | Self::Suspended(os) => Some(os),
        }
    }
}

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the runtime itself")]
pub struct Process {
    /// Life cycle state of the profiler.
    pub profiler: ProfilerStatus,
    /// The profiler was attached to the running process.
    pub attached: bool,
    /// The profiler is loaded for notifications only, so that it changes nothing of the program (.NET 6 and later).
    pub notification_only: bool,
    /// Event mask of the profiler: the callbacks it receives and the methods it may call.
    pub event_mask: EventMask,
    /// The other events of the profiler.
    pub high_events: HighEvents,
    /// `g_fEEStarted` (C-002).
    pub started: bool,
    /// The GC is fully initialized (C-012).
    pub gc_initialized: bool,
    /// Progress of the current suspension.
    pub suspension: Suspension,
    /// `fProfilerRequestedRuntimeSuspend` (contract §2.4).
    pub suspended_by_profiler: bool,
    /// Number of suspensions by the profiler that have not been resumed.
    pub profiler_suspensions: u32,
    /// Locks of the process, except the code manager's.
    pub locks: Locks,
    /// Writer of the code manager's tables: the owner of [`Lock::CodeManager`].
    pub code_manager_writer: Option<OsThreadId>,
    /// The runtime has lost the owner of the lock of the thread list: the list was enumerated in
    /// the middle of a suspension, which locked and unlocked it once more (G17).
    pub thread_store_forgotten: bool,
    /// The stress log is on: each thread gets its own log when it first needs one (contract §2.4).
    pub stress_log: bool,
    /// The process is ending: threads that end from now on are not reported (G16).
    pub shutting_down: bool,
    /// A session of the profiler's receives AllocationTick, an event of EventPipe: each allocation that
    /// takes memory from the GC delivers it.
    pub allocation_ticks: bool,
    /// GS cookie of the process; `None` if cookies are not checked.
    pub gs_cookie: Option<u64>,
}

impl Default for Process {
    fn default() -> Self {
        Self {
            profiler: ProfilerStatus::Active,
            attached: false,
            notification_only: false,
            event_mask: EventMask::ENABLE_STACK_SNAPSHOT,
            high_events: HighEvents(0),
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
            allocation_ticks: false,
            gs_cookie: None,
        }
    }
}

impl Process {
    /// Sets the stage of life of a profiler that has asked for nothing.
    pub const fn reset_profiler(&mut self, profiler: ProfilerStatus) {
        self.profiler = profiler;
        self.event_mask = EventMask(0);
        self.high_events = HighEvents(0);
        self.allocation_ticks = false;
    }

    /// Returns true if `DoStackSnapshot` is allowed: a profiler is loaded or being loaded, and has
    /// asked for it (contract §1.3).
    pub fn enables_stack_snapshot(&self) -> bool {
        self.profiler != ProfilerStatus::None
            && self.event_mask.contains(EventMask::ENABLE_STACK_SNAPSHOT)
    }

    /// Returns true if the profiler's event masks request a callback (contract §1.3). The basic events of GCs are their start and end
    /// (recorded on 3.1.23, 8.0.34, 9.0.23, 10.0.15 and 11.0.0).
    pub const fn requests(&self, kind: CallbackKind) -> bool {
        use CallbackKind as Kind;
        let high = self.high_events;
        match kind {
            Kind::ObjectsAllocatedByClass if high.contains(HighEvents::SKIP_STATISTIC) => false,
            Kind::GarbageCollectionStarted | Kind::GarbageCollectionFinished
                if high.contains(HighEvents::BASIC_GC) =>
            {
                true
            }
            Kind::MovedReferences | Kind::SurvivingReferences
                if high.contains(HighEvents::MOVED_OBJECTS) =>
            {
                true
            }
            _ => self.event_mask.contains(kind.event()),
        }
    }

    /// Returns true if the profiler has asked for allocations in a heap, but for those of all objects.
    pub const fn requests_objects_of(&self, heap: HeapKind) -> bool {
        match heap {
            HeapKind::Large => self.high_events.contains(HighEvents::LARGE_OBJECTS),
            HeapKind::Pinned => self.high_events.contains(HighEvents::PINNED_OBJECTS),
            HeapKind::Generations => false,
        }
    }

    /// Returns the owner of a lock.
    pub fn owner(&self, lock: Lock) -> Option<OsThreadId> {
        match lock {
            Lock::CodeManager => self.code_manager_writer,
            _ => self.locks.owner(lock),
        }
    }

    /// Returns the thread that prevents `thread` from taking a lock: another one, or `thread`
    /// itself if the lock is not reentrant.
    pub fn in_the_way(&self, lock: Lock, thread: OsThreadId) -> Option<OsThreadId> {
        self.owner(lock).filter(|owner| *owner != thread || !lock.is_reentrant())
    }

    /// Takes a lock if no owner prevents it. Returns true if the lock was taken.
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

    /// Releases a lock once. Returns true if the thread was its owner.
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

    /// Returns the locks that a thread owns.
    pub fn locks_of(&self, thread: OsThreadId) -> impl Iterator<Item = Lock> {
        let process = *self;
        Lock::ALL.into_iter().filter(move |lock| process.owner(*lock) == Some(thread))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: OsThreadId = OsThreadId(1);
    const OTHER: OsThreadId = OsThreadId(2);

    fn owned(process: &Process, thread: OsThreadId) -> Vec<Lock> {
        process.locks_of(thread).collect()
    }

    /// The loader lock and the thread store are recursive locks, or Crsts, that their owner may take again.
    #[test]
    fn a_lock_has_one_owner_until_it_is_released_as_often_as_it_was_taken() {
        for lock in Lock::ALL {
            let is_reentrant = matches!(lock, Lock::Loader | Lock::ThreadStore);
            let mut process = Process::default();
            assert_eq!((process.owner(lock), process.in_the_way(lock, OWNER)), (None, None));
            assert!(!process.release(lock, OWNER), "{lock:?} is free");
            assert!(process.try_acquire(lock, OWNER));
            assert_eq!(process.owner(lock), Some(OWNER));
            assert_eq!((owned(&process, OWNER), owned(&process, OTHER)), (vec![lock], vec![]));

            assert_eq!(process.in_the_way(lock, OTHER), Some(OWNER));
            assert!(!process.try_acquire(lock, OTHER) && !process.release(lock, OTHER));
            assert_eq!(process.owner(lock), Some(OWNER), "{lock:?}");
            for free in Lock::ALL.into_iter().filter(|other| *other != lock) {
                let mut process = process;
                assert!(process.try_acquire(free, OTHER), "{free:?} beside {lock:?}");
                assert_eq!(process.owner(lock), Some(OWNER));
            }

            assert_eq!(process.in_the_way(lock, OWNER), (!is_reentrant).then_some(OWNER));
            assert_eq!(process.try_acquire(lock, OWNER), is_reentrant, "{lock:?}");
            if is_reentrant {
                assert!(process.release(lock, OWNER));
                assert_eq!(process.owner(lock), Some(OWNER), "{lock:?} was taken twice");
            }
            assert!(process.release(lock, OWNER));
            assert_eq!(process, Process::default(), "{lock:?} forgets its last owner");
        }
    }

    /// Tests G17.
    #[test]
    fn the_thread_store_is_forgotten_only_while_it_is_held() {
        let mut process = Process::default();
        assert!(process.try_acquire(Lock::ThreadStore, OWNER));
        assert!(process.try_acquire(Lock::Loader, OTHER));
        process.thread_store_forgotten = true;
        assert!(process.release(Lock::Loader, OTHER) && process.thread_store_forgotten);
        assert!(process.release(Lock::ThreadStore, OWNER) && !process.thread_store_forgotten);
    }

    #[test]
    fn a_suspension_is_on_behalf_of_a_thread() {
        assert_eq!(Suspension::None.by(), None);
        assert_eq!(Suspension::Suspending(OTHER).by(), Some(OTHER));
        assert_eq!(Suspension::Suspended(OWNER).by(), Some(OWNER));
    }

    #[test]
    fn high_events_add_and_take_callbacks() {
        use CallbackKind::{
            GarbageCollectionStarted, MovedReferences, ObjectsAllocatedByClass, SurvivingReferences,
        };
        const MONITOR_GC: u32 = 0x80;
        let requests = |low, high| {
            let process =
                Process { event_mask: EventMask(low), high_events: high, ..Process::default() };
            [
                GarbageCollectionStarted,
                MovedReferences,
                SurvivingReferences,
                ObjectsAllocatedByClass,
            ]
            .map(|kind| process.requests(kind))
        };
        let none = HighEvents(0);
        assert_eq!(requests(MONITOR_GC, none), [true; 4]);
        assert_eq!(requests(0, none), [false; 4]);
        assert_eq!(requests(0, HighEvents::BASIC_GC), [true, false, false, false]);
        assert_eq!(requests(0, HighEvents::MOVED_OBJECTS), [false, true, true, false]);
        assert_eq!(requests(MONITOR_GC, HighEvents::SKIP_STATISTIC), [true, true, true, false]);
    }
}
