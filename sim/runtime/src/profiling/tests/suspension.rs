//! Tests of the suspension of the target by `DoStackSnapshot` (contract §2.4, C-025 to C-031).

use super::*;

const WINDOWS: Generations = Generations::WINDOWS;

fn monitored(generation: Generation, recorder: &Recorder) -> Runtime<'_, Machine> {
    let mut runtime = process(generation);
    runtime.profiler = Some(recorder);
    runtime.change_process(|process| process.event_mask = EventMask(0x1001_0000));
    runtime
}

fn suspended(runtime: &Runtime<'_, Machine>) -> u32 {
    runtime.thread(OTHER, |thread| thread.suspended).unwrap()
}

/// Asserts that a call has left nothing behind: locks, counts, the filter context, the target's
/// suspension.
fn assert_clean(runtime: &Runtime<'_, Machine>, before: u32) {
    let at = |id, offset| word(runtime, id, offset);
    let generation = runtime.generation;
    assert_eq!(suspended(runtime), before, "{generation}: the target's suspension");
    for (id, name) in [(OTHER_ID, "target"), (WORKER_ID, "caller")] {
        assert_eq!(at(id, 0x10), 0, "{generation}: the {name}'s hijack lock");
        assert_eq!(at(id, FORBID_SUSPEND), 0, "{generation}: the {name}'s forbid count");
        assert_eq!(at(id, EXTERNAL_COUNT), 1, "{generation}: the {name}'s count");
        assert_eq!(at(id, 0x40), 0, "{generation}: the {name}'s filter context");
    }
}

/// Tests C-026, C-029.
#[test]
fn the_target_is_suspended_and_resumed_with_callbacks_on_the_walker() {
    for generation in WINDOWS.iter() {
        for (os, already) in [(WORKER, 0), (STRANGER, 0), (WORKER, 2)] {
            let recorder = Recorder::default();
            let runtime = monitored(generation, &recorder);
            runtime.change_thread(OTHER, |thread| thread.suspended = already);
            assert_eq!(walk(runtime.on(os), OTHER_ID), E_FAIL.into(), "{generation}");
            let seen = recorder.seen.borrow();
            let expected = [RuntimeThreadSuspended(OTHER_ID), RuntimeThreadResumed(OTHER_ID)];
            assert_eq!(seen.iter().map(|seen| seen.callback).collect::<Vec<_>>(), expected);
            for Seen { thread, bits, other, .. } in seen.iter() {
                assert_eq!((*thread, *bits), (os, 1), "{generation}");
                // The target is being walked (C-014).
                assert_eq!(*other, UNSAFE.into(), "{generation}");
            }
            // The walker itself may be walked again during the callbacks: a native one has no
            // frames.
            let own = if os == WORKER { E_FAIL } else { HResult(0) };
            assert!(seen.iter().all(|seen| seen.own == own.into()), "{generation}: {seen:?}");
            assert_clean(&runtime, already);
        }
    }
}

/// A profiler that reads the target's counts in the callbacks.
struct Counts(RefCell<Vec<(u32, u32, u32)>>);

impl<'a> Profiler<'a, Machine> for Counts {
    fn call_back(&self, runtime: &Runtime<'a, Machine>, _: OsThreadId, _: ProfilerCallback) {
        let at = |id, offset| word(runtime, id, offset);
        let counts =
            (suspended(runtime), at(OTHER_ID, EXTERNAL_COUNT), at(WORKER_ID, FORBID_SUSPEND));
        self.0.borrow_mut().push(counts);
    }
}

#[test]
fn meanwhile_it_is_suspended_and_counted() {
    for generation in WINDOWS.iter() {
        let counts = Counts(RefCell::default());
        let mut runtime = process(generation);
        runtime.profiler = Some(&counts);
        runtime.change_process(|process| process.event_mask = EventMask(0x1001_0000));
        walk(runtime.on(WORKER), OTHER_ID);
        // The walker's own forbid-suspend region ended with the suspension (C-030).
        assert_eq!(*counts.0.borrow(), [(1, 2, 0), (0, 2, 0)], "{generation}");
    }
}

#[test]
fn without_the_event_flag_suspensions_are_not_reported() {
    for generation in WINDOWS.iter() {
        let recorder = Recorder::default();
        let runtime = monitored(generation, &recorder);
        runtime.change_process(|process| process.event_mask = EventMask::ENABLE_STACK_SNAPSHOT);
        assert_eq!(walk(runtime.on(WORKER), OTHER_ID), E_FAIL.into(), "{generation}");
        assert_eq!(*recorder.seen.borrow(), [], "{generation}");
        assert_clean(&runtime, 0);
    }
}

/// Tests C-027, C-028.
#[test]
fn some_threads_cannot_be_suspended() {
    let killed = Outcome::ProcessKilled { code: 0x8013_135E };
    for generation in WINDOWS.iter() {
        let recorder = Recorder::default();
        let runtime = monitored(generation, &recorder);
        runtime.change_thread(OTHER, |thread| thread.resists_suspension = true);
        assert_eq!(walk(runtime.on(WORKER), OTHER_ID), UNSAFE.into(), "{generation}");
        assert_clean(&runtime, 0);
        runtime.change_thread(OTHER, |thread| thread.resists_suspension = false);
        for id in [CREATED_ID, DEAD_ID, NO_THREAD] {
            assert_eq!(walk(runtime.on(WORKER), id), killed, "{generation}, {id:x?}");
        }
        // The target is no longer referenced.
        set_word(&runtime, OTHER_ID, EXTERNAL_COUNT, 0);
        assert_eq!(walk(runtime.on(WORKER), OTHER_ID), killed, "{generation}");
        runtime.change_thread(OTHER, |thread| thread.handle = 0);
        assert_eq!(*recorder.seen.borrow(), [], "{generation}");
        let at = walk(runtime.on(WORKER), NOWHERE);
        assert!(matches!(at, Outcome::AccessViolation { .. }), "{generation}: {at}");
    }
    for generation in WINDOWS.inverse().iter() {
        let runtime = process(generation);
        for id in [OTHER_ID, CREATED_ID, DEAD_ID, NO_THREAD] {
            // Unix checks none of these (C-019).
            assert_eq!(walk(runtime.on(WORKER), id), E_NOTIMPL.into(), "{generation}, {id:x?}");
        }
        assert_clean(&runtime, 0);
    }
}

#[test]
fn a_target_without_handle_ends_the_process() {
    for generation in WINDOWS.iter() {
        let runtime = process(generation);
        runtime.change_thread(OTHER, |thread| thread.handle = 0);
        let killed = Outcome::ProcessKilled { code: 0x8013_135E };
        assert_eq!(walk(runtime.on(STRANGER), OTHER_ID), killed, "{generation}");
    }
}

/// Tests C-020, C-031, C-128.
#[test]
fn under_a_suspended_runtime_no_thread_is_suspended() {
    for generation in WITH_SUSPENSION.iter() {
        let recorder = Recorder::default();
        let runtime = monitored(generation, &recorder);
        runtime.on(STRANGER).suspend_runtime().unwrap();
        recorder.seen.borrow_mut().clear();
        assert_eq!(walk(runtime.on(STRANGER), OTHER_ID), E_FAIL.into(), "{generation}");
        assert_eq!(*recorder.seen.borrow(), [], "{generation}");
        // Not even a thread that cannot be suspended.
        runtime.change_thread(OTHER, |thread| thread.handle = 0);
        assert_eq!(walk(runtime.on(STRANGER), OTHER_ID), E_FAIL.into(), "{generation}");
        set_word(&runtime, OTHER_ID, COOPERATIVE, 1);
        if generation.is_unix() {
            assert_eq!(walk(runtime.on(STRANGER), OTHER_ID), E_NOTIMPL.into(), "{generation}");
        }
    }
}
