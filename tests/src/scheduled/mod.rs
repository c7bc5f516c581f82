//! The reference walker in a profiler that follows its documentation, under schedules. Nothing may
//! fail while threads of the program allocate, compile, load, throw, begin and end.

mod steps;

pub use steps::{Noted, Sequence, Step, independent};

use clr_explore::{CurrentThread, Ending, Setup, TestedProcess, ThreadIndex, TurnEvent, Verdict};
use clr_generate::WorldProgram;
use clr_runtime::generation::Generation;
use clr_runtime::profiling::{CallbackKind, Policy, PolicyWalker};
use clr_walker::mixed::{RuntimeSuspension, WalkBuffer, Walker};
use clr_walker::profiling::{ProfilerInfo as _, TargetThread as _, ThreadId};
use clr_world::BuildError;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::rc::Rc;

/// Creates the process of a generated program, whose threads are named by their numbers.
///
/// # Errors
/// Returns [`BuildError`] if the program cannot be built.
pub fn process(program: &WorldProgram) -> Result<TestedProcess, BuildError> {
    let threads = program.threads.iter().enumerate();
    let threads: Vec<_> = threads.map(|(index, start)| (format!("app{index}"), *start)).collect();
    let threads: Vec<_> = threads.iter().map(|(name, start)| (name.as_str(), *start)).collect();
    Ok(TestedProcess::from_build(program.build()?, &threads).stopping_by(program.stop_by))
}

/// Returns what a recorded interleaving shows: its verdict, the rules that were broken, and the events of each thread.
///
/// # Panics
/// If the interleaving was not recorded.
#[must_use]
pub fn observed(ending: &Ending) -> String {
    let mut events: BTreeMap<ThreadIndex, Vec<String>> = BTreeMap::new();
    let history = ending.history.as_ref().expect("the interleaving was recorded");
    for turn in &history.turns {
        // The begin of a wait is observed by nobody.
        let seen = turn.events.iter().filter(|event| **event != TurnEvent::Waits);
        let words = |event: &TurnEvent| match event {
            // Reasons are numbered in the order of the interleaving.
            TurnEvent::Refused(reason) => format!("{:?}", history.reasons.get(*reason as usize)),
            event => format!("{event:?}"),
        };
        events.entry(turn.thread).or_default().extend(seen.map(words));
    }
    let mut broken = ending.broken.clone();
    broken.sort_unstable();
    format!("{:?} {broken:?} {events:#?}", ending.verdict.as_ref().map(Verdict::fingerprint))
}

/// Maximum number of frames in a walk.
const CAPACITY: usize = 64;
/// Interval between two rounds of a sampler (µs).
const INTERVAL: u64 = 10_000;

/// The parameters of the profiler's sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// Policy of the walks.
    pub policy: Policy,
    /// Number of rounds, each of which walks all threads.
    pub rounds: u32,
}

/// State that the threads of a profiler share in an interleaving.
#[derive(Default)]
struct Alive {
    /// The program's threads that may be walked: created, and not destroyed.
    threads: RefCell<Vec<ThreadIndex>>,
    /// The threads that execute code of the profiler. One that a signal interrupts there may own a
    /// lock that the handler needs.
    busy: RefCell<BTreeSet<ThreadIndex>>,
}

impl Alive {
    /// Executes code of the profiler in a callback.
    fn busy(&self, me: &CurrentThread<'_, '_>, body: impl FnOnce()) {
        self.busy.borrow_mut().insert(me.index());
        body();
        self.busy.borrow_mut().remove(&me.index());
    }
}

impl Sampler {
    /// Returns true if a thread of the profiler itself can walk others by the policy.
    #[must_use]
    pub const fn is_asynchronous(&self) -> bool {
        matches!(
            self.policy,
            Policy::Unseeded | Policy::Seeded | Policy::RuntimeSuspended | Policy::FramePointers
        )
    }

    /// Returns true if threads walk themselves in signal handlers.
    const fn is_by_signal(self) -> bool {
        matches!(self.policy, Policy::Signal | Policy::SignalSnapshot)
    }

    /// Returns true if a generation supports the policy.
    #[must_use]
    pub const fn is_for(&self, generation: Generation) -> bool {
        match self.policy {
            Policy::Signal | Policy::SignalSnapshot => generation.is_unix(),
            _ => true,
        }
    }

    /// Loads the profiler. `walked` counts the walks.
    pub fn load<'p>(self, setup: &mut Setup<'p>, walked: &'p Cell<u64>) {
        let alive = Rc::new(Alive::default());
        // The lock is held during each walk, and while a thread is removed from the list: a thread
        // is not destroyed while it is walked (H-04).
        let list = setup.lock("threads");
        let known = Rc::clone(&alive);
        setup.on(CallbackKind::ThreadCreated, move |me| {
            known.busy(me, || {
                // The runtime's data for a thread is created before a signal's handler needs it
                // (H-03).
                let _ = me.info().get_function_from_ip(0);
                let _list = me.lock(list);
                known.threads.borrow_mut().push(me.index());
            });
        });
        let known = Rc::clone(&alive);
        setup.on(CallbackKind::ThreadDestroyed, move |me| {
            known.busy(me, || {
                let _list = me.lock(list);
                known.threads.borrow_mut().retain(|thread| *thread != me.index());
            });
        });
        match self.policy {
            Policy::Synchronous => {
                setup
                    .on(CallbackKind::ObjectAllocated, move |me| self.walk(me, me.index(), walked));
                setup.on(CallbackKind::ExceptionThrown, move |me| {
                    self.walk(me, me.index(), walked);
                });
                return;
            }
            Policy::Signal | Policy::SignalSnapshot => {
                let known = Rc::clone(&alive);
                setup.on_signal(move |me| {
                    // A handler that asks nothing needs no lock.
                    let asks = self.policy == Policy::SignalSnapshot;
                    if !asks || !known.busy.borrow().contains(&me.index()) {
                        self.walk(me, me.index(), walked);
                    }
                });
            }
            _ => {}
        }
        setup.thread("sampler", move |me| {
            for _ in 0..self.rounds {
                me.sleep(INTERVAL);
                if self.policy == Policy::RuntimeSuspended {
                    suspended_round(me, list, &alive, walked);
                    continue;
                }
                let _list = me.lock(list);
                for index in 0.. {
                    let thread = alive.threads.borrow().get(index).copied();
                    let Some(thread) = thread else { break };
                    if self.is_by_signal() {
                        me.signal(thread);
                    } else {
                        self.walk(me, thread, walked);
                    }
                }
            }
        });
    }

    fn walk(self, me: &CurrentThread<'_, '_>, thread: ThreadIndex, walked: &Cell<u64>) {
        let Some(target) = me.target(thread) else { return };
        let info = me.info();
        let way = PolicyWalker::new(&info, me.modules_for(self.policy), self.policy);
        // A real profiler would have a buffer ready; here each walk creates its own beforehand.
        let mut buffer = WalkBuffer::new(CAPACITY);
        count(me, target.id(), way.take(&target, &mut buffer), walked);
    }
}

/// Counts a walk that the process has survived.
fn count(
    me: &CurrentThread<'_, '_>,
    target: ThreadId,
    taken: Result<(), impl Display>,
    walked: &Cell<u64>,
) {
    match taken {
        Ok(()) => walked.set(walked.get() + 1),
        Err(outcome) => me.fail(format!("a walk of {target:?}: {outcome}")),
    }
}

/// Walks all threads while the runtime is suspended. The list is locked only after the suspension:
/// suspending the runtime needs the runtime's own list of threads, which a CLR may have locked while it
/// waits in `ThreadDestroyed` for a thread from unmanaged code (contract §6).
fn suspended_round(
    me: &CurrentThread<'_, '_>,
    list: clr_explore::ProfilerLock,
    alive: &Alive,
    walked: &Cell<u64>,
) {
    let info = me.info();
    let way = Walker::new(&info, me.modules(), clr_walker::mixed::Policy::RuntimeSuspended);
    // Older runtimes do not support this.
    let Ok(suspension) = RuntimeSuspension::new(&info) else { return };
    {
        let _list = me.lock(list);
        for index in 0.. {
            let thread = alive.threads.borrow().get(index).copied();
            let Some(target) = thread.and_then(|thread| me.target(thread)) else { break };
            let mut buffer = WalkBuffer::new(CAPACITY);
            let taken = way.take_suspended(&suspension, &target, &mut buffer);
            count(me, target.id(), taken, walked);
        }
    }
    if suspension.resume().is_err() {
        me.fail("the runtime cannot be resumed");
    }
}
