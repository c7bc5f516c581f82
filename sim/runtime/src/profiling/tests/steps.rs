//! States of a call between its steps, and its record.

use super::*;
use crate::explain::{EntryCheck, Event};

/// A profiler that does something at each point at which other threads can run.
struct Meanwhile<F>(RefCell<F>);

impl<'a, F: FnMut(&Runtime<'a, Machine>, At)> Profiler<'a, Machine> for Meanwhile<F> {
    fn call_back(&self, runtime: &Runtime<'a, Machine>, _: OsThreadId, callback: ProfilerCallback) {
        (self.0.borrow_mut())(runtime, At::Callback(callback));
    }

    fn wait(&self, runtime: &Runtime<'a, Machine>, _: OsThreadId, wait: Wait) -> bool {
        (self.0.borrow_mut())(runtime, At::Wait(wait));
        runtime.has_ended(WORKER, wait)
    }

    fn suspends(&self, runtime: &Runtime<'a, Machine>, _: OsThreadId) {
        (self.0.borrow_mut())(runtime, At::Suspension);
    }

    fn reads_unlocked(&self, runtime: &Runtime<'a, Machine>, _: OsThreadId) {
        (self.0.borrow_mut())(runtime, At::UnlockedRead);
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    Callback(ProfilerCallback),
    Wait(Wait),
    /// Between two steps of a suspension.
    Suspension,
    UnlockedRead,
}

/// The target may enter a forbid-suspend region just before it stops (contract §2.4, step 6).
#[test]
fn a_target_that_forbids_its_suspension_as_it_stops_is_resumed() {
    for generation in Generations::WINDOWS.iter() {
        for (step, suspended) in [(1, vec![0]), (2, vec![0, 0])] {
            let mut seen = Vec::new();
            let meanwhile = Meanwhile(RefCell::new(|runtime: &Runtime<'_, Machine>, at| {
                if at == At::Suspension {
                    seen.push(runtime.thread(OTHER, |thread| thread.suspended).unwrap());
                    if seen.len() == step {
                        set_word(runtime, OTHER_ID, FORBID_SUSPEND, 1);
                    }
                }
            }));
            let runtime = process(generation);
            assert_eq!(walk(runtime.on(WORKER).with_profiler(&meanwhile), OTHER_ID), UNSAFE.into());
            assert_eq!(runtime.thread(OTHER, |thread| thread.suspended), Some(0), "{generation}");
            assert_eq!(word(&runtime, OTHER_ID, EXTERNAL_COUNT), 1, "{generation}");
            assert_eq!(seen, suspended, "{generation}");
        }
    }
}

/// A cooperative thread waits preemptively for the lock of the thread list, and in its own mode for the lock of the stress log, which
/// is CRST_UNSAFE_ANYMODE (`StressLog::Initialize` of src/utilcode/stresslog.cpp of CoreCLR).
#[test]
fn the_lock_of_the_thread_list_is_waited_for_preemptively_and_that_of_the_stress_log_is_not() {
    let with = |lock: Lock, call: &dyn Fn(Caller<'_, '_, Machine>)| {
        let mut modes = Vec::new();
        let meanwhile = Meanwhile(RefCell::new(|runtime: &Runtime<'_, Machine>, at| {
            if at == At::Wait(Wait::Lock(lock)) {
                modes.push(word(runtime, WORKER_ID, COOPERATIVE));
                runtime.change_process(|process| {
                    process.release(lock, GC);
                });
            }
        }));
        let runtime = process(CoreClr31Windows);
        runtime.change_process(|process| {
            assert!(process.try_acquire(lock, GC));
            process.stress_log = true;
        });
        with_state(&runtime, WORKER, 1, |caller| call(caller.with_profiler(&meanwhile)));
        assert_eq!(word(&runtime, WORKER_ID, COOPERATIVE), 1, "{lock:?}");
        modes
    };
    let threads = |caller: Caller<'_, '_, Machine>| drop(caller.enum_threads().unwrap());
    assert_eq!(with(Lock::ThreadStore, &threads), [0]);
    let snapshot = |caller: Caller<'_, '_, Machine>| {
        walk(caller, OTHER_ID);
    };
    assert_eq!(with(Lock::StressLog, &snapshot), [1]);
}

/// Tests H-29: a cooperative thread looks code up without the lock of the tables.
#[test]
fn code_is_read_unlocked_by_cooperative_threads_while_another_one_writes() {
    let reads = |os: OsThreadId, busy: bool, ip: u64| {
        let mut count = 0;
        let meanwhile = Meanwhile(RefCell::new(|runtime: &Runtime<'_, Machine>, at| match at {
            At::UnlockedRead => count += 1,
            At::Wait(Wait::Lock(Lock::CodeManager)) => {
                runtime.change_process(|process| process.code_manager_writer = None);
            }
            _ => {}
        }));
        let runtime = process(CoreClr31Windows);
        runtime.change_process(|process| process.code_manager_writer = busy.then_some(GC));
        let found = with_state(&runtime, os, 1, |caller| {
            caller.with_profiler(&meanwhile).get_function_from_ip(ip)
        });
        assert_eq!(found.is_ok(), ip == FOO_TIER0, "{found:?}");
        count
    };
    assert_eq!(reads(WORKER, true, FOO_TIER0), 1);
    assert_eq!(reads(WORKER, true, NATIVE), 0, "there is nothing to read");
    assert_eq!(reads(WORKER, false, FOO_TIER0), 0, "the tables do not change");
    assert_eq!(reads(OTHER, true, FOO_TIER0), 0, "the thread takes the lock");
}

#[test]
fn a_call_records_the_checks_that_it_has_passed() {
    let runtime = process(CoreClr31Windows);
    runtime.log.listen();
    assert_eq!(walk(runtime.on(WORKER), ThreadId(0)), E_FAIL.into());
    let passed: Vec<_> = runtime
        .log
        .take()
        .into_iter()
        .filter_map(|event| match event {
            Event::Passed(check) => Some(check),
            _ => None,
        })
        .collect();
    assert_eq!(
        passed,
        [
            EntryCheck::NotDetaching,
            EntryCheck::Started,
            EntryCheck::SnapshotEnabled,
            EntryCheck::InfoFlags,
            EntryCheck::HijackLock,
            EntryCheck::NoSuspensionInProgress,
            EntryCheck::ForbidSuspend,
            EntryCheck::Exceptions,
        ]
    );
}

#[test]
fn the_thread_of_a_callback_is_the_one_that_it_names() {
    use ProfilerCallback::{
        GarbageCollectionStarted, RuntimeResumeStarted, RuntimeSuspendFinished,
        RuntimeThreadResumed, RuntimeThreadSuspended, ThreadAssignedToOsThread, ThreadCreated,
    };
    for callback in [
        RuntimeThreadSuspended(GC_ID),
        RuntimeThreadResumed(GC_ID),
        ThreadCreated(GC_ID),
        ThreadAssignedToOsThread(GC_ID),
    ] {
        assert_eq!(callback.thread(), Some(GC_ID), "{callback:?}");
    }
    for callback in [RuntimeSuspendFinished, RuntimeResumeStarted, GarbageCollectionStarted] {
        assert_eq!(callback.thread(), None, "{callback:?}");
    }
}

/// The checks at the beginning of a method are those for where it may be called.
#[test]
fn methods_begin_with_the_checks_for_their_callers() {
    let runtime = process(CoreClr31Windows);
    let begin = |accepts| runtime.on(WORKER).begin(accepts);
    assert_eq!(begin(Accepts::All), Ok(()));
    assert_eq!(begin(Accepts::Callbacks), failed(UNSUPPORTED_CALL_SEQUENCE));
    assert_eq!(begin(Accepts::TriggeringCallbacks), failed(UNSUPPORTED_CALL_SEQUENCE));
    runtime.change_process(|process| process.profiler = ProfilerStatus::Detaching);
    assert_eq!(begin(Accepts::All), failed(PROFILER_DETACHING));
}

/// Returns the outcome of a walk of [`OTHER`] that the system has stopped in cooperative mode, and its record.
fn walk_cooperative(
    generation: Generation,
    fields: ThreadFields,
    (rsp, safety): (u64, ContextSafety),
    seed: Option<&[u8]>,
) -> (Outcome, Vec<Event>) {
    let runtime = process(generation);
    fields.write(&mut *runtime.memory.borrow_mut(), OTHER_ID).unwrap();
    runtime.change_thread(OTHER, |thread| {
        thread.current.registers.rip = FOO_TIER0;
        thread.current.registers.set(clr_unwind::Gpr::Rsp, rsp);
        thread.safety = safety;
    });
    runtime.log.listen();
    let call = SnapshotRequest { thread: OTHER_ID, seed, ..SnapshotRequest::default() };
    let outcome = runtime.on(WORKER).do_stack_snapshot(&call, Some(&mut |_| HResult::OK));
    (outcome, runtime.log.take())
}

fn stopped() -> ThreadFields {
    let stack = (0x10_0000, STACK + 0x1000);
    ThreadFields { cooperative: true, stack, ..ThreadFields::default() }
}

/// Tests C-034: a Frame below rsp is one that the thread has not linked or unlinked completely.
#[test]
fn a_frame_below_rsp_makes_the_context_unusable() {
    let mut generations = 0;
    for generation in Generations::WINDOWS.iter().filter(|it| it.checks_redirection()) {
        generations += 1;
        for (top_frame, is_below) in [
            (STACK + 0x7F8, true),
            (STACK + 0x800, false),
            (STACK + 0x808, false),
            (crate::FRAME_TOP, false),
        ] {
            let fields = ThreadFields { top_frame, ..stopped() };
            let context = (STACK + 0x800, ContextSafety::Safe);
            let (outcome, events) = walk_cooperative(generation, fields, context, None);
            let found =
                events.contains(&Event::FrameBelowSp { frame: top_frame, rsp: STACK + 0x800 });
            assert_eq!(found, is_below, "{generation}, {top_frame:#x}: {events:?}");
            assert!(!is_below || outcome == UNSAFE.into(), "{generation}: {outcome}");
        }
    }
    assert!(generations > 0);
}

/// Tests C-031: with a seed the context of the target is not read first.
#[test]
fn a_seed_makes_an_unreadable_context_unnecessary() {
    let mut generations = 0;
    for generation in Generations::WINDOWS.iter().filter(|it| it.reads_context_first()) {
        generations += 1;
        let mut seed = vec![0; 0x4D0];
        seed[0xF8..0x100].copy_from_slice(&FOO_TIER0.to_le_bytes());
        let unreadable = (STACK + 0x800, ContextSafety::Unreadable);
        for (seed, is_read) in [(None, true), (Some(&*seed), false)] {
            let (_, events) = walk_cooperative(generation, stopped(), unreadable, seed);
            let found = events.contains(&Event::ContextUnreadable);
            assert_eq!(found, is_read, "{generation}: {events:?}");
        }
    }
    assert!(generations > 0);
}

/// A debugger's context of a preemptive thread is the start, if it can be read (contract §3.1).
#[test]
fn a_debuggers_context_is_the_start_if_it_can_be_read() {
    for generation in Generations::WINDOWS.iter() {
        for (safety, is_read) in [
            (ContextSafety::Safe, true),
            (ContextSafety::InSystemCall, true),
            (ContextSafety::Unreadable, false),
        ] {
            let fields = ThreadFields { cooperative: false, debugger_context: true, ..stopped() };
            let (outcome, events) =
                walk_cooperative(generation, fields, (STACK + 0x800, safety), None);
            let starts =
                events.contains(&Event::Started(crate::explain::WalkStart::DebuggerContext));
            let reads_first = generation.reads_context_first();
            assert_eq!(
                starts, is_read,
                "{generation}, {safety:?}: {outcome} {reads_first} {events:?}"
            );
            assert_eq!(events.contains(&Event::ContextUnreadable), !is_read, "{generation}");
        }
    }
}
