//! What code of the profiler has on the thread that executes it. All of it may let others go first.

use super::bug::Bug;
use super::footprint::Footprint;
use super::history::{Happening, ThreadIndex};
use super::info::Info;
use super::kernel::{Kernel, Waiting};
use super::lock::LockName;
use super::setup::{Event, Handlers, Lock};
use super::target::Target;
use super::verdict::{Rule, Verdict};
use clr_coroutine::Yielder;
use clr_runtime::Outcome;
use clr_runtime::{OsThreadId, Wait};
use clr_walker::code_map::CodeMap;
use clr_walker::profiling::FunctionId;

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
        // A jump runs no destructors.
        if !self.thread.escapes() {
            self.thread.unlock(self.lock);
        }
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

    /// This thread is in a call of the system that it finishes even if it is suspended meanwhile, or is no
    /// more.
    pub(super) fn in_system(&self, is: bool) {
        let mut state = self.kernel.state.borrow_mut();
        if let Some(thread) = state.threads.get_mut(self.me.index()) {
            thread.in_system = is;
        }
    }

    /// Lets others go first, if they are chosen.
    ///
    /// Code that shares variables with other threads and has no lock meanwhile calls this in front of
    /// each access: nobody else knows of it, and searches take turns without such a point as independent
    /// of each other.
    pub fn point(&self) {
        self.switch();
        self.kernel.touch(Footprint::MEMORY);
    }

    /// This turn reads or changes what threads of the profiler share.
    pub fn shares(&self) {
        self.kernel.touch(Footprint::MEMORY);
    }

    /// A switch point.
    pub(super) fn switch(&self) {
        self.pause(None, None);
    }

    /// A switch point in front of what has to wait for something: if there is no limit, others need not
    /// see it begin.
    fn switch_before(&self, waiting: Waiting, limited: bool) {
        self.pause(Some(waiting).filter(|_| !limited), None);
    }

    /// Gives control back; whether time has not run out when it comes again.
    fn pause(&self, waiting: Option<Waiting>, until: Option<u64>) -> bool {
        let kernel = self.kernel;
        if kernel.is_over() {
            return true;
        }
        if waiting.is_some_and(|waiting| !kernel.has_come(waiting, self.os)) {
            self.tell(Happening::Waits);
        }
        kernel.change_activity(self.me, |activity| {
            activity.waiting = waiting;
            activity.until = until;
            activity.timed_out = false;
        });
        // The frame that the runtime tells of is this thread's: another one may be told of another.
        let frame_info = kernel.runtime.frame_info.get();
        self.yielder.suspend(());
        kernel.runtime.frame_info.set(frame_info);
        let mut in_time = true;
        kernel.change_activity(self.me, |activity| {
            activity.waiting = None;
            activity.until = None;
            in_time = !activity.timed_out;
            kernel.touch(activity.within);
        });
        in_time
    }

    /// Whether the history has ended: what is left of the profiler is being taken down.
    pub fn is_over(&self) -> bool {
        self.kernel.is_over()
    }

    /// Executes what touches this in all its turns.
    pub(super) fn touching<T>(&self, what: Footprint, body: impl FnOnce() -> T) -> T {
        self.kernel.touch(what);
        let mut before = Footprint::default();
        self.kernel.change_activity(self.me, |activity| {
            before = activity.within;
            activity.within |= what;
        });
        let done = body();
        self.kernel.change_activity(self.me, |activity| activity.within = before);
        done
    }

    pub(super) fn tell(&self, happening: Happening) {
        self.kernel.tell(self.me, happening);
    }

    /// Waits for what only the runtime can end; whether anybody can.
    pub(super) fn wait(&self, wait: Wait) -> bool {
        self.kernel.touch(Footprint::ALL);
        if wait == Wait::ThreadsToStop {
            // Whoever suspends the runtime stops the others itself, each where that is possible.
            while !self.is_over() && !self.kernel.world.borrow_mut().stop_others(None) {
                self.kernel.world.borrow_mut().sync();
                self.pause(Some(Waiting::Runtime(wait)), None);
                self.kernel.touch(Footprint::ALL);
            }
            return !self.is_over();
        }
        self.pause(Some(Waiting::Runtime(wait)), None);
        self.kernel.touch(Footprint::ALL);
        !self.is_over()
    }

    /// The history ends here: this never comes back.
    pub(super) fn end(&self, verdict: Verdict) {
        self.kernel.end(verdict);
        self.pause(Some(Waiting::Time), None);
    }

    /// The process ends in a call.
    pub(super) fn killed(&self, outcome: Outcome) {
        let code = &self.kernel.runtime.code;
        let unloaded = |at: u64| code.was_freed(at) || code.is_dangling(FunctionId(at));
        let by = self.me;
        self.end(match outcome {
            Outcome::AccessViolation { at } if unloaded(at) => Verdict::UnloadedCode { by },
            _ => Verdict::ProcessKilled { by, outcome },
        });
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
        self.kernel.touch(Footprint::TIME);
        let mut state = self.kernel.state.borrow_mut();
        state.now = state.now.max(until);
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
    #[expect(clippy::must_use_candidate, reason = "it waits, too")]
    pub fn try_acquire(&self, lock: Lock, micros: u64) -> bool {
        self.acquire_until(lock, Some(micros))
    }

    fn acquire_until(&self, lock: Lock, micros: Option<u64>) -> bool {
        self.switch_before(Waiting::Lock(lock.0), micros.is_some());
        self.does(if self.kernel.is_lock_of_walked(lock.0, self.me) {
            Rule::CallbackTakesTargetsLock
        } else {
            Rule::LockWhileSuspended
        });
        let name = LockName::Profiler(lock.0);
        let mut until = None;
        loop {
            if self.kernel.is_over() {
                return false;
            }
            self.kernel.touch(Footprint::lock(name));
            if self.kernel.try_acquire(lock.0, self.me) {
                self.tell(Happening::Acquired(name));
                return true;
            }
            if micros == Some(0) {
                return false;
            }
            // It may have been free, and taken by somebody else since: the limit stays.
            until = until.or_else(|| Some(self.now().saturating_add(micros?)));
            if !self.pause(Some(Waiting::Lock(lock.0)), until) {
                self.kernel.touch(Footprint::TIME);
                self.tell(Happening::TimedOut);
                return false;
            }
        }
    }

    /// Gives a lock back that this thread owns: others may go first, while it owns it still.
    pub fn unlock(&self, lock: Lock) {
        if self.kernel.owner(lock.0) != Some(self.me) {
            return;
        }
        if !Bug::UnlockIsNoPoint.is_planted() {
            self.switch();
        }
        let name = LockName::Profiler(lock.0);
        self.kernel.touch(Footprint::lock(name));
        self.kernel.free(lock.0);
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
        self.switch();
        self.kernel.touch(Footprint::event(event.0));
        let mut state = self.kernel.state.borrow_mut();
        if let Some(set) = state.events.get_mut(event.0 as usize) {
            *set = to;
        }
        let now = state.now;
        if to && let Some(at) = state.set_at.get_mut(event.0 as usize) {
            // When it was set may be asked.
            self.kernel.touch(Footprint::TIME);
            *at = Some(now);
        }
    }

    /// Whether an event was set longer ago than this (µs).
    #[must_use]
    pub fn was_set_before(&self, event: Event, micros: u64) -> bool {
        self.kernel.touch(Footprint::event(event.0) | Footprint::TIME);
        let state = self.kernel.state.borrow();
        let at = state.set_at.get(event.0 as usize).copied().flatten();
        at.is_some_and(|at| state.now.saturating_sub(at) > micros)
    }

    /// Waits until an event is set.
    pub fn wait_for(&self, event: Event) {
        self.wait_until(event, None);
    }

    /// The same for so long at most (µs): whether it was set.
    #[expect(clippy::must_use_candidate, reason = "it waits, too")]
    pub fn wait_at_most(&self, event: Event, micros: u64) -> bool {
        self.wait_until(event, Some(micros))
    }

    fn wait_until(&self, event: Event, micros: Option<u64>) -> bool {
        self.switch_before(Waiting::Event(event.0), micros.is_some());
        if !Bug::EventWithoutFootprint.is_planted() {
            self.kernel.touch(Footprint::event(event.0));
        }
        if self.kernel.state.borrow().events.get(event.0 as usize) != Some(&false) {
            return true;
        }
        if micros == Some(0) {
            return false;
        }
        let until = micros.map(|micros| self.now().saturating_add(micros));
        let in_time = self.pause(Some(Waiting::Event(event.0)), until);
        if in_time && !Bug::EventWithoutFootprint.is_planted() {
            self.kernel.touch(Footprint::event(event.0));
        } else {
            self.kernel.touch(Footprint::TIME);
            self.tell(Happening::TimedOut);
        }
        in_time
    }

    /// Waits for the end of another thread.
    pub fn join(&self, thread: ThreadIndex) {
        self.kernel.touch(Footprint::thread(thread));
        self.pause(Some(Waiting::Join(thread)), None);
        self.kernel.touch(Footprint::thread(thread));
    }

    /// Allocates memory, and frees it: takes the lock of the process's heap (H-13).
    pub fn allocate(&self) {
        self.does(Rule::AllocationWhileSuspended);
        self.tell(Happening::System("allocates memory"));
        self.with(&[clr_runtime::Lock::ProcessHeap]);
    }

    /// Logs something, by a logger that allocates.
    pub fn log(&self) {
        self.does(Rule::LogWhileSuspended);
        self.tell(Happening::System("logs"));
        self.with(&[clr_runtime::Lock::ProcessHeap]);
    }

    /// Loads a library, or has symbols looked up: takes the loader lock (H-12).
    pub fn load_library(&self) {
        self.does(Rule::LoadingWhileSuspended);
        self.tell(Happening::System("loads a library"));
        self.with(&[clr_runtime::Lock::Loader, clr_runtime::Lock::FunctionTables]);
    }

    /// `RtlLookupFunctionEntry` on Windows: takes the lock of the inverted function table (H-11). On
    /// Unix, `dl_iterate_phdr`: takes the loader's.
    pub fn look_up_function_entry(&self) {
        self.does(Rule::LoadingWhileSuspended);
        self.tell(Happening::System("looks up unwind data"));
        let unix = self.kernel.runtime.generation.is_unix();
        let lock = if unix { clr_runtime::Lock::Loader } else { clr_runtime::Lock::FunctionTables };
        self.with(&[lock]);
    }

    /// Takes locks of the process one after the other, and gives them back.
    pub(super) fn with(&self, locks: &[clr_runtime::Lock]) {
        for lock in locks {
            self.take(*lock);
        }
        self.switch();
        for lock in locks.iter().rev() {
            self.give_back(*lock);
        }
    }

    fn take(&self, lock: clr_runtime::Lock) {
        let waiting = Waiting::Runtime(Wait::Lock(lock));
        self.switch_before(waiting, false);
        let name = LockName::Runtime(lock);
        loop {
            self.kernel.touch(Footprint::lock(name));
            let mut process = self.kernel.runtime.process.get();
            if process.try_acquire(lock, self.os) || self.is_over() {
                self.kernel.runtime.process.set(process);
                break;
            }
            self.pause(Some(waiting), None);
        }
        self.tell(Happening::Acquired(name));
    }

    fn give_back(&self, lock: clr_runtime::Lock) {
        let name = LockName::Runtime(lock);
        self.kernel.touch(Footprint::lock(name));
        self.kernel.runtime.change_process(|process| {
            process.release(lock, self.os);
        });
        self.tell(Happening::Released(name));
    }

    /// Notes a rule that is broken if a thread is suspended by this one, or the runtime by the profiler
    /// on it.
    pub(super) fn does(&self, rule: Rule) {
        if self.kernel.suspends(self.me) {
            self.kernel.broke(self.me, rule);
        }
    }

    /// Sends a signal to a thread: its handler runs when it goes on next (Unix).
    pub fn signal(&self, thread: ThreadIndex) {
        self.switch();
        self.kernel.touch(Footprint::thread(thread));
        let mut state = self.kernel.state.borrow_mut();
        if let Some(thread) = state.threads.get_mut(thread.index()) {
            thread.signals += 1;
        }
    }
}
