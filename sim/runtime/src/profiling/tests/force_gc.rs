//! Tests of ForceGC (contract §5.14).

use super::*;
use crate::HighEvents;

/// A profiler whose process gives Thread objects, and that records what happens in which mode.
#[derive(Default)]
struct Forces {
    server: Option<u32>,
    moves: bool,
    seen: RefCell<Vec<(ProfilerCallback, Suspension, bool)>>,
    waits: RefCell<Vec<Wait>>,
    /// Results of ForceGC in GarbageCollectionStarted.
    nested: RefCell<Vec<Result<(), CallError<Outcome>>>>,
}

/// The Thread object that a thread gets.
const NEW_ID: ThreadId = ThreadId(OTHER_ID.0 + 0x80);

impl<'a> Profiler<'a, Machine> for Forces {
    fn call_back(
        &self,
        runtime: &Runtime<'a, Machine>,
        thread: OsThreadId,
        callback: ProfilerCallback,
    ) {
        let cooperative =
            runtime.object_of(thread).is_some_and(|id| word(runtime, id, COOPERATIVE) != 0);
        // No thread can begin or end before.
        let lists = runtime.process.get().owner(Lock::ThreadStore);
        let is_held = callback != ProfilerCallback::RuntimeResumeFinished
            && CallbackKind::from(callback).event() != CallbackKind::ThreadCreated.event();
        assert_eq!(lists, is_held.then_some(thread), "{callback:?}");
        self.seen.borrow_mut().push((callback, runtime.process.get().suspension, cooperative));
        if callback == ProfilerCallback::GarbageCollectionStarted && self.nested.borrow().len() < 2
        {
            let found = runtime.on(thread).with_profiler(self).force_gc();
            self.nested.borrow_mut().push(found);
        }
    }

    fn wait(&self, runtime: &Runtime<'a, Machine>, _: OsThreadId, wait: Wait) -> bool {
        self.waits.borrow_mut().push(wait);
        if let Wait::RuntimeRunning(_) = wait {
            runtime.change_process(|process| process.suspension = Suspension::None);
        }
        // Threads stop at once; no lock is released.
        !matches!(wait, Wait::Lock(_))
    }

    fn attach(&self, runtime: &Runtime<'a, Machine>, thread: OsThreadId) {
        let fields = ThreadFields::default();
        fields.write(&mut *runtime.memory.borrow_mut(), NEW_ID).unwrap();
        runtime.change_thread(thread, |thread| thread.object = Some(NEW_ID));
    }

    fn request_gc(&self, _: &Runtime<'a, Machine>) -> GcRequest {
        self.server.map_or(GcRequest::Caller { moves: self.moves }, GcRequest::Server)
    }
}

/// All callbacks of threads, suspensions and GCs.
const EVENTS: EventMask = EventMask(0x1001_0280);

fn monitored(generation: Generation) -> Runtime<'static, Machine> {
    let runtime = process(generation);
    runtime.change_process(|process| process.event_mask = EVENTS);
    runtime
}

fn force(
    runtime: &Runtime<'static, Machine>,
    os: OsThreadId,
    profiler: &Forces,
) -> Result<(), CallError<Outcome>> {
    runtime.on(os).with_profiler(profiler).force_gc()
}

fn names(seen: &[(ProfilerCallback, Suspension, bool)]) -> Vec<&'static str> {
    seen.iter().map(|(callback, ..)| CallbackKind::from(*callback).name()).collect()
}

/// Tests C-175.
#[test]
fn a_thread_of_the_profiler_collects_and_becomes_one_of_the_runtime() {
    for generation in Generation::ALL {
        let framework_2 = generation.forces_gc_on_foreign_threads_only();
        let runtime = monitored(generation);
        let profiler = Forces { moves: true, ..Forces::default() };
        assert_eq!(force(&runtime, STRANGER, &profiler), Ok(()), "{generation}");
        let seen = profiler.seen.borrow();
        let mut expected = vec!["RuntimeSuspendStarted"];
        let own = !framework_2;
        if own {
            expected = vec![
                "ThreadCreated",
                "ThreadAssignedToOSThread",
                "RuntimeSuspendStarted",
                "RuntimeThreadSuspended",
            ];
        }
        expected.extend([
            "RuntimeSuspendFinished",
            "GarbageCollectionStarted",
            "MovedReferences",
            "RootReferences",
        ]);
        expected.extend(["GarbageCollectionFinished", "RuntimeResumeStarted"]);
        expected.extend(own.then_some("RuntimeThreadResumed"));
        expected.push("RuntimeResumeFinished");
        assert_eq!(names(&seen), expected, "{generation}");
        for (callback, suspension, cooperative) in &*seen {
            let kind = CallbackKind::from(*callback);
            if kind.mode(generation) == crate::profiling::CallbackMode::Cooperative {
                assert_eq!(
                    (*suspension, *cooperative),
                    (Suspension::Suspended(STRANGER), own),
                    "{generation}: {kind:?}"
                );
            }
            if let ProfilerCallback::RuntimeSuspendStarted(reason) = callback {
                assert_eq!(*reason, SuspensionReason::Gc, "{generation}");
            }
        }
        let process = runtime.process.get();
        assert_eq!(process.suspension, Suspension::None, "{generation}");
        assert_eq!([Lock::Gc, Lock::ThreadStore].map(|lock| process.owner(lock)), [None; 2]);
        let (object, bits) =
            runtime.thread(STRANGER, |thread| (thread.object, thread.callback_state.0)).unwrap();
        assert_eq!((object, bits), if own { (Some(NEW_ID), 4) } else { (None, 0) }, "{generation}");
        if own {
            assert_eq!(word(&runtime, NEW_ID, COOPERATIVE), 0, "{generation}");
            // Its calls count as calls in a callback.
            assert!(runtime.on(STRANGER).get_thread_info(WORKER_ID).is_ok(), "{generation}");
        }
        // Of two GCs in a row the second one is not the first one of the thread any more.
        let again = Forces::default();
        drop(seen);
        assert_eq!(force(&runtime, STRANGER, &again), Ok(()), "{generation}");
        let seen = again.seen.borrow();
        assert!(!names(&seen).contains(&"ThreadCreated"), "{generation}");
        assert!(names(&seen).contains(&"SurvivingReferences"), "{generation}");
    }
}

#[test]
fn basic_events_of_a_forced_gc_are_its_start_and_end() {
    for generation in Generation::ALL {
        let runtime = process(generation);
        runtime.change_process(|process| {
            process.event_mask = EventMask(0);
            process.high_events = HighEvents::BASIC_GC;
        });
        let profiler = Forces::default();
        assert_eq!(force(&runtime, STRANGER, &profiler), Ok(()), "{generation}");
        let seen = profiler.seen.borrow();
        let expected = ["GarbageCollectionStarted", "GarbageCollectionFinished"];
        assert_eq!(names(&seen), expected, "{generation}");
    }
}

/// Tests C-174: a GC cannot be forced in a callback of the first one; the thread of the second one waits for
/// the lock that it owns.
#[test]
fn a_gc_in_the_callback_of_a_gc() {
    for generation in Generations::CLR_4.iter() {
        let runtime = monitored(generation);
        let profiler = Forces::default();
        force(&runtime, STRANGER, &profiler).unwrap();
        assert_eq!(*profiler.nested.borrow(), [failed(UNSUPPORTED_CALL_SEQUENCE)], "{generation}");
        let profiler = Forces::default();
        let _ = force(&runtime, STRANGER, &profiler);
        assert_eq!(
            *profiler.nested.borrow(),
            [Err(CallError::Fatal(Outcome::Blocked))],
            "{generation}"
        );
        assert_eq!(profiler.waits.borrow().last(), Some(&Wait::Lock(Lock::Gc)), "{generation}");
    }
}

/// Tests C-174.
#[test]
fn threads_of_the_runtime_are_refused_in_callbacks_and_with_frames() {
    for generation in Generation::ALL {
        let framework_2 = generation.forces_gc_on_foreign_threads_only();
        for (bits, frames, refused) in [
            (0, false, false),
            (0, true, true),
            (1, false, true),
            (3, false, true),
            (3, true, true),
            (4, true, false),
            (1 | 4, false, false),
            (3 | 8, true, false),
        ] {
            let runtime = monitored(generation);
            let top = if frames { 0x1000 } else { FRAME_TOP };
            let fields = ThreadFields { top_frame: top, ..ThreadFields::default() };
            fields.write(&mut *runtime.memory.borrow_mut(), OTHER_ID).unwrap();
            let profiler = Forces::default();
            // Nothing is forced in its callbacks here.
            profiler.nested.borrow_mut().extend([Ok(()), Ok(())]);
            let found = with_state(&runtime, OTHER, bits, |caller| {
                caller.with_profiler(&profiler).force_gc()
            });
            let expected = match (framework_2, refused) {
                (true, _) => failed(HResult::FAIL),
                (false, true) => failed(UNSUPPORTED_CALL_SEQUENCE),
                (false, false) => Ok(()),
            };
            assert_eq!(found, expected, "{generation}, {bits}, {frames}");
            assert_eq!(profiler.seen.borrow().is_empty(), expected.is_err(), "{generation}");
        }
    }
}

/// A thread that may force GCs in callbacks has its mode again afterwards.
#[test]
fn a_gc_leaves_the_mode_of_the_thread() {
    for generation in Generations::CLR_4.iter() {
        for cooperative in [false, true] {
            let runtime = monitored(generation);
            let fields = ThreadFields { cooperative, ..ThreadFields::default() };
            fields.write(&mut *runtime.memory.borrow_mut(), OTHER_ID).unwrap();
            let profiler = Forces::default();
            profiler.nested.borrow_mut().extend([Ok(()), Ok(())]);
            let found = with_state(&runtime, OTHER, 3 | 4, |caller| {
                caller.with_profiler(&profiler).force_gc()
            });
            assert_eq!(found, Ok(()), "{generation}");
            let now = word(&runtime, OTHER_ID, COOPERATIVE) != 0;
            assert_eq!(now, cooperative, "{generation}");
        }
    }
}

#[test]
fn the_gc_and_the_profiler_are_checked() {
    for generation in Generation::ALL {
        let runtime = process(generation);
        runtime.change_process(|process| process.gc_initialized = false);
        let caller = runtime.on(STRANGER);
        assert_eq!(caller.force_gc(), failed(NOT_YET_AVAILABLE), "{generation}");
        // The GC is checked first.
        let in_callback = with_state(&runtime, OTHER, 1, |caller| caller.force_gc());
        assert_eq!(in_callback, failed(NOT_YET_AVAILABLE), "{generation}");
        runtime.change_process(|process| {
            process.gc_initialized = true;
            process.profiler = crate::ProfilerStatus::Detaching;
        });
        let expected = if generation.has_detach() { failed(PROFILER_DETACHING) } else { Ok(()) };
        assert_eq!(caller.force_gc(), expected, "{generation}");
    }
}

#[test]
fn the_server_gc_has_a_thread_of_its_own() {
    for generation in Generation::ALL {
        let runtime = monitored(generation);
        let profiler = Forces { server: Some(3), ..Forces::default() };
        assert_eq!(force(&runtime, STRANGER, &profiler), Ok(()), "{generation}");
        assert_eq!(*profiler.waits.borrow(), [Wait::Gc(3)], "{generation}");
        let seen = profiler.seen.borrow();
        let created = !generation.forces_gc_on_foreign_threads_only();
        let expected: &[_] =
            if created { &["ThreadCreated", "ThreadAssignedToOSThread"] } else { &[] };
        assert_eq!(names(&seen), expected, "{generation}");
    }
}

/// A thread that becomes cooperative waits for the end of another one's suspension first.
#[test]
fn a_gc_waits_for_the_end_of_a_suspension() {
    let runtime = monitored(Generation::Net8Unix);
    runtime.change_process(|process| process.suspension = Suspension::Suspended(WORKER));
    let profiler = Forces { server: Some(1), ..Forces::default() };
    assert_eq!(force(&runtime, STRANGER, &profiler), Ok(()));
    assert_eq!(*profiler.waits.borrow(), [Wait::RuntimeRunning(WORKER), Wait::Gc(1)]);
}
