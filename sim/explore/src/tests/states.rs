//! Tests of the hash of the state that deadlocks depend on: what shows in it, and what does not.

use super::*;
use crate::condition::ConditionState;
use clr_world::{Build, StepEvent};

/// Creates a program whose thread sleeps, which is preemptive, and allocates.
pub(super) fn build() -> Build {
    let call = |kind| Statement::Runtime(RuntimeCall { kind, target: None });
    let body = vec![call(RuntimeCallKind::Sleep), call(RuntimeCallKind::New)];
    let program = Program { functions: vec![function("Main", body)], ..Program::default() };
    Build::new(&program, &BTreeMap::new(), Generation::CoreClr31Windows).unwrap()
}

pub(super) fn kernel(build: &Build) -> Kernel<'_> {
    let main = ThreadStart::Managed(FunctionIndex(0));
    Kernel::new(build.world(&[main]).unwrap()).unwrap()
}

/// Begins an interleaving with a thread of the program, two of the profiler, two locks and two condition variables.
fn begin(kernel: &Kernel<'_>) {
    let thread = |(index, kind): (u32, ThreadKind)| Thread::new(kind, "".into(), OsThreadId(index));
    let (app, profiler) = (ThreadKind::App, ThreadKind::Profiler);
    kernel.begin(State {
        threads: [(1, app), (2, profiler), (3, profiler)].map(thread).into(),
        locks: vec![LockState::new(LockKind::Plain); 2],
        conditions: vec![ConditionState::default(); 2],
        ..State::default()
    });
}

pub(super) const fn activity(id: Id, waiting: Option<Waiting>) -> Activity {
    let (until, timed_out, place) = (None, false, None);
    let (interruption, interrupted) = (None, false);
    let (ends_with, within) = (TurnEvent::Ends, Footprint::MEMORY);
    Activity { id, ends_with, waiting, until, timed_out, interruption, interrupted, within, place }
}

type Change<'c> = &'c dyn Fn(&mut State);

#[test]
fn states_that_differ_in_owners_waits_and_suspensions_have_other_hashes() {
    let (build, mut stacks) = (build(), Stacks::new(64 * 1024));
    let id =
        scope(&mut stacks, |scope| scope.start(|_: &clr_coroutine::Yielder<'_, ()>| {}).unwrap());
    let waits = |thread: usize, waiting| {
        move |state: &mut State| state.threads[thread].activities.push(activity(id, waiting))
    };
    let owns = |lock: usize, owner: u32| {
        move |state: &mut State| state.locks[lock].owner = Some(ThreadIndex(owner))
    };
    let shares = |lock: usize, readers: usize| {
        move |state: &mut State| state.locks[lock].readers = vec![ThreadIndex(1); readers]
    };
    let walks = |walker: usize, target: u32| {
        move |state: &mut State| state.threads[walker].walks = Some(ThreadIndex(target))
    };
    let ended = |thread: usize| move |state: &mut State| state.threads[thread].ended = true;
    let runs = waits(1, None);
    let changes: [Change<'_>; 31] = [
        &|_| {},
        &owns(0, 0),
        &owns(0, 1),
        &owns(1, 0),
        &shares(0, 1),
        &shares(0, 2),
        &shares(1, 1),
        &ended(0),
        &ended(1),
        &walks(1, 0),
        &walks(1, 2),
        &walks(2, 0),
        &runs,
        &|state| {
            runs(state);
            runs(state);
        },
        &waits(2, None),
        &waits(1, Some(Waiting::Lock(0))),
        &waits(1, Some(Waiting::Lock(1))),
        &waits(1, Some(Waiting::Lock(2))),
        &waits(2, Some(Waiting::Lock(0))),
        &waits(1, Some(Waiting::Shared(0))),
        &waits(1, Some(Waiting::Shared(1))),
        &waits(1, Some(Waiting::Shared(2))),
        &waits(1, Some(Waiting::Condition(0, 0))),
        &waits(1, Some(Waiting::Condition(1, 0))),
        &waits(1, Some(Waiting::Condition(2, 0))),
        &waits(1, Some(Waiting::Event(0))),
        &waits(1, Some(Waiting::Event(3))),
        &waits(1, Some(Waiting::Join(ThreadIndex(0)))),
        &waits(1, Some(Waiting::Join(ThreadIndex(2)))),
        &waits(1, Some(Waiting::Time)),
        &waits(1, Some(Waiting::Runtime(Wait::ThreadsToStop))),
    ];
    let kernel = kernel(&build);
    let mut hashes = BTreeMap::new();
    for (number, change) in changes.iter().enumerate() {
        begin(&kernel);
        change(&mut kernel.state.borrow_mut());
        let same = hashes.insert(kernel.abstract_state(), number);
        assert_eq!(same, None, "as {number}");
    }
    // Tickets, times and names are no part of the state.
    begin(&kernel);
    waits(1, Some(Waiting::Condition(0, 7)))(&mut kernel.state.borrow_mut());
    let mut state = kernel.state.borrow_mut();
    state.now = 99;
    state.turns = 9;
    state.threads[2].name = "other".into();
    drop(state);
    assert_eq!(hashes[&kernel.abstract_state()], 22);
}

#[test]
fn states_of_the_runtime_have_other_hashes() {
    let build = build();
    let kernel = kernel(&build);
    begin(&kernel);
    let mut hashes = BTreeSet::from([kernel.abstract_state()]);
    let start = kernel.runtime.process.get();
    for by in [1, 2] {
        for suspension in
            [Suspension::Suspending(OsThreadId(by)), Suspension::Suspended(OsThreadId(by))]
        {
            kernel.runtime.process.set(clr_runtime::Process { suspension, ..start });
            assert!(hashes.insert(kernel.abstract_state()), "{suspension:?}");
        }
        for lock in Lock::ALL {
            let mut process = start;
            assert!(process.try_acquire(lock, OsThreadId(by)));
            kernel.runtime.process.set(process);
            assert!(hashes.insert(kernel.abstract_state()), "{lock:?} of {by}");
        }
    }
    kernel.runtime.process.set(start);
    let os = kernel.world.borrow().os(0).unwrap();
    for suspended in [1, 2, 3] {
        kernel.runtime.change_thread(os, |thread| thread.suspended = suspended);
        assert!(hashes.insert(kernel.abstract_state()), "suspended {suspended} times");
    }
    kernel.runtime.change_thread(os, |thread| thread.suspended = 0);
    assert!(!hashes.insert(kernel.abstract_state()), "as at the beginning");
}

#[test]
fn the_mode_of_a_thread_of_the_program_shows_in_the_hash() {
    let build = build();
    let kernel = kernel(&build);
    begin(&kernel);
    let mut hashes = BTreeMap::new();
    let mut modes = BTreeSet::new();
    loop {
        let event = kernel.world.borrow_mut().step(0).unwrap();
        let world = kernel.world.borrow();
        let process = kernel.runtime.process.get();
        let owners: Vec<_> = Lock::ALL.into_iter().map(|lock| process.owner(lock)).collect();
        let known = (world.is_cooperative(0), world.waits_for(0).is_some(), owners);
        modes.insert(known.0);
        let first = hashes.entry(kernel.abstract_state()).or_insert_with(|| known.clone());
        assert_eq!(*first, known);
        if event == StepEvent::Ended {
            break;
        }
    }
    assert_eq!(modes.len(), 2);
    let distinct: BTreeSet<_> = hashes.values().map(|known| format!("{known:?}")).collect();
    assert_eq!(distinct.len(), hashes.len(), "the rest of the world is no part of the state");
}
