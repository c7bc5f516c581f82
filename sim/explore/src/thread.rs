//! Operations for code of the profiler on the thread that executes it. All of them may let other
//! threads run first.

use super::callback::Callback;
use super::footprint::Footprint;
use super::history::TurnEvent;
use super::ids::{LockName, ThreadIndex};
use super::kernel::Kernel;
use super::recorded_calls::PutAside;
use super::state::{Interruption, State, Waiting};
use super::verdict::{ProfilerRule, Verdict};
use clr_coroutine::Yielder;
use clr_runtime::Outcome;
use clr_runtime::profiling::{CallFault, CallFaults, Policy};
use clr_runtime::{OsThreadId, Wait};
use clr_unwind::CodeMap;
use clr_walker::profiling::FunctionId;
use core::panic::Location;

/// The thread that executes this code.
#[derive(Clone, Copy)]
pub struct CurrentThread<'t, 'b> {
    pub(super) kernel: &'t Kernel<'b>,
    pub(super) handlers: &'t dyn Handlers,
    pub(super) turns: &'t dyn TurnOrder,
    pub(super) yielder: &'t Yielder<'t, ()>,
    pub(super) me: ThreadIndex,
    pub(super) os: OsThreadId,
}

/// Code of a thread of the profiler.
pub(super) type Body<'p> = Box<dyn FnOnce(&CurrentThread<'_, '_>) + 'p>;

/// The order of turns for code on a coroutine, independent of the borrows of a search.
pub(super) trait TurnOrder {
    /// Starts a thread of the profiler: it can have the next turn.
    fn start(&self, thread: ThreadIndex, body: Body<'static>);

    /// Ends the turn of a thread, and chooses the next one. Returns true if the same thread goes on: then its turn has begun, and
    /// the code need not return control.
    fn goes_on(&self, thread: ThreadIndex) -> bool;

    /// Returns the failure that the search chooses for a call of a thread, of those that are possible.
    fn fails(&self, thread: ThreadIndex, possible: CallFaults) -> Option<CallFault>;
}

/// The handlers of the profiler, independent of their borrows.
pub(super) trait Handlers {
    fn call(&self, callback: Callback, thread: &CurrentThread<'_, '_>);
}

impl core::fmt::Debug for CurrentThread<'_, '_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Thread").field(&self.me).finish()
    }
}

impl<'t, 'b> CurrentThread<'t, 'b> {
    /// Returns the index of the thread in the interleaving.
    #[must_use]
    pub const fn index(&self) -> ThreadIndex {
        self.me
    }

    /// Returns the OS id of the thread.
    #[must_use]
    pub const fn os(&self) -> OsThreadId {
        self.os
    }

    /// Returns the threads of the program.
    pub fn apps(&self) -> impl Iterator<Item = ThreadIndex> + use<> {
        (0..self.kernel.apps).map(ThreadIndex)
    }

    /// Returns the code in the process for which a profiler has unwind data.
    #[must_use]
    pub const fn modules(&self) -> &'t CodeMap<'b> {
        &self.kernel.modules
    }

    /// Returns the code in the process that a profiler's map has if it walks by `policy`.
    #[must_use]
    pub const fn modules_for(&self, policy: Policy) -> &'t CodeMap<'b> {
        match policy {
            Policy::Signal => &self.kernel.all_code,
            _ => &self.kernel.modules,
        }
    }

    /// Sets if this thread is in a call of the system, which it finishes even if it is suspended
    /// meanwhile.
    pub(super) fn in_system(&self, is: bool) {
        let mut state = self.kernel.state.borrow_mut();
        if let Some(thread) = state.threads.get_mut(self.me.index()) {
            thread.in_system = is;
        }
    }

    /// Lets other threads run first, if they are chosen.
    ///
    /// Code that shares variables with other threads without a lock calls this before each access:
    /// otherwise the scheduler does not know of the access, and searches treat the turns as
    /// independent.
    #[track_caller]
    pub fn point(&self) {
        self.comes_from_caller();
        self.switch();
        self.kernel.touch(Footprint::MEMORY);
    }

    /// Notes that this code has come to a place at which it knows nothing but what `position` stands for, and the data that
    /// the profiler [keeps](super::Setup::keeps): a search recognises the place. In a call of the runtime it does not.
    pub fn is_at(&self, position: u64) {
        let calls = |state: &State| state.threads.get(self.me.index()).map_or(0, |me| me.calls);
        if calls(&self.kernel.state.borrow()) == 0 {
            self.kernel.turn.comes_to(position);
        }
    }

    /// Marks this turn as reading or changing data that threads of the profiler share.
    pub fn shares(&self) {
        self.kernel.touch(Footprint::MEMORY);
    }

    /// Notes the place in the profiler's source from which an operation is called.
    #[track_caller]
    pub(super) fn comes_from_caller(&self) {
        let place = Location::caller();
        self.kernel.change_activity(self.me, |activity| activity.place = Some(place));
    }

    /// Executes a switch point.
    pub(super) fn switch(&self) {
        self.pause(None, None);
    }

    /// Executes a switch point before a wait: unless the wait is timed, other threads need not
    /// observe its beginning.
    pub(super) fn switch_before(&self, waiting: Waiting, limited: bool) {
        self.pause(Some(waiting).filter(|_| !limited), None);
    }

    /// Returns control to the scheduler. Returns false if the deadline passed before the thread was
    /// resumed.
    pub(super) fn pause(&self, waiting: Option<Waiting>, until: Option<u64>) -> bool {
        let kernel = self.kernel;
        if kernel.is_over() {
            return true;
        }
        let is_blocked = waiting.is_some_and(|waiting| !kernel.has_come(waiting, self.os));
        if is_blocked {
            self.record(TurnEvent::Waits);
            kernel.change_thread(self.me, |me| me.waits += 1);
        }
        if let Some(activity) = kernel.state.borrow_mut().activity_mut(self.me) {
            activity.waiting = waiting;
            activity.until = until;
            activity.timed_out = false;
        }
        if !self.turns.goes_on(self.me) {
            self.let_others_run();
        }
        let mut state = kernel.state.borrow_mut();
        if is_blocked && let Some(me) = state.threads.get_mut(self.me.index()) {
            me.went_on += 1;
        }
        let Some(activity) = state.activity_mut(self.me) else { return true };
        activity.waiting = None;
        activity.until = None;
        kernel.touch(activity.within);
        !activity.timed_out
    }

    /// Gives control to the scheduler until this thread has a turn again.
    fn let_others_run(&self) {
        let kernel = self.kernel;
        // The current frameInfo belongs to this thread: another thread may have its own meanwhile.
        // So does the explanation of a call that the thread is in.
        let frame_info = kernel.runtime.frame_info.get();
        let mut log = PutAside { kernel, log: kernel.runtime.log.interrupt() };
        self.yielder.suspend(());
        kernel.runtime.log.resume(core::mem::take(&mut log.log));
        kernel.runtime.frame_info.set(frame_info);
    }

    /// Returns true if the interleaving has ended and the remaining code of the profiler is being
    /// unwound.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.kernel.is_over()
    }

    /// Executes code whose turns all touch `what`.
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

    pub(super) fn record(&self, event: TurnEvent) {
        self.kernel.record(self.me, event);
    }

    /// Waits for a condition that only the runtime can satisfy. Returns false if the interleaving has
    /// ended.
    pub(super) fn wait(&self, wait: Wait) -> bool {
        let decides = match wait {
            Wait::Lock(lock) => Footprint::lock(LockName::Runtime(lock)),
            _ => self.kernel.of_runtime(),
        };
        self.kernel.touch(decides);
        if wait == Wait::ThreadsToStop {
            // The suspending thread stops the others itself, each at a place where it can be
            // stopped. One of the program does so in a callback, in whatever mode it is.
            let is_app = self.kernel.kind(self.me).is_app();
            let own = is_app.then(|| self.me.index());
            while !self.is_over() && !self.kernel.world.borrow_mut().stop_others(own) {
                self.kernel.world.borrow_mut().sync();
                self.pause(Some(Waiting::Runtime(wait)), None);
                self.kernel.touch(decides);
            }
            return !self.is_over();
        }
        self.pause(Some(Waiting::Runtime(wait)), None);
        self.kernel.touch(decides);
        !self.is_over()
    }

    /// Ends the history: this call never returns.
    pub(super) fn end(&self, verdict: Verdict) {
        self.kernel.end(verdict);
        self.pause(Some(Waiting::Time), None);
    }

    /// Ends the process in a call.
    pub(super) fn killed(&self, outcome: Outcome) {
        let code = &self.kernel.runtime.code;
        let unloaded = |at: u64| code.was_freed(at) || code.is_dangling(FunctionId(at));
        let by = self.me;
        self.end(match outcome {
            Outcome::AccessViolation { at } if unloaded(at) => Verdict::UnloadedCode { by },
            _ => Verdict::ProcessKilled { by, outcome },
        });
    }

    /// Ends the interleaving as failed, because the profiler has found an error.
    #[track_caller]
    pub fn fail(&self, words: impl Into<String>) {
        self.comes_from_caller();
        self.end(Verdict::Failed { by: self.me, words: words.into() });
    }

    /// Ends the interleaving because a watchdog of the profiler has found that an operation takes too
    /// long.
    #[track_caller]
    pub fn bark(&self) {
        self.comes_from_caller();
        self.end(Verdict::Watchdog(self.me));
    }

    /// Records a text in the interleaving.
    pub fn say(&self, words: &'static str) {
        self.record(TurnEvent::Says(words));
    }

    /// Executes a call of the system that a handler of a signal may make, too: a signal interrupts it in its waits for condition
    /// variables alone, where it owns none of its locks.
    pub fn uninterrupted<T>(&self, call: impl FnOnce() -> T) -> T {
        self.kernel.change_thread(self.me, |me| me.uninterrupted += 1);
        let done = call();
        self.kernel.change_thread(self.me, |me| me.uninterrupted -= 1);
        done
    }

    /// Returns the virtual time (µs).
    #[must_use]
    pub fn now(&self) -> u64 {
        self.kernel.touch_time();
        self.kernel.state.borrow().now
    }

    /// Sleeps for this time (µs): other threads may do much or little meanwhile.
    #[track_caller]
    pub fn sleep(&self, micros: u64) {
        self.sleep_unless_interrupted(micros);
    }

    /// Sleeps for this time (µs), or until a handler interrupts the sleep, in an [interruptible](Self::interruptible) call.
    /// Returns the rest (µs).
    #[expect(clippy::must_use_candidate, reason = "it sleeps, too")]
    #[track_caller]
    pub fn sleep_unless_interrupted(&self, micros: u64) -> u64 {
        self.comes_from_caller();
        self.record(TurnEvent::Sleeps(micros));
        let until = self.now().saturating_add(micros);
        self.pause(Some(Waiting::Time), Some(until));
        self.kernel.touch_time();
        if self.is_interrupted() {
            self.record(TurnEvent::Interrupted);
            return until.saturating_sub(self.now());
        }
        let mut state = self.kernel.state.borrow_mut();
        state.now = state.now.max(until);
        0
    }

    /// Executes a call of the system whose waits a handler ends: they end as if their limit had passed, and
    /// [`is_interrupted`](Self::is_interrupted) says so until the call returns.
    pub fn interruptible<T>(&self, by: Interruption, call: impl FnOnce() -> T) -> T {
        self.kernel.set_interruption(self.me, Some(by));
        let done = call();
        self.kernel.set_interruption(self.me, None);
        done
    }

    /// Returns true if a handler has ended a wait of the current [`interruptible`](Self::interruptible) call.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.kernel.is_interrupted(self.me)
    }

    /// Ends the wait that this code, a handler, has interrupted, if it is one that such a handler ends. `restarts`: the handler
    /// was set with `SA_RESTART`.
    pub fn ends_interrupted_wait(&self, restarts: bool) {
        self.kernel.end_interrupted_wait(self.me, restarts);
    }

    /// Records that a wait has ended before what it waited for.
    pub(super) fn record_end_of_wait(&self) {
        self.kernel.touch_time();
        let interrupted = self.is_interrupted();
        self.record(if interrupted { TurnEvent::Interrupted } else { TurnEvent::TimedOut });
    }

    /// Waits for the end of another thread.
    #[track_caller]
    pub fn join(&self, thread: ThreadIndex) {
        self.join_within(thread, None);
    }

    /// Waits for the end of another thread, at most this time (µs); 0 means one look. Returns true if it has ended.
    #[expect(clippy::must_use_candidate, reason = "it waits, too")]
    #[track_caller]
    pub fn join_within(&self, thread: ThreadIndex, micros: Option<u64>) -> bool {
        self.comes_from_caller();
        if micros == Some(0) {
            self.switch();
            return self.has_ended(thread);
        }
        let until = micros.map(|micros| self.now().saturating_add(micros));
        // The begin of the wait observes nothing of the other thread.
        let in_time = self.pause(Some(Waiting::Join(thread)), until);
        if !in_time {
            self.kernel.touch_time();
            self.record(TurnEvent::TimedOut);
        }
        self.kernel.touch(Footprint::thread(thread).read());
        in_time
    }

    /// Records a violation of the rule if this thread has suspended another one, or the runtime on
    /// behalf of the profiler, and of that for signal handlers if it is in one.
    pub(super) fn does(&self, rule: ProfilerRule) {
        // Another thread may resume the runtime, too.
        self.kernel.touch(Footprint::SUSPENSION.read());
        if self.kernel.suspends(self.me) {
            self.kernel.broke(self.me, rule);
        }
        if let Some(rule) = rule.in_handler() {
            self.does_in_handler(rule);
        }
    }

    /// Records a violation of a rule for signal handlers if this is code of one.
    fn does_in_handler(&self, rule: ProfilerRule) {
        let is_handler = {
            let state = self.kernel.state.borrow();
            let me = state.threads.get(self.me.index());
            me.is_some_and(|me| {
                me.activities.iter().any(|it| it.ends_with == TurnEvent::SignalOver)
            })
        };
        if is_handler {
            self.kernel.broke(self.me, rule);
        }
    }

    /// Notes that the profiler itself calls a function that takes a lock, which no signal handler may. The locks of what is
    /// async-signal-safe, such as a semaphore's, are the simulation's own.
    pub fn calls_for_lock(&self) {
        self.does_in_handler(ProfilerRule::LockInHandler);
    }

    /// Sends a signal to a thread: its handler runs when the thread continues (Unix).
    #[track_caller]
    pub fn signal(&self, thread: ThreadIndex) {
        self.comes_from_caller();
        self.switch();
        self.kernel.touch(Footprint::thread(thread));
        let mut state = self.kernel.state.borrow_mut();
        if let Some(thread) = state.threads.get_mut(thread.index()) {
            thread.signals += 1;
        }
    }

    /// Returns true if the thread is leaving the callback of a walk by a jump.
    #[must_use]
    pub fn escapes(&self) -> bool {
        self.kernel.runtime.thread(self.os, |thread| thread.escapes).unwrap_or_default()
    }

    /// Returns the callback that this thread is in, the innermost one.
    #[must_use]
    pub fn callback(&self) -> Option<Callback> {
        let state = self.kernel.state.borrow();
        let me = state.threads.get(self.me.index());
        me.and_then(|me| me.callbacks.last().cloned())
    }

    /// Returns true if no other thread of the program executes code of the profiler.
    #[must_use]
    pub fn is_alone_in_profiler(&self) -> bool {
        self.kernel.touch(self.kernel.program().read());
        let state = self.kernel.state.borrow();
        let others =
            state.threads.iter().enumerate().filter(|(index, _)| *index != self.me.index());
        others
            .filter(|(_, other)| other.kind.is_app())
            .all(|(_, other)| other.activities.is_empty())
    }

    /// Executes a handler of a callback.
    pub(super) fn within(&self, callback: Callback, handler: impl FnOnce()) {
        self.kernel.change_thread(self.me, |me| me.callbacks.push(callback));
        handler();
        self.kernel.change_thread(self.me, |me| {
            me.callbacks.pop();
        });
    }
}
