//! Locks of the profiler, as its threads take them and give them back.

use super::footprint::Footprint;
use super::history::TurnEvent;
use super::ids::{LockName, ThreadIndex};
use super::kernel::Kernel;
use super::lock::{LockKind, LockState, ProfilerLock};
use super::state::Waiting;
use super::thread::CurrentThread;
use super::verdict::ProfilerRule;

/// A lock that is owned until the guard is dropped.
#[derive(Debug)]
#[must_use = "the lock is given back at once"]
pub struct Guard<'g, 't, 'b> {
    thread: &'g CurrentThread<'t, 'b>,
    lock: ProfilerLock,
}

impl Drop for Guard<'_, '_, '_> {
    fn drop(&mut self) {
        // A jump runs no destructors.
        if !self.thread.escapes() {
            self.thread.release(self.lock);
        }
    }
}

impl<'t, 'b> CurrentThread<'t, 'b> {
    /// Takes a lock, which is owned until the guard is dropped. A thread that already owns it waits
    /// forever, unless the lock is [reentrant](super::LockKind::Reentrant).
    #[track_caller]
    pub fn lock(&self, lock: ProfilerLock) -> Guard<'_, 't, 'b> {
        self.calls_for_lock();
        self.acquire(lock);
        Guard { thread: self, lock }
    }

    /// Takes a lock.
    #[track_caller]
    pub fn acquire(&self, lock: ProfilerLock) {
        self.acquire_until(lock, None);
    }

    /// Takes a lock if it becomes free within this time (µs); 0 means one attempt. Returns true if
    /// the lock was taken.
    #[expect(clippy::must_use_candidate, reason = "it waits, too")]
    #[track_caller]
    pub fn try_acquire(&self, lock: ProfilerLock, micros: u64) -> bool {
        self.acquire_until(lock, Some(micros))
    }

    #[track_caller]
    fn acquire_until(&self, lock: ProfilerLock, micros: Option<u64>) -> bool {
        self.take_until(lock, Waiting::Lock(lock.0), micros)
    }

    /// Shares a lock with other threads: only its owner excludes them.
    #[track_caller]
    pub fn share(&self, lock: ProfilerLock) {
        self.take_until(lock, Waiting::Shared(lock.0), None);
    }

    /// Shares a lock if its owner releases it within this time (µs); 0 means one attempt. Returns
    /// true if the lock is shared.
    #[expect(clippy::must_use_candidate, reason = "it waits, too")]
    #[track_caller]
    pub fn try_share(&self, lock: ProfilerLock, micros: u64) -> bool {
        self.take_until(lock, Waiting::Shared(lock.0), Some(micros))
    }

    #[track_caller]
    fn take_until(&self, lock: ProfilerLock, waiting: Waiting, micros: Option<u64>) -> bool {
        self.comes_from_caller();
        // The owner of a reentrant lock does not wait.
        self.switch_before(
            waiting,
            micros.is_some() || self.kernel.owns_reentrant(lock.0, self.me),
        );
        self.does(if self.kernel.is_lock_of_walked(lock.0, self.me) {
            ProfilerRule::CallbackTakesTargetsLock
        } else {
            ProfilerRule::LockWhileSuspended
        });
        let name = LockName::Profiler(lock.0);
        let mut until = None;
        loop {
            if self.kernel.is_over() {
                return false;
            }
            self.kernel.touch(Footprint::lock(name).read());
            let taken = match waiting {
                Waiting::Shared(_) => self.kernel.try_share(lock.0, self.me),
                _ => self.kernel.try_acquire(lock.0, self.me),
            };
            if taken {
                self.kernel.touch(Footprint::lock(name));
                self.record(TurnEvent::Acquired(name));
                return true;
            }
            if micros == Some(0) {
                return false;
            }
            // The lock may have been free and taken by another thread since: the deadline stays.
            until = until.or_else(|| Some(self.now().saturating_add(micros?)));
            if !self.pause(Some(waiting), until) {
                self.kernel.touch_time();
                self.record(TurnEvent::TimedOut);
                return false;
            }
        }
    }

    /// Returns true if this thread owns a lock.
    #[must_use]
    pub fn owns(&self, lock: ProfilerLock) -> bool {
        self.kernel.owner(lock.0) == Some(self.me)
    }

    /// Releases a lock that this thread owns or shares: other threads may run first, while it is
    /// still taken.
    #[track_caller]
    pub fn unlock(&self, lock: ProfilerLock) {
        self.comes_from_caller();
        self.release(lock);
    }

    fn release(&self, lock: ProfilerLock) {
        if !self.kernel.change_lock(lock.0, |lock| lock.is_held_by(self.me)) {
            return;
        }
        self.switch();
        let name = LockName::Profiler(lock.0);
        self.kernel.touch(Footprint::lock(name));
        // A signal handler of this thread may have released it meanwhile.
        if self.kernel.change_lock(lock.0, |lock| lock.release(self.me)) {
            self.record(TurnEvent::Released(name));
        }
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
