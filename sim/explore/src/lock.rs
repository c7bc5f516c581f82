//! Locks and events of the profiler, and names of locks in histories.

use super::history::ThreadIndex;
use super::kernel::Kernel;
use clr_runtime::Lock;
use core::fmt;

/// A lock of the profiler, which one thread owns, or any number of threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfilerLock(pub(super) u32);

/// Behaviour of a lock whose owner takes it again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// The owner waits for itself.
    #[default]
    Plain,
    /// The owner takes it once more, and has to release it as often.
    Reentrant,
}

/// A condition variable of the profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConditionVariable(pub(super) u32);

/// An event of the profiler: it stays set until it is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventObject(pub(super) u32);

/// A lock of the runtime or the process, or one of the profiler's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockName {
    /// A lock of the runtime or the process.
    Runtime(Lock),
    /// A lock of the profiler: its index among the locks that the profiler has created.
    Profiler(u32),
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(lock) => write!(f, "the {}", lock.name()),
            Self::Profiler(index) => write!(f, "the profiler's lock {index}"),
        }
    }
}

/// State of a lock of the profiler.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct LockState {
    pub kind: LockKind,
    pub owner: Option<ThreadIndex>,
    /// Number of times that the owner has taken it.
    pub depth: u32,
    /// Threads that share it, each as often as it has taken it.
    pub readers: Vec<ThreadIndex>,
}

impl LockState {
    pub(super) fn new(kind: LockKind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// Returns true if no thread owns the lock, or shares it.
    pub(super) fn is_free(&self) -> bool {
        self.owner.is_none() && self.readers.is_empty()
    }

    /// Takes the lock for a thread if that is possible. Returns true if the lock was taken.
    pub(super) fn try_acquire(&mut self, thread: ThreadIndex) -> bool {
        let again = self.kind == LockKind::Reentrant && self.owner == Some(thread);
        if !again && !self.is_free() {
            return false;
        }
        self.owner = Some(thread);
        self.depth += 1;
        true
    }

    /// Shares the lock with a thread if no thread owns it. Returns true if the lock is shared.
    pub(super) fn try_share(&mut self, thread: ThreadIndex) -> bool {
        let free = self.owner.is_none();
        if free {
            self.readers.push(thread);
        }
        free
    }

    /// Returns true if the thread owns or shares the lock.
    pub(super) fn is_held_by(&self, thread: ThreadIndex) -> bool {
        self.owner == Some(thread) || self.readers.contains(&thread)
    }

    /// Releases the lock once. Returns true if the thread owned or shared it.
    pub(super) fn release(&mut self, thread: ThreadIndex) -> bool {
        if self.owner == Some(thread) {
            self.depth = self.depth.saturating_sub(1);
            self.owner = self.owner.filter(|_| self.depth > 0);
            return true;
        }
        let place = self.readers.iter().position(|reader| *reader == thread);
        place.map(|place| self.readers.swap_remove(place)).is_some()
    }

    /// Releases a lock that a thread owns, however often it has taken it. Returns that number.
    pub(super) fn release_all(&mut self) -> u32 {
        self.owner = None;
        core::mem::take(&mut self.depth)
    }
}

impl Kernel<'_> {
    /// Returns the owner of one of the profiler's locks.
    pub(super) fn owner(&self, lock: u32) -> Option<ThreadIndex> {
        self.state.borrow().locks.get(lock as usize).and_then(|lock| lock.owner)
    }

    /// Returns true if a thread owns one of the profiler's locks, and may take it again.
    pub(super) fn owns_reentrant(&self, lock: u32, thread: ThreadIndex) -> bool {
        self.change_lock(lock, |lock| {
            lock.kind == LockKind::Reentrant && lock.owner == Some(thread)
        })
    }

    /// Changes one of the profiler's locks.
    pub(super) fn change_lock<T: Default>(
        &self,
        lock: u32,
        change: impl FnOnce(&mut LockState) -> T,
    ) -> T {
        self.state.borrow_mut().locks.get_mut(lock as usize).map(change).unwrap_or_default()
    }

    /// Takes one of the profiler's locks for a thread if it is free. Returns true if the lock was
    /// taken.
    pub(super) fn try_acquire(&self, lock: u32, thread: ThreadIndex) -> bool {
        self.try_hold(lock, thread, LockState::try_acquire)
    }

    /// Shares one of the profiler's locks with a thread if no thread owns it. Returns true if it is
    /// shared.
    pub(super) fn try_share(&self, lock: u32, thread: ThreadIndex) -> bool {
        self.try_hold(lock, thread, LockState::try_share)
    }

    fn try_hold(
        &self,
        lock: u32,
        thread: ThreadIndex,
        hold: fn(&mut LockState, ThreadIndex) -> bool,
    ) -> bool {
        let state = &mut *self.state.borrow_mut();
        let is_held = state.locks.get_mut(lock as usize).is_some_and(|held| hold(held, thread));
        if is_held
            && let Some(thread) = state.threads.get_mut(thread.index())
            && !thread.has_owned.contains(&lock)
        {
            thread.has_owned.push(lock);
        }
        is_held
    }

    /// Returns true if the thread that `walker` is walking has ever owned this lock of the
    /// profiler: the next walk may find it owned.
    pub(super) fn is_lock_of_walked(&self, lock: u32, walker: ThreadIndex) -> bool {
        let state = self.state.borrow();
        let target = state.threads.get(walker.index()).and_then(|walker| walker.walks);
        let target = target.and_then(|target| state.threads.get(target.index()));
        target.is_some_and(|target| target.has_owned.contains(&lock))
    }
}
