//! The profiler's view of a thread and of the code in the process.

use super::*;
use crate::profiler_rules::RuleViolation;
use crate::profiling::Policy;
use clr_unwind::{Gpr, Memory as _};

/// The return address of threads' first functions (VA).
const ROOT: u64 = 0x7FF7_0000;

fn target<'r>(
    runtime: &'r Runtime<'static, Machine>,
    os: OsThreadId,
) -> SimulatedThread<'r, 'static, Machine> {
    SimulatedThread::new(runtime, os, ROOT).unwrap()
}

#[test]
fn a_thread_of_the_runtime_has_its_stack_and_memory() {
    let runtime = process(CoreClr31Windows);
    assert!(SimulatedThread::new(&runtime, STRANGER, ROOT).is_none());
    let thread = target(&runtime, OTHER);
    assert_eq!((thread.os(), thread.id()), (OTHER, OTHER_ID));
    let stack = thread.stack();
    assert_eq!((stack.limit, stack.base), (0x10_0000, STACK + 0x1000));
    assert_eq!(stack.root, StackRoot::ReturnAddress(ROOT));
    // The Thread object has the stack's base at 0x20.
    assert_eq!(thread.read_u64(OTHER_ID.0 + 0x20), Ok(STACK + 0x1000));
    assert!(thread.read_u64(NOWHERE.0).is_err());
}

/// `SuspendThread` and `ResumeThread` count.
#[test]
fn suspensions_of_a_thread_nest() {
    let runtime = process(CoreClr31Windows);
    let thread = target(&runtime, OTHER);
    let count = || runtime.thread(OTHER, |thread| thread.suspended).unwrap();
    assert_eq!(thread.resume(), Err(ThreadError::NotResumed(OTHER)));
    for expected in 1..=3 {
        assert_eq!((thread.suspend(), count()), (Ok(()), expected));
    }
    for expected in (0..3).rev() {
        assert_eq!((thread.resume(), count()), (Ok(()), expected));
    }
    assert_eq!(thread.resume(), Err(ThreadError::NotResumed(OTHER)));

    // Tests H-26: another fiber runs on the thread; and the handle is invalid.
    let refused = Err(ThreadError::NotSuspended(OTHER));
    runtime.change_thread(OTHER, |thread| thread.resists_suspension = true);
    assert_eq!((thread.suspend(), count()), (refused, 0));
    runtime.change_thread(OTHER, |thread| {
        (thread.resists_suspension, thread.handle) = (false, 0);
    });
    assert_eq!((thread.suspend(), count()), (refused, 0));
    runtime.threads.borrow_mut().retain(|thread| thread.os != OTHER);
    let gone = ThreadError::NoThread(OTHER);
    assert_eq!((thread.suspend(), thread.resume()), (Err(gone), Err(gone)));
    assert_eq!(thread.context(), Err(gone));
}

/// Tests contract §2.5. Flags are those of `winnt.h`; a signal's ucontext has none of them.
#[test]
fn a_stopped_threads_context_says_how_safe_it_is() {
    for generation in Generation::ALL {
        let runtime = process(generation);
        runtime.change_thread(OTHER, |thread| thread.current.registers.set(Gpr::Rbx, 0xB0B));
        let thread = target(&runtime, OTHER);
        thread.suspend().unwrap();
        for (safety, expected) in [
            (ContextSafety::Safe, 0x8010_000B),
            (ContextSafety::InSystemCall, 0x9010_000B),
            (ContextSafety::InExceptionDispatch, 0x8810_000B),
            (ContextSafety::NotReported, 0x0010_000B),
        ] {
            runtime.change_thread(OTHER, |thread| thread.safety = safety);
            let expected = if generation.is_unix() { ThreadContext::FULL } else { expected };
            let context = thread.context().unwrap();
            assert_eq!(context.flags, expected, "{generation}, {safety:?}");
            assert_eq!(context.registers.get(Gpr::Rbx), 0xB0B);
        }
        runtime.change_thread(OTHER, |thread| thread.safety = ContextSafety::Unreadable);
        let unreadable = Err(ThreadError::NoContext(OTHER));
        // The handler of a signal always has its ucontext.
        assert_eq!(thread.context() == unreadable, !generation.is_unix(), "{generation}");
    }
}

#[test]
fn only_the_context_of_a_stopped_or_the_own_thread_may_be_read() {
    for (suspended, calling, breaks_rule) in [
        (true, None, false),
        (true, Some(WORKER), false),
        (false, None, true),
        (false, Some(WORKER), true),
        (false, Some(OTHER), false),
    ] {
        let runtime = process(CoreClr31Windows);
        let thread = match calling {
            Some(calling) => target(&runtime, OTHER).called_by(calling),
            None => target(&runtime, OTHER),
        };
        if suspended {
            thread.suspend().unwrap();
        }
        thread.context().unwrap();
        let broken = RuleViolation::ContextOfRunning { thread: OTHER };
        let expected = breaks_rule.then_some(broken);
        assert_eq!(runtime.rule_violation(), expected, "{suspended}, {calling:?}");
    }
}

/// Tests H-03, H-08 and H-11 to H-13: what a profiler does while a thread is suspended may wait for its locks.
#[test]
fn the_first_action_while_a_thread_is_suspended_counts() {
    use crate::profiler_rules::ProfilerAction::{Allocation, Lock, Log};
    let runtime = process(CoreClr31Windows);
    runtime.did(Allocation);
    let thread = target(&runtime, OTHER);
    thread.suspend().unwrap();
    thread.resume().unwrap();
    runtime.did(Lock);
    assert_eq!(runtime.rule_violation(), None);
    thread.suspend().unwrap();
    runtime.did(Lock);
    runtime.did(Log);
    let expected = RuleViolation::WhileSuspended { action: Lock, thread: OTHER };
    assert_eq!(runtime.rule_violation(), Some(expected));
}

/// On Windows the runtime registers its heaps with the system; on Unix only image files are known, and to
/// walks in signal handlers the methods that the profiler has noted.
#[test]
fn a_profilers_code_map_has_what_the_system_knows() {
    let entry = [0x40_u32, 0x70, 0x800].map(u32::to_le_bytes).concat();
    let entry: &'static [u8] = entry.leak();
    for generation in Generation::ALL {
        let mut runtime = process(generation);
        runtime.code.remove_section(HEAP);
        let foo = runtime.code.method(FOO).unwrap().0;
        let version =
            CodeVersion { method: foo, start: FOO_TIER0, size: 0x30, ..CodeVersion::default() };
        let block = Block::Code(runtime.code.add_code(version));
        let heap = RangeSection::code_heap(HEAP, HEAP + 0x1000, &[(FOO_TIER0, block)]).unwrap();
        let region = CodeRegion::heap(HEAP, &CODE, FunctionTable::new(entry)).unwrap();
        runtime.code.add_section(heap, region).unwrap();

        let unix = generation.is_unix();
        let known = |map: &clr_unwind::CodeMap<'_>| {
            [HEAP, FOO_TIER0, FOO_TIER0 + 0x2F, FOO_TIER0 + 0x30].map(|at| map.find(at).is_some())
        };
        let of_system = runtime.profilers_code_map().unwrap();
        assert_eq!(known(&of_system), [!unix; 4], "{generation}");
        assert!(of_system.find(clr_codegen::SERVICES).is_some(), "{generation}");
        for policy in Policy::ALL {
            let map = runtime.code_map_for(policy).unwrap();
            let of_signal = unix && policy == Policy::Signal;
            let expected = if of_signal { [false, true, true, false] } else { [!unix; 4] };
            assert_eq!(known(&map), expected, "{generation}, {policy:?}");
        }
    }
}
