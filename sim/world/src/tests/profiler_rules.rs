//! Tests of the profiler rules for suspended threads.

use super::*;
use clr_runtime::{ProfilerAction, RuleViolation};

/// A profiler action: of its own code, or a call of a method of the runtime.
type Act = dyn Fn(&dyn Fn(ProfilerAction), &dyn ProfilerInfo<Fatal = Outcome>);

#[test]
fn actions_that_may_need_a_lock_of_a_suspended_thread_are_violations() {
    let thread = SyntheticThread::new(Generation::CoreClr31Windows).jit("App.Main+0x20", 0x1F_E300);
    let process = thread.build().unwrap();
    let noticed = |act: &Act| {
        let runtime = process.runtime();
        let walker = runtime.on(NATIVE_WALKER);
        let target = SimulatedThread::new(&runtime, SELF, 0).unwrap();
        // The thread's first call is made in advance.
        let _ = walker.get_event_mask();
        act(&|action| runtime.did(action), &walker);
        assert_eq!(runtime.rule_violation(), None, "no thread is suspended");
        target.suspend().unwrap();
        act(&|action| runtime.did(action), &walker);
        let violation = runtime.rule_violation();
        target.resume().unwrap();
        violation.map(|violation| match violation {
            RuleViolation::WhileSuspended { action, thread: SELF } => action,
            other => panic!("{other}"),
        })
    };
    for action in [
        ProfilerAction::Allocation,
        ProfilerAction::Lock,
        ProfilerAction::Log,
        ProfilerAction::Loading,
    ] {
        assert_eq!(noticed(&move |did, _| did(action)), Some(action));
    }
    let called = |name| Some(ProfilerAction::Call(name));
    assert_eq!(
        noticed(&|_, info| {
            let _ = info.enum_threads();
        }),
        called("EnumThreads")
    );
    assert_eq!(
        noticed(&|_, info| {
            let _ = info.initialize_current_thread();
        }),
        called("InitializeCurrentThread")
    );
    assert_eq!(
        noticed(&|_, info| {
            let _ = info.get_function_from_ip3(1);
        }),
        called("GetFunctionFromIP3")
    );
    assert_eq!(
        noticed(&|_, info| {
            let _ = info.get_function_from_ip(1);
        }),
        None
    );
    assert_eq!(
        noticed(&|_, info| {
            let _ = info.get_event_mask();
        }),
        None
    );
}

#[test]
fn a_first_call_comes_too_late_while_a_thread_is_suspended() {
    let thread = SyntheticThread::new(Generation::CoreClr31Windows).jit("App.Main+0x20", 0x1F_E300);
    let process = thread.build().unwrap();
    let runtime = process.runtime();
    let target = SimulatedThread::new(&runtime, SELF, 0).unwrap();
    target.suspend().unwrap();
    let _ = runtime.on(NATIVE_WALKER).get_function_from_ip(1);
    assert_eq!(
        runtime.rule_violation(),
        Some(RuleViolation::WhileSuspended { action: ProfilerAction::FirstCall, thread: SELF })
    );
}

#[test]
fn the_registers_of_a_thread_that_runs_are_not_to_be_read() {
    let thread = SyntheticThread::new(Generation::CoreClr31Windows).jit("App.Main+0x20", 0x1F_E300);
    let process = thread.build().unwrap();
    let violation = |calling_thread: Option<_>, suspend: bool| {
        let runtime = process.runtime();
        let target = SimulatedThread::new(&runtime, SELF, 0).unwrap();
        let target = match calling_thread {
            Some(calling_thread) => target.called_by(calling_thread),
            None => target,
        };
        if suspend {
            target.suspend().unwrap();
        }
        target.context().unwrap();
        runtime.rule_violation()
    };
    let broke = Some(RuleViolation::ContextOfRunning { thread: SELF });
    assert_eq!(violation(None, false), broke);
    assert_eq!(violation(Some(NATIVE_WALKER), false), broke);
    assert_eq!(violation(None, true), None);
    assert_eq!(violation(Some(NATIVE_WALKER), true), None);
    // A thread in a signal handler, or in a callback, has its own registers.
    assert_eq!(violation(Some(SELF), false), None);
}
