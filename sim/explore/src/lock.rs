//! Locks and events of the profiler.

use super::ids::ThreadIndex;

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
