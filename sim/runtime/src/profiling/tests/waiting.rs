//! Tests of waits in profiling methods.

use super::*;

/// A profiler that allows this number of waits before the writer releases the lock.
struct Patient {
    waits: RefCell<Vec<(OsThreadId, Wait)>>,
    until: usize,
}

impl<'a> Profiler<'a, Machine> for Patient {
    fn call_back(&self, _: &Runtime<'a, Machine>, _: OsThreadId, _: ProfilerCallback) {}

    fn wait(&self, runtime: &Runtime<'a, Machine>, thread: OsThreadId, wait: Wait) -> bool {
        let mut waits = self.waits.borrow_mut();
        waits.push((thread, wait));
        if waits.len() == self.until {
            runtime.change_process(|process| process.code_manager_writer = None);
        }
        waits.len() <= self.until
    }
}

/// Tests H-09: a waiting thread continues when the lock is free, and checks again whenever it is
/// resumed.
#[test]
fn a_method_waits_while_its_lock_is_held() {
    for generation in Generation::ALL {
        let runtime = process(generation);
        for (until, expected) in [(1, Ok(FOO)), (3, Ok(FOO)), (0, fatal(Outcome::Blocked))] {
            runtime.change_process(|process| process.code_manager_writer = Some(OsThreadId(9)));
            let patient = Patient { waits: RefCell::default(), until };
            let found = with_state(&runtime, OTHER, 1, |caller| {
                caller.with_profiler(&patient).get_function_from_ip(FOO_TIER0)
            });
            assert_eq!(found, expected, "{generation}, {until}");
            let once = (OTHER, Wait::Lock(Lock::CodeManager));
            assert_eq!(*patient.waits.borrow(), vec![once; until.max(1)], "{generation}");
        }
    }
}

/// Tests H-09 and H-10: a wait ends with the state that it is for, and not with that of another one.
#[test]
fn a_wait_ends_with_its_condition() {
    let runtime = process(CoreClr31Windows);
    let ended = |wait| runtime.has_ended(OTHER, wait);
    assert!(ended(Wait::Lock(Lock::CodeManager)) && ended(Wait::CodeManagerReaders));
    assert!(ended(Wait::RuntimeRunning(WORKER)));
    runtime.change_process(|process| {
        process.code_manager_writer = Some(WORKER);
        process.suspension = Suspension::Suspended(WORKER);
    });
    assert!(!ended(Wait::Lock(Lock::CodeManager)) && ended(Wait::Lock(Lock::Loader)));
    assert!(!ended(Wait::RuntimeRunning(WORKER)) && ended(Wait::RuntimeRunning(GC)));
    // The waiting writer's own reads are no obstacle.
    runtime.change_thread(OTHER, |thread| thread.code_manager_reads = 1);
    assert!(ended(Wait::CodeManagerReaders));
    for (thread, reads) in [(WORKER, 1), (GC, 2)] {
        runtime.change_thread(thread, |thread| thread.code_manager_reads = reads);
        assert!(!ended(Wait::CodeManagerReaders));
    }
    assert_eq!(runtime.code_manager_readers(OTHER), [WORKER, GC]);
    assert_eq!(runtime.code_manager_readers(GC), [WORKER, OTHER]);
    // What other threads do is known to their world alone.
    for wait in [
        Wait::ThreadsToStop,
        Wait::Gc(0),
        Wait::GcWanted,
        Wait::ForegroundThreads,
        Wait::WakeUpOfInterrupted,
    ] {
        assert!(!ended(wait), "{wait:?}");
    }
}
