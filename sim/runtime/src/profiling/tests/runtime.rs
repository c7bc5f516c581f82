//! Tests of SuspendRuntime and ResumeRuntime (contract §5.9, §5.10, §6).

use super::*;
use ProfilerCallback::{
    RuntimeResumeFinished, RuntimeResumeStarted, RuntimeSuspendFinished, RuntimeSuspendStarted,
};

/// Creates a process whose profiler monitors suspensions.
fn monitored(generation: Generation, recorder: &Recorder) -> Runtime<'_, Machine> {
    let mut runtime = process(generation);
    runtime.profiler = Some(recorder);
    runtime.change_process(|process| process.event_mask = EventMask(0x1001_0000));
    runtime
}

fn suspension(runtime: &Runtime<'_, Machine>) -> (Suspension, bool) {
    let process = runtime.process.get();
    (process.suspension, process.suspended_by_profiler)
}

#[test]
fn the_frameworks_cannot_be_suspended() {
    for generation in FRAMEWORK.iter() {
        let runtime = process(generation);
        for os in [STRANGER, WORKER] {
            assert_eq!(runtime.on(os).suspend_runtime(), failed(E_NOTIMPL), "{generation}");
            assert_eq!(runtime.on(os).resume_runtime(), failed(E_NOTIMPL), "{generation}");
        }
    }
}

/// Tests C-119, C-167.
#[test]
fn some_threads_may_suspend_the_runtime() {
    for generation in WITH_SUSPENSION.iter() {
        let new = NEW.contains(generation);
        for (os, bits, allowed) in [
            (STRANGER, 0, true),
            // In a P/Invoke, or asynchronously in managed code.
            (OTHER, 0, new),
            (WORKER, 0, new),
            // In callbacks: only in those that may trigger a GC.
            (WORKER, 1, false),
            (WORKER, 3, true),
            (OTHER, 3, true),
            (WORKER, 4, true),
            (WORKER, 1 | 8, true),
        ] {
            let runtime = process(generation);
            let expected = if allowed { Ok(()) } else { failed(UNSUPPORTED_CALL_SEQUENCE) };
            let suspended = with_state(&runtime, os, bits, |caller| caller.suspend_runtime());
            assert_eq!(suspended, expected, "{generation}, {os:?}, {bits}");
            let state =
                if allowed { (Suspension::Suspended(os), true) } else { Default::default() };
            assert_eq!(suspension(&runtime), state, "{generation}, {os:?}, {bits}");
            runtime.change_process(|process| process.suspended_by_profiler = true);
            let resumed = with_state(&runtime, os, bits, |caller| caller.resume_runtime());
            assert_eq!(resumed, expected, "{generation}, {os:?}, {bits}");
        }
    }
}

#[test]
fn a_runtime_that_has_not_started_cannot_be_suspended() {
    for generation in WITH_SUSPENSION.iter() {
        let runtime = process(generation);
        runtime.change_process(|process| process.started = false);
        let caller = runtime.on(STRANGER);
        assert_eq!(caller.suspend_runtime(), failed(RUNTIME_UNINITIALIZED), "{generation}");
        assert_eq!(caller.resume_runtime(), failed(RUNTIME_UNINITIALIZED), "{generation}");
        // The caller is checked first.
        let found = with_state(&runtime, WORKER, 1, |caller| caller.suspend_runtime());
        assert_eq!(found, failed(UNSUPPORTED_CALL_SEQUENCE), "{generation}");
        let detaching = crate::ProfilerStatus::Detaching;
        runtime.change_process(|process| process.profiler = detaching);
        assert_eq!(caller.suspend_runtime(), failed(PROFILER_DETACHING), "{generation}");
    }
}

/// Tests C-126, C-127.
#[test]
fn one_suspension_at_a_time() {
    for generation in WITH_SUSPENSION.iter() {
        let runtime = process(generation);
        let caller = runtime.on(STRANGER);
        assert_eq!(caller.resume_runtime(), failed(UNSUPPORTED_CALL_SEQUENCE), "{generation}");
        for other in [
            Suspension::Suspending(OTHER),
            Suspension::Suspended(OTHER),
            Suspension::Suspending(STRANGER),
        ] {
            runtime.change_process(|process| process.suspension = other);
            let found = caller.suspend_runtime();
            assert_eq!(found, failed(SUSPENSION_IN_PROGRESS), "{generation}, {other:?}");
            assert_eq!(suspension(&runtime), (other, false), "{generation}");
        }
        // A GC's suspension cannot be ended by the profiler.
        assert_eq!(caller.resume_runtime(), failed(UNSUPPORTED_CALL_SEQUENCE), "{generation}");
    }
}

#[test]
fn any_thread_resumes_a_runtime_suspended_once() {
    for generation in WITH_SUSPENSION.iter() {
        let runtime = process(generation);
        runtime.on(STRANGER).suspend_runtime().unwrap();
        assert_eq!(suspension(&runtime), (Suspension::Suspended(STRANGER), true), "{generation}");
        let found = with_state(&runtime, OTHER, 3, |caller| caller.resume_runtime());
        assert_eq!(found, Ok(()), "{generation}");
        assert_eq!(suspension(&runtime), (Suspension::None, false), "{generation}");
        // A second suspension works too.
        assert_eq!(runtime.on(STRANGER).suspend_runtime(), Ok(()), "{generation}");
        assert_eq!(runtime.on(STRANGER).resume_runtime(), Ok(()), "{generation}");
        assert_eq!(suspension(&runtime), (Suspension::None, false), "{generation}");
    }
}

/// Tests C-126 as observed.
#[test]
fn a_runtime_suspended_twice_never_runs_again() {
    for generation in WITH_SUSPENSION.iter() {
        let runtime = process(generation);
        let caller = runtime.on(STRANGER);
        assert_eq!([caller.suspend_runtime(), caller.suspend_runtime()], [Ok(()), Ok(())]);
        assert_eq!(caller.resume_runtime(), Ok(()), "{generation}");
        assert_eq!(suspension(&runtime), (Suspension::Suspended(STRANGER), false), "{generation}");
        assert_eq!(caller.resume_runtime(), failed(UNSUPPORTED_CALL_SEQUENCE), "{generation}");
    }
}

/// The runtimes that set the mark before threads are stopped, and make RuntimeSuspendFinished in the suspending phase.
const OLD: Generations = CORECLR_31.with(Generations::NET_8);

/// A second call of a thread that the runtime knows is refused (recorded on 3.1, 8 and 9 Unix).
#[test]
fn a_known_thread_does_not_suspend_the_runtime_twice() {
    for generation in WITH_SUSPENSION.iter() {
        let runtime = process(generation);
        with_state(&runtime, WORKER, 3, |caller| {
            caller.suspend_runtime().unwrap();
            assert_eq!(caller.suspend_runtime(), failed(SUSPENSION_IN_PROGRESS), "{generation}");
            assert_eq!(caller.resume_runtime(), Ok(()), "{generation}");
        });
        assert_eq!(suspension(&runtime), (Suspension::None, false), "{generation}");
    }
}

/// A thread for which ThreadDestroyed was made is neither listed nor reported as suspended.
#[test]
fn nothing_more_is_reported_of_a_destroyed_thread() {
    for generation in WITH_SUSPENSION.iter() {
        let recorder = Recorder::default();
        let runtime = monitored(generation, &recorder);
        runtime.change_thread(WORKER, |thread| thread.reported_dead = true);
        with_state(&runtime, WORKER, 3, |caller| {
            assert!(!caller.enum_threads().unwrap().contains(&WORKER_ID), "{generation}");
            caller.suspend_runtime().unwrap();
            caller.resume_runtime().unwrap();
        });
        let seen: Vec<_> = recorder.seen.borrow().iter().map(|seen| seen.callback).collect();
        let expected = [
            RuntimeSuspendStarted(SuspensionReason::Profiler),
            RuntimeSuspendFinished,
            RuntimeResumeStarted,
            RuntimeResumeFinished,
        ];
        assert_eq!(seen, expected, "{generation}");
    }
}

#[test]
fn callbacks_come_in_order_and_see_the_mark() {
    use Suspension::{None, Suspended, Suspending};
    for generation in WITH_SUSPENSION.iter() {
        let old = OLD.contains(generation);
        let recorder = Recorder::default();
        let runtime = monitored(generation, &recorder);
        with_state(&runtime, WORKER, 3, |caller| {
            caller.suspend_runtime().unwrap();
            caller.resume_runtime().unwrap();
        });
        let finished = if old { Suspending(WORKER) } else { Suspended(WORKER) };
        let expected = [
            (RuntimeSuspendStarted(SuspensionReason::Profiler), old, None),
            (RuntimeThreadSuspended(WORKER_ID), old, Suspending(WORKER)),
            (RuntimeSuspendFinished, old, finished),
            (RuntimeResumeStarted, old, Suspended(WORKER)),
            (RuntimeThreadResumed(WORKER_ID), old, Suspended(WORKER)),
            (RuntimeResumeFinished, old, None),
        ];
        let seen = recorder.seen.borrow();
        let found = seen.iter().map(|seen| (seen.callback, seen.marked, seen.suspension));
        assert_eq!(found.collect::<Vec<_>>(), expected, "{generation}");
        assert!(seen.iter().all(|seen| seen.thread == WORKER), "{generation}");
    }
}

/// Tests C-017, C-132, C-168, contract §6.
#[test]
fn walks_in_these_callbacks_have_these_results() {
    for generation in WITH_SUSPENSION.iter() {
        let windows = !generation.is_unix();
        let recorder = Recorder::default();
        let runtime = monitored(generation, &recorder);
        with_state(&runtime, WORKER, 3, |caller| {
            caller.suspend_runtime().unwrap();
            caller.resume_runtime().unwrap();
        });
        // Without the mark, other threads cannot be walked on Unix; on Windows the target has no
        // frames to walk.
        let unmarked = if windows { E_FAIL } else { E_NOTIMPL };
        let others = if OLD.contains(generation) {
            [E_FAIL, UNSAFE, UNSAFE, E_FAIL, E_FAIL, E_FAIL]
        } else {
            [unmarked, UNSAFE, unmarked, unmarked, unmarked, unmarked]
        };
        let seen = recorder.seen.borrow();
        let found: Vec<_> = seen.iter().map(|seen| (seen.own, seen.other)).collect();
        let expected: Vec<(Outcome, Outcome)> = [E_FAIL, UNSAFE, E_FAIL, E_FAIL, E_FAIL, E_FAIL]
            .into_iter()
            .zip(others)
            .map(|(own, other)| (own.into(), other.into()))
            .collect();
        assert_eq!(found, expected, "{generation}");
        assert_eq!(word(&runtime, WORKER_ID, FORBID_SUSPEND), 0, "{generation}");
    }
}

#[test]
fn in_these_callbacks_threads_have_their_bits() {
    for generation in NEW.iter() {
        let recorder = Recorder::default();
        let runtime = monitored(generation, &recorder);
        runtime.on(OTHER).suspend_runtime().unwrap();
        runtime.on(OTHER).resume_runtime().unwrap();
        let bits: Vec<_> = recorder.seen.borrow().iter().map(|seen| seen.bits).collect();
        assert_eq!(bits, [1, 1, 1, 3, 1, 3], "{generation}");
        let after = runtime.thread(OTHER, |thread| thread.callback_state.0);
        assert_eq!(after, Some(0), "{generation}");
    }
}

#[test]
fn a_native_thread_is_not_suspended_itself() {
    for generation in WITH_SUSPENSION.iter() {
        let recorder = Recorder::default();
        let runtime = monitored(generation, &recorder);
        runtime.on(STRANGER).suspend_runtime().unwrap();
        let seen: Vec<_> = recorder.seen.borrow().iter().map(|seen| seen.callback).collect();
        assert_eq!(
            seen,
            [RuntimeSuspendStarted(SuspensionReason::Profiler), RuntimeSuspendFinished],
            "{generation}"
        );
    }
}

#[test]
fn without_the_event_flag_suspensions_are_not_reported() {
    for generation in WITH_SUSPENSION.iter() {
        let recorder = Recorder::default();
        let runtime = monitored(generation, &recorder);
        runtime.change_process(|process| process.event_mask = EventMask::ENABLE_STACK_SNAPSHOT);
        runtime.on(STRANGER).suspend_runtime().unwrap();
        runtime.on(STRANGER).resume_runtime().unwrap();
        assert_eq!(*recorder.seen.borrow(), [], "{generation}");
    }
}
