//! State shared by the threads of an interleaving: the process, and the status of each thread.
//!
//! One thread runs at a time, until it returns control at a switch point.

use super::current_turn::CurrentTurn;
use super::footprint::Footprint;
use super::history::{ThreadKind, Turn, TurnEvent};
use super::ids::ThreadIndex;
use super::lock::LockState;
use super::state::{Activity, State, Thread, Waiting};
use super::verdict::{ProfilerRule, Verdict};
use clr_runtime::profiling::Policy;
use clr_runtime::{OsThreadId, Runtime};
use clr_unwind::{CodeMap, CodeMapError};
use clr_world::World;
use core::cell::{Cell, RefCell};
use std::rc::Rc;

/// State shared by the threads of an interleaving.
#[derive(Debug)]
pub(super) struct Kernel<'b> {
    pub(super) runtime: Rc<Runtime<'b>>,
    pub(super) world: RefCell<World<'b>>,
    pub(super) state: RefCell<State>,
    /// Number of threads of the program, which come first.
    pub(super) apps: u32,
    /// Code for which a profiler in the process has unwind data.
    pub(super) modules: CodeMap<'b>,
    /// The same with the methods in the code heaps.
    pub(super) all_code: CodeMap<'b>,
    /// The name of all threads and locks in interleavings that are not recorded.
    pub(super) nameless: Rc<str>,
    /// The accesses of the current turn, and its dependence on time.
    pub(super) turn: CurrentTurn,
    /// The remaining code is being unwound: it no longer waits, and records no events.
    over: Cell<bool>,
    /// The caller of the search was already unwinding.
    unwinds: Cell<bool>,
    /// The thread whose limit passes if the search chooses it now, though it waits.
    offered: Cell<Option<ThreadIndex>>,
    /// A thread has waited with a limit while another one could run.
    pub(super) has_limits: Cell<bool>,
}

impl<'b> Kernel<'b> {
    pub(super) fn new(world: World<'b>) -> Result<Self, CodeMapError> {
        let runtime = world.shared();
        let apps = world.thread_count() as u32;
        let modules = runtime.profilers_code_map()?;
        let all_code = runtime.code_map_for(Policy::Signal)?;
        Ok(Self {
            runtime,
            world: RefCell::new(world),
            state: RefCell::default(),
            apps,
            modules,
            all_code,
            nameless: "".into(),
            turn: CurrentTurn::default(),
            over: Cell::new(false),
            unwinds: Cell::new(false),
            offered: Cell::new(None),
            has_limits: Cell::new(false),
        })
    }

    /// Starts an interleaving.
    pub(super) fn begin(&self, state: State) {
        *self.state.borrow_mut() = state;
        // What an ended interleaving has recorded of a call.
        self.runtime.log.take();
        self.over.set(false);
        self.offered.set(None);
        self.has_limits.set(false);
        self.unwinds.set(std::thread::panicking());
    }

    /// Ends the history: the remaining code is unwound.
    pub(super) fn finish(&self) {
        self.over.set(true);
    }

    /// Returns true if code runs only to be unwound: at the end of an interleaving, or after a panic. It
    /// does not wait then, because a coroutine that returns control in a destructor could not be
    /// unwound any more.
    pub(super) fn is_over(&self) -> bool {
        self.over.get() || (std::thread::panicking() && !self.unwinds.get())
    }

    /// Returns the thread with this OS id.
    pub(super) fn index_of(&self, os: OsThreadId) -> Option<ThreadIndex> {
        let state = self.state.borrow();
        let index = state.threads.iter().position(|thread| thread.os == os)?;
        Some(ThreadIndex(index as u32))
    }

    /// Changes the state of a thread.
    pub(super) fn change_thread(&self, thread: ThreadIndex, change: impl FnOnce(&mut Thread)) {
        if let Some(thread) = self.state.borrow_mut().threads.get_mut(thread.index()) {
            change(thread);
        }
    }

    pub(super) fn kind(&self, thread: ThreadIndex) -> ThreadKind {
        let state = self.state.borrow();
        state.threads.get(thread.index()).map_or(ThreadKind::Profiler, |thread| thread.kind)
    }

    /// Starts a turn.
    pub(super) fn begin_turn(&self, thread: ThreadIndex) {
        let mut state = self.state.borrow_mut();
        self.turn.begin(thread, state.threads.len());
        state.now += 1;
        state.turns += 1;
        let at = state.now;
        if let Some(offered) = self.offered.take() {
            state.decide(offered, thread);
            self.touch_time();
        }
        state.has_turn(thread);
        if let Some(history) = &mut state.history {
            let (events, statuses) = (Vec::new(), Vec::new());
            history.turns.push(Turn { at, thread, events, statuses });
        }
    }

    /// Adds to the access set of the current turn.
    pub(super) fn touch(&self, footprint: Footprint) {
        self.turn.touch(footprint);
    }

    /// Notes that the current turn depends on time.
    pub(super) fn touch_time(&self) {
        self.turn.touch_time();
    }

    /// Returns the access set of the threads of the program.
    pub(super) fn program(&self) -> Footprint {
        Footprint::threads(self.apps)
    }

    /// Returns the access set of the runtime and the process, with the threads of the program, and without the threads and
    /// objects of the profiler.
    pub(super) fn of_runtime(&self) -> Footprint {
        Footprint::OF_RUNTIME | self.program()
    }

    /// Records an event of a thread that has the turn.
    #[inline]
    pub(super) fn record(&self, thread: ThreadIndex, event: TurnEvent) {
        // Most interleavings are not recorded.
        if self.is_recorded() && !self.is_over() {
            self.add(thread, event);
        }
    }

    #[inline(never)]
    fn add(&self, thread: ThreadIndex, event: TurnEvent) {
        let mut state = self.state.borrow_mut();
        let Some(history) = &mut state.history else { return };
        if let Some(turn) = history.turns.last_mut().filter(|turn| turn.thread == thread) {
            turn.events.push(event);
        }
    }

    /// Returns true if the interleaving is recorded.
    pub(super) fn is_recorded(&self) -> bool {
        self.state.borrow().history.is_some()
    }

    /// Ends the process with all its threads.
    pub(super) fn all_ended(&self) {
        for thread in &mut self.state.borrow_mut().threads {
            thread.ended = true;
        }
        self.touch(Footprint::ALL);
    }

    /// Ends the interleaving with this verdict, unless it has ended already.
    pub(super) fn end(&self, verdict: Verdict) {
        if !self.is_over() {
            // No thread has another turn.
            self.touch(Footprint::ALL);
            self.state.borrow_mut().verdict.get_or_insert(verdict);
        }
    }

    /// Records a rule violation.
    pub(super) fn broke(&self, by: ThreadIndex, rule: ProfilerRule) {
        if self.is_over() {
            return;
        }
        let mut state = self.state.borrow_mut();
        if state.broken.contains(&(by, rule)) {
            return;
        }
        state.broken.push((by, rule));
        drop(state);
        self.record(by, TurnEvent::Breaks(rule));
    }

    /// Changes the innermost code of the profiler that a thread executes.
    pub(super) fn change_activity(&self, thread: ThreadIndex, change: impl FnOnce(&mut Activity)) {
        if let Some(activity) = self.state.borrow_mut().activity_mut(thread) {
            change(activity);
        }
    }

    /// Removes the innermost code of the profiler that a thread executes.
    pub(super) fn end_activity(&self, thread: ThreadIndex) -> Option<Activity> {
        let mut state = self.state.borrow_mut();
        state.threads.get_mut(thread.index())?.activities.pop()
    }

    /// Returns true if a thread has suspended another one, or all of them on behalf of the
    /// profiler.
    pub(super) fn suspends(&self, thread: ThreadIndex) -> bool {
        let state = self.state.borrow();
        let process = self.runtime.process.get();
        let of_profiler = process.suspended_by_profiler || process.profiler_suspensions > 0;
        let by = process.suspension.by().filter(|_| of_profiler);
        if by.is_some() && by == state.threads.get(thread.index()).map(|thread| thread.os) {
            return true;
        }
        state.threads.iter().any(|other| other.suspended_by.contains(&thread))
            || state.threads.get(thread.index()).is_some_and(|thread| thread.walks.is_some())
    }

    /// Returns the number of times that a thread is suspended by calls of the system.
    pub(super) fn suspensions(&self, thread: ThreadIndex) -> u32 {
        let threads = self.runtime.threads.borrow();
        threads.get(thread.index()).map_or(0, |thread| thread.suspended)
    }

    /// Returns true if the condition that a thread waits for is satisfied.
    pub(super) fn has_come(&self, waiting: Waiting, os: OsThreadId) -> bool {
        self.is_there(&self.state.borrow(), waiting, os)
    }

    #[inline]
    fn is_there(&self, state: &State, waiting: Waiting, os: OsThreadId) -> bool {
        match waiting {
            Waiting::Lock(lock) => state.locks.get(lock as usize).is_none_or(LockState::is_free),
            Waiting::Shared(lock) => {
                state.locks.get(lock as usize).is_none_or(|lock| lock.owner.is_none())
            }
            Waiting::Condition(condition, ticket) => {
                state.conditions.get(condition as usize).is_some_and(|state| state.wakes(ticket))
            }
            Waiting::Event(event) => state.events.get(event as usize) != Some(&false),
            Waiting::Join(thread) => {
                state.threads.get(thread.index()).is_none_or(|thread| thread.ended)
            }
            Waiting::Runtime(wait) => self.world.borrow().has_ended(os, wait),
            Waiting::Time => false,
        }
    }

    /// Returns the thread that starts the runtime, until it has ended.
    #[expect(clippy::unused_self, reason = "all questions about the state are asked so")]
    pub(super) fn starts(&self, state: &State) -> Option<ThreadIndex> {
        let starter = state.starter?;
        state.threads.get(starter.index()).filter(|thread| !thread.ended).map(|_| starter)
    }

    /// Collects the runnable threads, ascending. Of the sleepers only the one with the earliest
    /// deadline is added, since other threads may be arbitrarily slow. It is left out if nothing
    /// else is runnable and a timed wait expires first: then time jumps. If limits pass while others can run, the wait
    /// of which the limit passes first is added, unless a sleeper wakes before it or it [is patient](State::is_patient).
    pub(super) fn runnable(&self, into: &mut Vec<ThreadIndex>) {
        into.clear();
        let state = self.state.borrow();
        let known = self.runtime.threads.borrow();
        let mut sleeper: Option<(u64, ThreadIndex)> = None;
        let mut limit = (u64::MAX, ThreadIndex(0));
        let starts = self.starts(&state).is_some();
        for (index, thread) in state.threads.iter().enumerate() {
            let index = ThreadIndex(index as u32);
            let stopped = || {
                let suspended = known.get(index.index()).is_some_and(|known| known.suspended > 0);
                suspended && !thread.in_system
            };
            if thread.ended || starts && thread.kind.is_app() || stopped() {
                continue;
            }
            let Some(activity) = thread.activities.last() else {
                if thread.kind.is_app() && self.executes(thread, index) {
                    into.push(index);
                }
                continue;
            };
            let Some(waiting) = activity.waiting else {
                into.push(index);
                continue;
            };
            let ready = if thread.takes_signal() {
                true
            } else if waiting == Waiting::Time {
                let until = activity.until.unwrap_or(u64::MAX);
                if until > state.now && sleeper.is_none_or(|(first, _)| until < first) {
                    sleeper = Some((until, index));
                }
                until <= state.now
            } else {
                let ready = self.is_there(&state, waiting, thread.os);
                limit = limit.min((activity.until.filter(|_| !ready).unwrap_or(u64::MAX), index));
                ready
            };
            if ready {
                into.push(index);
            }
        }
        let has_limit = limit.0 < u64::MAX && !into.is_empty();
        self.has_limits.set(self.has_limits.get() || has_limit);
        let expires = state.limits_expire
            && has_limit
            && sleeper.is_none_or(|(until, _)| limit.0 < until)
            && !state.is_patient(limit.1, into);
        self.offered.set(expires.then_some(limit.1));
        let sleeper = sleeper.filter(|(until, _)| !into.is_empty() || *until <= limit.0);
        for (_, index) in sleeper.into_iter().chain(expires.then_some(limit)) {
            let place = into.partition_point(|other| *other < index);
            into.insert(place, index);
        }
    }

    /// Returns true if a thread that executes the program can go on, or take a signal.
    fn executes(&self, thread: &Thread, index: ThreadIndex) -> bool {
        let world = self.world.borrow();
        world.waits_for(index.index()).is_none()
            || thread.takes_signal() && world.is_interruptible(index.index())
    }

    /// Advances time to the first deadline, when no thread is runnable. Returns true if there was a
    /// deadline.
    pub(super) fn jump(&self) -> bool {
        let mut state = self.state.borrow_mut();
        let known = self.runtime.threads.borrow();
        let mut first: Option<(u64, usize)> = None;
        for (index, thread) in state.threads.iter().enumerate() {
            let suspended = known.get(index).is_some_and(|known| known.suspended > 0);
            let until = thread.activities.last().and_then(|activity| activity.until);
            if let Some(until) = until.filter(|_| !thread.ended && !suspended)
                && first.is_none_or(|(earliest, _)| until < earliest)
            {
                first = Some((until, index));
            }
        }
        let Some((until, index)) = first else { return false };
        state.now = state.now.max(until);
        let activity = state.threads.get_mut(index).and_then(|thread| thread.activities.last_mut());
        if let Some(activity) = activity {
            activity.waiting = None;
            activity.until = None;
            activity.timed_out = true;
        }
        true
    }

    /// Returns true if a thread will handle a signal before it goes on.
    pub(super) fn takes_signal(&self, thread: ThreadIndex) -> bool {
        let state = self.state.borrow();
        state.threads.get(thread.index()).is_some_and(Thread::takes_signal)
    }

    /// Removes the threads that only time lets go on: after the end of the program only waits for other threads count.
    pub(super) fn without_sleepers(&self, runnable: &mut Vec<ThreadIndex>) {
        let state = self.state.borrow();
        runnable.retain(|thread| {
            let Some(thread) = state.threads.get(thread.index()) else { return false };
            let activity = thread.activities.last();
            activity.is_none_or(|activity| match activity.waiting {
                Some(Waiting::Time) => false,
                Some(waiting) if activity.until.is_some() && !thread.takes_signal() => {
                    self.is_there(&state, waiting, thread.os)
                }
                _ => true,
            })
        });
    }

    /// Returns true if all threads of the program have ended, and there are some.
    pub(super) fn has_program_ended(&self) -> bool {
        if self.apps == 0 {
            return false;
        }
        let state = self.state.borrow();
        let mut apps = state.threads.iter().filter(|thread| thread.kind.is_app()).peekable();
        apps.peek().is_some() && apps.all(|thread| thread.ended)
    }
}
