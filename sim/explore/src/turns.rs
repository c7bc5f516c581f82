//! The order of turns: which thread has the next one.

use super::deadlock;
use super::ending::{HistoryDetail, Limits};
use super::footprint::Footprint;
use super::ids::ThreadIndex;
use super::kernel::Kernel;
use super::schedule_string::{InjectedFault, ScheduleString};
use super::search::{Choice, FallibleCall, Search, Step};
use super::thread::{Body, TurnOrder};
use super::thread_status;
use super::verdict::Verdict;
use clr_runtime::profiling::{CallFault, CallFaults};
use core::cell::RefCell;

/// The turns of an interleaving.
pub(super) struct Turns<'t, 'b> {
    kernel: &'t Kernel<'b>,
    limits: Limits,
    recording: HistoryDetail,
    /// Returns the hash of the profiler's data, if the search observes interleavings.
    data: Option<&'t dyn Fn() -> u64>,
    is_observed: bool,
    /// Threads that the current turn has started.
    started: RefCell<Vec<(ThreadIndex, Body<'static>)>>,
    order: RefCell<Order<'t>>,
}

/// The thread of the next turn.
#[derive(Clone, Copy)]
enum Next {
    /// No thread was chosen yet.
    Undecided,
    /// This thread was chosen at the end of the turn before.
    Thread(ThreadIndex),
    /// No thread has another turn: the interleaving has ended.
    Nothing,
}

/// The state of the order.
struct Order<'t> {
    search: &'t mut (dyn Search + 't),
    schedule: ScheduleString,
    runnable: Vec<ThreadIndex>,
    waits: Vec<(ThreadIndex, Footprint)>,
    /// The thread of the last turn that has ended.
    last: Option<ThreadIndex>,
    /// The thread that has the turn.
    running: Option<ThreadIndex>,
    /// The turn was not chosen: the interleaving is longer than its limit.
    in_turn: bool,
    given_up: bool,
    next: Next,
    /// The program has ended: threads that sleep or wait for an event count as ended.
    stopped: bool,
}

impl<'t, 'b> Turns<'t, 'b> {
    /// Starts an interleaving.
    pub(super) fn new(
        kernel: &'t Kernel<'b>,
        limits: Limits,
        recording: HistoryDetail,
        search: &'t mut dyn Search,
        data: Option<&'t dyn Fn() -> u64>,
    ) -> Self {
        let is_observed = search.observer().is_some();
        kernel.turn.watch(is_observed);
        let order = Order {
            search,
            schedule: ScheduleString::default(),
            runnable: Vec::new(),
            waits: Vec::new(),
            last: None,
            running: None,
            in_turn: false,
            given_up: false,
            next: Next::Undecided,
            stopped: false,
        };
        // Searches that observe interleavings compare states by the data.
        let data = data.filter(|_| is_observed);
        let order = RefCell::new(order);
        let started = RefCell::default();
        Self { kernel, limits, recording, data, is_observed, started, order }
    }

    /// Reports the beginning of the interleaving to the search.
    pub(super) fn start(&self) {
        if let Some(data) = self.data
            && let Some(observer) = self.order.borrow_mut().search.observer()
        {
            observer.started(&|| self.kernel.all_contents(data));
        }
    }

    /// Begins the next turn, and returns its thread; `None` at the end of the interleaving.
    pub(super) fn next(&self) -> Option<ThreadIndex> {
        let mut order = self.order.borrow_mut();
        let chosen = match core::mem::replace(&mut order.next, Next::Undecided) {
            Next::Thread(thread) => Some(thread),
            Next::Nothing => None,
            Next::Undecided => {
                self.end_turn(&mut order);
                self.choose(&mut order)
            }
        };
        order.running = chosen;
        drop(order);
        self.kernel.begin_turn(chosen?);
        chosen
    }

    /// Removes the threads that were started, and returns them.
    pub(super) fn take_started(&self) -> Vec<(ThreadIndex, Body<'static>)> {
        self.started.take()
    }

    /// Returns true if the turn has started threads, or ended the process.
    fn has_to_start(&self) -> bool {
        !self.started.borrow().is_empty() || self.kernel.world.borrow().has_exited()
    }

    /// Returns true if the search has given the interleaving up.
    pub(super) fn are_given_up(&self) -> bool {
        self.order.borrow().given_up
    }

    /// Removes the schedule string of the interleaving, and returns it.
    pub(super) fn take_schedule(&self) -> ScheduleString {
        core::mem::take(&mut self.order.borrow_mut().schedule)
    }

    /// Ends the current turn, if there is one.
    #[inline]
    fn end_turn(&self, order: &mut Order<'_>) {
        let Some(thread) = order.running.take() else { return };
        let kernel = self.kernel;
        if self.is_observed
            && !order.in_turn
            && let Some(observer) = order.search.observer()
        {
            let contents = || self.data.and_then(|data| kernel.contents(thread, data));
            observer.stepped(&Step {
                thread,
                footprint: kernel.turn.footprint(),
                contents: &contents,
            });
        }
        if self.recording == HistoryDetail::Statuses {
            thread_status::record_statuses(kernel);
        }
        order.last = Some(thread);
        order.stopped = order.stopped || kernel.has_program_ended();
    }

    /// Chooses the thread of the next turn; `None` at the end of the interleaving.
    #[inline]
    fn choose(&self, order: &mut Order<'_>) -> Option<ThreadIndex> {
        let kernel = self.kernel;
        let Order { search, schedule, runnable, waits, last, stopped, given_up, .. } = order;
        let turns = loop {
            let turns = {
                let state = kernel.state.borrow();
                if state.verdict.is_some() {
                    return None;
                }
                state.turns
            };
            kernel.runnable(runnable);
            if *stopped {
                kernel.without_sleepers(runnable);
            }
            let limit = self.limits.turns;
            if turns >= limit {
                if *stopped {
                    return None;
                }
                let deadlock = deadlock::deadlock(kernel);
                let is_over = turns >= limit.saturating_mul(2);
                if let Some(verdict) = deadlock.or(is_over.then_some(Verdict::LiveLock)) {
                    kernel.end(verdict);
                    return None;
                }
            }
            if !runnable.is_empty() {
                break turns;
            }
            if *stopped || !kernel.jump() {
                if self.is_observed {
                    kernel.waits(runnable, waits);
                    if let Some(observer) = search.observer() {
                        observer.stopped(waits);
                    }
                }
                if let Some(verdict) = deadlock::verdict(kernel, *stopped) {
                    kernel.end(verdict);
                }
                return None;
            }
        };
        // A thread that makes no progress although all threads get turns makes no progress at
        // all: the reason is not that the search has neglected the thread that it waits for.
        order.in_turn = turns >= self.limits.turns;
        if order.in_turn {
            let next = runnable.iter().find(|thread| Some(**thread) > *last);
            return next.or(runnable.first()).copied();
        }
        if self.is_observed {
            kernel.waits(runnable, waits);
        }
        let within = kernel.turn.is_within();
        let at = Choice { turn: turns, runnable, last: *last, within, waits, process: kernel };
        // Without a choice the search has explored enough of this interleaving.
        let chosen = search.choose(&at).filter(|chosen| runnable.contains(chosen));
        *given_up = chosen.is_none();
        let thread = chosen?;
        schedule.note(turns, runnable, *last, thread);
        Some(thread)
    }
}

impl TurnOrder for Turns<'_, '_> {
    fn fails(&self, thread: ThreadIndex, possible: CallFaults) -> Option<CallFault> {
        let mut order = self.order.borrow_mut();
        let Order { search, schedule, in_turn, .. } = &mut *order;
        let injector = search.injector().filter(|_| !*in_turn)?;
        let mut number = 0;
        self.kernel.change_thread(thread, |me| {
            number = me.fallible_calls;
            me.fallible_calls += 1;
        });
        let fault = injector.fails(FallibleCall { thread, number, possible })?;
        schedule.inject(InjectedFault::new(thread, number, fault));
        Some(fault)
    }

    fn start(&self, thread: ThreadIndex, body: Body<'static>) {
        self.started.borrow_mut().push((thread, body));
    }

    fn goes_on(&self, thread: ThreadIndex) -> bool {
        // Searches that observe and recorded interleavings look at the whole state, for which the stack of a coroutine may be too small.
        // Threads that the turn has started need a stack first, which the owner of all coroutines gives them.
        let kernel = self.kernel;
        if self.is_observed || self.recording != HistoryDetail::Nothing || self.has_to_start() {
            return false;
        }
        let mut order = self.order.borrow_mut();
        if order.running != Some(thread) {
            return false;
        }
        self.end_turn(&mut order);
        let chosen = self.choose(&mut order);
        if chosen != Some(thread) || kernel.takes_signal(thread) {
            order.next = chosen.map_or(Next::Nothing, Next::Thread);
            return false;
        }
        order.running = chosen;
        drop(order);
        kernel.begin_turn(thread);
        true
    }
}
