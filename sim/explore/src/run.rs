//! Execution of one interleaving, from the first choice to its end.

use super::callback::Callback;
use super::condition::ConditionState;
use super::ending::{Ending, HistoryDetail, Limits};
use super::execute::{Executor, TurnOutcome};
use super::footprint::Footprint;
use super::history::{History, ThreadKind, TurnEvent};
use super::ids::ThreadIndex;
use super::kernel::Kernel;
use super::lock::LockState;
use super::patience::LimitBound;
use super::search::Search;
use super::setup::Setup;
use super::state::{Activity, State, Thread as Known};
use super::thread::{Body, CurrentThread, Handlers, TurnOrder};
use super::turns::Turns;
use super::verdict::Verdict;
use clr_coroutine::{Id, Scope, Stacks, State as Was};
use clr_runtime::profiling::CallbackKind;
use clr_runtime::{OsThreadId, Outcome};
use clr_unwind::Registers;
use clr_world::content::ContentHasher;
use clr_world::{SignalError, SignalStack, WorldState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// Data shared by all interleavings of a search.
pub(super) struct SearchData<'g, 'b> {
    pub kernel: &'g Kernel<'b>,
    /// Initial state of the world.
    pub start: &'g WorldState,
    /// Names of the program's threads.
    pub names: &'g [Rc<str>],
    pub signal_stack: SignalStack,
    pub limits: Limits,
}

/// Executes an interleaving.
pub(super) fn run<'p>(
    data: &SearchData<'_, '_>,
    load: &(dyn Fn(&mut Setup<'p>) + 'p),
    search: &mut dyn Search,
    stacks: &mut Stacks,
    recording: HistoryDetail,
) -> Ending {
    let kernel = data.kernel;
    // Only recorded interleavings have names.
    let nameless = (recording == HistoryDetail::Nothing).then(|| Rc::clone(&kernel.nameless));
    let mut setup = Setup { nameless, ..Setup::default() };
    load(&mut setup);
    let bodies = begin(data, &mut setup, recording);
    let setup = &setup;
    let turns = Turns::new(kernel, data.limits, recording, search, setup.data.as_deref());
    let threads = clr_coroutine::scope(stacks, |scope| {
        let mut run = Run { data, setup, turns: &turns, scope };
        run.start(bodies);
        run.go();
        let ends = kernel.ends();
        kernel.finish();
        run.scope.end_all();
        ends
    });
    let (schedule, given_up) = (turns.take_schedule(), turns.are_given_up());
    let mut state = kernel.state.borrow_mut();
    Ending {
        verdict: state.verdict.take(),
        broken: core::mem::take(&mut state.broken),
        points: core::mem::take(&mut state.points),
        limits: kernel.has_limits.get().then_some(if state.limits_expire {
            LimitBound::Early
        } else {
            LimitBound::Last
        }),
        clauses: state.clauses.take().unwrap_or_default(),
        threads,
        turns: state.turns,
        in_turn: state.turns > data.limits.turns,
        given_up,
        schedule,
        history: state.history.take(),
    }
}

/// Sets up the process in its initial state with the profiler's threads. Returns the code of these
/// threads.
fn begin<'p>(
    data: &SearchData<'_, '_>,
    setup: &mut Setup<'p>,
    recording: HistoryDetail,
) -> Vec<(ThreadIndex, Body<'p>)> {
    let kernel = data.kernel;
    let mut world = kernel.world.borrow_mut();
    world.restore(data.start);
    if setup.starts {
        world.begin_with_start();
    }
    kernel.runtime.forget_calls();
    // The memory of the interleaving before is used again.
    let State { mut threads, mut locks, .. } = kernel.state.take();
    let apps = data.names.len();
    threads.truncate(apps + setup.threads.len());
    let mut add = |index: usize, kind, name, os| match threads.get_mut(index) {
        Some(thread) => thread.restart(kind, name, os),
        None => threads.push(Known::new(kind, name, os)),
    };
    for (index, name) in data.names.iter().enumerate() {
        let os = world.os(index).unwrap_or_default();
        add(index, ThreadKind::App, Rc::clone(name), os);
    }
    let mut bodies = Vec::with_capacity(setup.threads.len());
    let starter = setup.starter.map(|starter| ThreadIndex((apps + starter) as u32));
    for (number, beginning) in setup.threads.drain(..).enumerate() {
        let managed = beginning.kind == ThreadKind::ManagedProfiler;
        let os = world.add_profilers_thread(number as u32, managed);
        bodies.push((ThreadIndex((apps + number) as u32), beginning.body));
        add(apps + number, beginning.kind, beginning.name, os);
    }
    world.sync();
    let history = (recording != HistoryDetail::Nothing).then(|| History {
        threads: threads.iter().map(Known::summary).collect(),
        locks: setup.locks.iter().map(|(name, _)| name.to_string()).collect(),
        reasons: Vec::new(),
        turns: Vec::new(),
        starter,
    });
    drop(world);
    locks.clear();
    locks.extend(setup.locks.iter().map(|(_, kind)| LockState::new(*kind)));
    kernel.begin(State {
        threads,
        locks,
        conditions: vec![ConditionState::default(); setup.conditions as usize],
        events: vec![false; setup.events.len()],
        set_at: vec![None; setup.events.len()],
        timed: core::mem::take(&mut setup.events),
        history,
        starter,
        hides_places: setup.hides_places,
        clauses: setup.notes_clauses.then(Vec::new),
        limits_expire: setup.limits_expire,
        ..State::default()
    });
    bodies
}

/// Positions of code that begins a handler of hooks, and one of signals.
const HOOK: u64 = 1;
const SIGNAL: u64 = 2;

pub(super) struct Run<'r, 'stacks, 'env, 'b, 'p> {
    data: &'r SearchData<'env, 'b>,
    setup: &'env Setup<'p>,
    turns: &'env Turns<'env, 'b>,
    scope: &'r mut Scope<'stacks, 'env, ()>,
}

impl<'env, 'p> Run<'_, '_, 'env, '_, 'p> {
    fn start(&mut self, bodies: Vec<(ThreadIndex, Body<'p>)>) {
        for (index, body) in bodies {
            self.activity(index, TurnEvent::Ends, body);
        }
    }

    /// Starts code of the profiler on a thread.
    fn activity(
        &mut self,
        me: ThreadIndex,
        ends_with: TurnEvent,
        body: impl FnOnce(&CurrentThread<'_, '_>) + 'env,
    ) {
        let kernel = self.data.kernel;
        let (handlers, turns): (&'env dyn Handlers, &'env dyn TurnOrder) = (self.setup, self.turns);
        let os = kernel.state.borrow().threads.get(me.index()).map(|thread| thread.os);
        let os = os.unwrap_or_default();
        let started = self.scope.start(move |yielder| {
            body(&CurrentThread { kernel, handlers, turns, yielder, me, os });
        });
        let Ok(id) = started else {
            let words = if clr_coroutine::SUPPORTED {
                "no memory for a stack"
            } else {
                "stacks cannot be switched on this processor"
            };
            let words = words.to_owned();
            return kernel.end(Verdict::Failed { by: me, words });
        };
        let activity = Activity {
            id,
            ends_with,
            waiting: None,
            until: None,
            timed_out: false,
            interruption: None,
            interrupted: false,
            within: Footprint::default(),
            place: None,
        };
        if let Some(thread) = kernel.state.borrow_mut().threads.get_mut(me.index()) {
            thread.activities.push(activity);
        }
    }

    /// Executes turns until the interleaving ends.
    fn go(&mut self) {
        let kernel = self.data.kernel;
        self.turns.start();
        while let Some(thread) = self.turns.next() {
            self.begin_turn(thread);
            let started = self.turns.take_started();
            if !started.is_empty() {
                self.start(started);
            }
            if kernel.world.borrow().has_exited() {
                kernel.all_ended();
            }
        }
    }

    /// Executes a turn of a thread.
    fn begin_turn(&mut self, thread: ThreadIndex) {
        let kernel = self.data.kernel;
        let (signalled, activity) = {
            let state = kernel.state.borrow();
            let thread = state.threads.get(thread.index());
            let signalled = thread.is_some_and(Known::takes_signal);
            let activity = thread.and_then(|thread| thread.activities.last());
            (signalled, activity.map(|activity| activity.id))
        };
        if signalled && self.signal(thread, activity.is_some()) {
            return;
        }
        match activity {
            Some(id) => self.resume(thread, id),
            None => match Executor::new(kernel, self.data.limits, thread).run(self.setup) {
                TurnOutcome::Point => {}
                TurnOutcome::Crash => {
                    let handler = self.setup.crash.clone();
                    self.activity(thread, TurnEvent::Ends, move |thread| {
                        if let Some(handler) = handler {
                            handler(thread);
                        }
                        thread.unwind();
                    });
                }
                TurnOutcome::Callback(kind) => {
                    if let Some(handler) = self.setup.handler(kind) {
                        kernel.record(thread, TurnEvent::Callback(kind));
                        let ends_with = TurnEvent::CallbackOver(kind);
                        let callback = kernel.callback_of_program(thread, kind);
                        kernel.turn.comes_to(ContentHasher::of(&callback));
                        self.activity(thread, ends_with, move |thread| {
                            thread.within(callback, || handler(thread));
                        });
                    }
                }
                TurnOutcome::Entered(function) => {
                    if let Some(handler) = self.setup.export.clone() {
                        kernel.record(thread, TurnEvent::Export);
                        self.activity(thread, TurnEvent::ExportOver, move |thread| {
                            handler(thread, function);
                        });
                    }
                }
                TurnOutcome::Hook => {
                    if let Some(handler) = self.setup.hook.clone() {
                        kernel.record(thread, TurnEvent::Hook);
                        kernel.turn.comes_to(HOOK);
                        self.activity(thread, TurnEvent::HookOver, move |thread| handler(thread));
                    }
                }
            },
        }
    }

    /// Delivers a signal to a thread, if it can be handled at its current place. Returns true if
    /// the handler was started.
    fn signal(&mut self, thread: ThreadIndex, in_profiler: bool) -> bool {
        let kernel = self.data.kernel;
        if !kernel.runtime.generation.is_unix() {
            kernel.signalled(thread, None);
            return false;
        }
        let mut interrupted = None;
        if !in_profiler {
            let stack = self.data.signal_stack;
            match kernel.world.borrow_mut().signal(thread.index(), stack) {
                Ok(signal) => interrupted = Some(signal.registers),
                Err(SignalError::NoRoom { .. }) => {
                    let outcome = Outcome::AccessViolation { at: 0 };
                    kernel.end(Verdict::ProcessKilled { by: thread, outcome });
                    return true;
                }
                Err(SignalError::NoSignals | SignalError::Ended | SignalError::NoThread(_)) => {
                    kernel.signalled(thread, None);
                    return false;
                }
                // The signal is delivered when the thread executes instructions again.
                Err(SignalError::Busy | SignalError::InHandler) => return false,
            }
        }
        kernel.signalled(thread, interrupted.as_ref());
        kernel.world.borrow_mut().sync();
        kernel.record(thread, TurnEvent::Signal);
        kernel.turn.comes_to(SIGNAL);
        if let Some(handler) = self.setup.signal.clone() {
            self.activity(thread, TurnEvent::SignalOver, move |thread| handler(thread));
        }
        true
    }

    /// Resumes code of the profiler.
    fn resume(&mut self, thread: ThreadIndex, id: Id) {
        let kernel = self.data.kernel;
        match catch_unwind(AssertUnwindSafe(|| self.scope.resume(id))) {
            Ok(Some(Was::Yielded(()))) => {}
            Ok(_) => {
                let ended = kernel.end_activity(thread);
                let Some(ends_with) = ended.map(|ended| ended.ends_with) else { return };
                kernel.record(thread, ends_with);
                let mut state = kernel.state.borrow_mut();
                if let Some(known) = state.threads.get_mut(thread.index()) {
                    if ends_with == TurnEvent::SignalOver {
                        known.interrupted = None;
                    }
                    // The process may have ended within it.
                    known.ended |= known.activities.is_empty() && ends_with == TurnEvent::Ends;
                    if known.ended && known.kind.is_app() {
                        // The thread's exception was not caught: the process ends with all its
                        // threads.
                        drop(state);
                        kernel.all_ended();
                    } else if known.ended {
                        let os = known.os;
                        drop(state);
                        kernel.detach_from_runtime(os);
                    }
                }
            }
            Err(panic) => {
                let words = panic
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| panic.downcast_ref::<&str>().map(|words| (*words).to_owned()))
                    .unwrap_or_else(|| "the code has panicked".to_owned());
                kernel.end(Verdict::Failed { by: thread, words });
            }
        }
    }
}

impl Kernel<'_> {
    /// Returns the callback that a thread of the program makes, with its arguments.
    fn callback_of_program(&self, thread: ThreadIndex, kind: CallbackKind) -> Callback {
        let mut world = self.world.borrow_mut();
        world.sync();
        let arguments = world.callback_arguments(thread.index());
        let own = || world.object(thread.index()).unwrap_or_default();
        let about = if arguments.thread.0 == 0 { own() } else { arguments.thread };
        Callback { kind, thread: about, arguments }
    }

    /// Notes in the runtime that a thread of the profiler has ended, if the runtime knows the thread.
    fn detach_from_runtime(&self, os: OsThreadId) {
        if self.runtime.object_of(os).is_some() {
            self.touch(self.of_runtime());
            self.world.borrow_mut().detach_thread(os);
        }
    }

    /// Consumes a signal of a thread.
    fn signalled(&self, thread: ThreadIndex, interrupted: Option<&Registers>) {
        if let Some(known) = self.state.borrow_mut().threads.get_mut(thread.index()) {
            known.signals = known.signals.saturating_sub(1);
            known.interrupted = interrupted.copied().map(Box::new);
        }
    }
}
