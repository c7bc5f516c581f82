//! What code of the profiler has on the thread that executes it. All of it may let others go first.

use super::footprint::Footprint;
use super::history::{Happening, ThreadIndex};
use super::info::Info;
use super::kernel::{Kernel, Waiting};
use super::lock::LockName;
use super::setup::{Event, Handlers, Lock};
use super::target::Target;
use super::verdict::{Rule, Verdict};
use crate::profiling::Outcome;
use crate::runtime::{self, OsThreadId, Wait};
use clr_coroutine::Yielder;
use clr_walker::code_map::CodeMap;

/// The thread that executes this code.
#[derive(Clone, Copy)]
pub struct Thread<'t, 'b> {
    pub(super) kernel: &'t Kernel<'b>,
    pub(super) handlers: &'t dyn Handlers,
    pub(super) yielder: &'t Yielder<'t, ()>,
    pub(super) me: ThreadIndex,
    pub(super) os: OsThreadId,
}

impl core::fmt::Debug for Thread<'_, '_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Thread").field(&self.me).finish()
    }
}

/// A lock that is owned until this is dropped.
#[derive(Debug)]
#[must_use = "the lock is given back at once"]
pub struct Guard<'g, 't, 'b> {
    thread: &'g Thread<'t, 'b>,
    lock: Lock,
}

impl Drop for Guard<'_, '_, '_> {
    fn drop(&mut self) {
        self.thread.unlock(self.lock);
    }
}

impl<'t, 'b> Thread<'t, 'b> {
    /// Which of the history's threads it is.
    #[must_use]
    pub const fn index(&self) -> ThreadIndex {
        self.me
    }

    /// The system's id of it.
    #[must_use]
    pub const fn os(&self) -> OsThreadId {
        self.os
    }

    /// The profiling methods, as called here.
    #[must_use]
    pub const fn info(&self) -> Info<'_, 't, 'b> {
        Info { thread: self }
    }

    /// Another thread, or this one, as a profiler has it; `None` if there is none of that number.
    #[must_use]
    pub fn target(&self, thread: ThreadIndex) -> Option<Target<'_, 't, 'b>> {
        Target::new(self, thread)
    }

    /// The threads of the program.
    pub fn apps(&self) -> impl Iterator<Item = ThreadIndex> + use<> {
        (0..self.kernel.apps).map(ThreadIndex)
    }

    /// The code in the process that a profiler has unwind data of.
    #[must_use]
    pub const fn modules(&self) -> &'t CodeMap<'b> {
        &self.kernel.modules
    }

    /// Lets others go first, if they are chosen.
    pub fn point(&self) {
        self.pause(None, None);
    }

    /// Gives control back; whether time has not run out when it comes again.
    fn pause(&self, waiting: Option<Waiting>, until: Option<u64>) -> bool {
        if let Ok(mut state) = self.kernel.state.try_borrow_mut() {
            if state.over {
                return true;
            }
            let thread = state.threads.get_mut(self.me.index());
            if let Some(activity) = thread.and_then(|thread| thread.activities.last_mut()) {
                activity.waiting = waiting;
                activity.until = until;
                activity.timed_out = false;
            }
        }
        if waiting.is_some() {
            self.tell(Happening::Waits);
        }
        self.yielder.suspend(());
        let mut state = self.kernel.state.borrow_mut();
        let thread = state.threads.get_mut(self.me.index());
        let activity = thread.and_then(|thread| thread.activities.last_mut());
        activity.is_none_or(|activity| {
            activity.waiting = None;
            activity.until = None;
            !activity.timed_out
        })
    }

    /// Whether the history has ended: what is left of the profiler is being taken down.
    pub(crate) fn is_over(&self) -> bool {
        self.kernel.state.borrow().over
    }

    pub(super) fn tell(&self, happening: Happening) {
        self.kernel.tell(self.me, happening);
    }

    /// Waits for what only the runtime can end.
    pub(super) fn wait(&self, wait: Wait) {
        self.kernel.touch(Footprint::ALL);
        if wait == Wait::ThreadsToStop {
            // Whoever suspends the runtime stops the others itself, each where that is possible.
            while !self.is_over() && !self.kernel.world.borrow_mut().stop_others(None) {
                self.kernel.world.borrow_mut().sync();
                self.pause(Some(Waiting::Runtime(wait)), None);
                self.kernel.touch(Footprint::ALL);
            }
            return;
        }
        self.pause(Some(Waiting::Runtime(wait)), None);
    }

    /// The history ends here: this never comes back.
    pub(super) fn end(&self, verdict: Verdict) {
        self.kernel.end(verdict);
        self.pause(Some(Waiting::Time), None);
    }

    /// The process ends in a call.
    pub(super) fn killed(&self, outcome: Outcome) {
        self.end(Verdict::ProcessKilled { by: self.me, outcome });
    }

    /// Something is not as the profiler wants it: the history ends here, as failed.
    pub fn fail(&self, words: impl Into<String>) {
        self.end(Verdict::Failed { by: self.me, words: words.into() });
    }

    /// A watchdog of the profiler's has found that something takes too long: the history ends here.
    pub fn bark(&self) {
        self.end(Verdict::Watchdog(self.me));
    }

    /// Tells of something in the history.
    pub fn say(&self, words: &'static str) {
        self.tell(Happening::Says(words));
    }

    /// Virtual time (µs).
    #[must_use]
    pub fn now(&self) -> u64 {
        self.kernel.touch(Footprint::TIME);
        self.kernel.state.borrow().now
    }

    /// Sleeps for so long (µs): others may do much or little meanwhile.
    pub fn sleep(&self, micros: u64) {
        self.tell(Happening::Sleeps(micros));
        let until = self.now().saturating_add(micros);
        self.pause(Some(Waiting::Time), Some(until));
        let mut state = self.kernel.state.borrow_mut();
        state.now = state.now.max(until);
        state.footprint |= Footprint::TIME;
    }

    /// Takes a lock, which is owned until the guard is dropped. It is not re-entrant: who owns it already
    /// waits for ever.
    pub fn lock(&self, lock: Lock) -> Guard<'_, 't, 'b> {
        self.acquire(lock);
        Guard { thread: self, lock }
    }

    /// Takes a lock.
    pub fn acquire(&self, lock: Lock) {
        self.acquire_until(lock, None);
    }

    /// Takes a lock if it can be had within so long (µs): whether it was. 0 is to try it.
    pub fn try_acquire(&self, lock: Lock, micros: u64) -> bool {
        let until = self.now().saturating_add(micros);
        self.acquire_until(lock, Some(until))
    }

    fn acquire_until(&self, lock: Lock, until: Option<u64>) -> bool {
        self.point();
        self.does(Rule::LockWhileSuspended);
        let name = LockName::Profiler(lock.0);
        loop {
            self.kernel.touch(Footprint::lock(name));
            let mut state = self.kernel.state.borrow_mut();
            if state.over {
                return false;
            }
            let now = state.now;
            let Some(entry) = state.locks.get_mut(lock.0 as usize) else { return false };
            if entry.is_none() {
                *entry = Some(self.me);
                drop(state);
                self.tell(Happening::Acquired(name));
                return true;
            }
            if until.is_some_and(|until| until <= now) {
                return false;
            }
            drop(state);
            if !self.pause(Some(Waiting::Lock(lock.0)), until) {
                self.tell(Happening::TimedOut);
                return false;
            }
        }
    }

    /// Gives a lock back that this thread owns.
    pub fn unlock(&self, lock: Lock) {
        let name = LockName::Profiler(lock.0);
        {
            let Ok(mut state) = self.kernel.state.try_borrow_mut() else { return };
            let Some(entry) = state.locks.get_mut(lock.0 as usize) else { return };
            if *entry != Some(self.me) {
                return;
            }
            *entry = None;
            state.footprint |= Footprint::lock(name);
            if state.over {
                return;
            }
        }
        self.tell(Happening::Released(name));
    }

    /// Sets an event: all who wait for it can go on.
    pub fn set(&self, event: Event) {
        self.change(event, true);
    }

    /// Resets an event.
    pub fn reset(&self, event: Event) {
        self.change(event, false);
    }

    fn change(&self, event: Event, to: bool) {
        self.point();
        let mut state = self.kernel.state.borrow_mut();
        if let Some(set) = state.events.get_mut(event.0 as usize) {
            *set = to;
        }
        state.footprint |= Footprint::event(event.0);
    }

    /// Waits until an event is set.
    pub fn wait_for(&self, event: Event) {
        self.wait_until(event, None);
    }

    /// The same for so long at most (µs): whether it was set.
    pub fn wait_at_most(&self, event: Event, micros: u64) -> bool {
        let until = self.now().saturating_add(micros);
        self.wait_until(event, Some(until))
    }

    fn wait_until(&self, event: Event, until: Option<u64>) -> bool {
        self.point();
        self.kernel.touch(Footprint::event(event.0));
        let is_set = self.kernel.state.borrow().events.get(event.0 as usize) != Some(&false);
        is_set || self.pause(Some(Waiting::Event(event.0)), until)
    }

    /// Waits for the end of another thread.
    pub fn join(&self, thread: ThreadIndex) {
        self.kernel.touch(Footprint::thread(thread));
        self.pause(Some(Waiting::Join(thread)), None);
    }

    /// Allocates memory, and frees it: takes the lock of the process's heap (H-13).
    pub fn allocate(&self) {
        self.does(Rule::AllocationWhileSuspended);
        self.tell(Happening::System("allocates memory"));
        self.with(&[runtime::Lock::ProcessHeap]);
    }

    /// Logs something, by a logger that allocates.
    pub fn log(&self) {
        self.does(Rule::LogWhileSuspended);
        self.tell(Happening::System("logs"));
        self.with(&[runtime::Lock::ProcessHeap]);
    }

    /// Loads a library, or has symbols looked up: takes the loader lock (H-12).
    pub fn load_library(&self) {
        self.does(Rule::LoadingWhileSuspended);
        self.tell(Happening::System("loads a library"));
        self.with(&[runtime::Lock::Loader, runtime::Lock::FunctionTables]);
    }

    /// `RtlLookupFunctionEntry` on Windows: takes the lock of the inverted function table (H-11). On
    /// Unix, `dl_iterate_phdr`: takes the loader's.
    pub fn look_up_function_entry(&self) {
        self.does(Rule::LoadingWhileSuspended);
        self.tell(Happening::System("looks up unwind data"));
        let unix = self.kernel.runtime.generation.is_unix();
        let lock = if unix { runtime::Lock::Loader } else { runtime::Lock::FunctionTables };
        self.with(&[lock]);
    }

    /// Takes locks of the process one after the other, and gives them back.
    pub(super) fn with(&self, locks: &[runtime::Lock]) {
        for lock in locks {
            self.take(*lock);
        }
        self.point();
        for lock in locks.iter().rev() {
            self.give_back(*lock);
        }
    }

    fn take(&self, lock: runtime::Lock) {
        self.point();
        let name = LockName::Runtime(lock);
        loop {
            self.kernel.touch(Footprint::lock(name));
            let mut process = self.kernel.runtime.process.get();
            if process.try_acquire(lock, self.os) || self.is_over() {
                self.kernel.runtime.process.set(process);
                break;
            }
            self.pause(Some(Waiting::Runtime(Wait::Lock(lock))), None);
        }
        self.tell(Happening::Acquired(name));
    }

    fn give_back(&self, lock: runtime::Lock) {
        let name = LockName::Runtime(lock);
        self.kernel.touch(Footprint::lock(name));
        self.kernel.runtime.change_process(|process| {
            process.release(lock, self.os);
        });
        self.tell(Happening::Released(name));
    }

    /// Notes a rule that is broken if a thread is suspended by this one.
    pub(super) fn does(&self, rule: Rule) {
        let mut state = self.kernel.state.borrow_mut();
        let suspends = state.threads.iter().any(|thread| thread.suspended_by.contains(&self.me))
            || state.threads.get(self.me.index()).is_some_and(|me| me.walks.is_some());
        if suspends && !state.broken.contains(&(self.me, rule)) {
            state.broken.push((self.me, rule));
        }
    }

    /// Sends a signal to a thread: its handler runs when it goes on next (Unix).
    pub fn signal(&self, thread: ThreadIndex) {
        self.point();
        let mut state = self.kernel.state.borrow_mut();
        state.footprint |= Footprint::thread(thread);
        if let Some(thread) = state.threads.get_mut(thread.index()) {
            thread.signals += 1;
        }
    }
}
