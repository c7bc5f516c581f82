//! What a profiler must not do while a thread is suspended.

use super::super::{Breach, Deed, SimulatedThread};
use crate::generation::Generation;
use crate::stage::{NATIVE_WALKER, SELF, Stage};
use clr_walker::profiling::{ProfilerInfo, TargetThread};

/// Something that a profiler does: by itself, or by a method of the runtime.
type Act = dyn Fn(&dyn Fn(Deed), &dyn ProfilerInfo<Fatal = super::Outcome>);

#[test]
fn whatever_may_need_a_lock_of_a_suspended_thread_is_noticed() {
    let stage = Stage::new(Generation::CoreClr31Windows).jit("App.Main+0x20", 0x1F_E300);
    let set = stage.set_up().unwrap();
    let noticed = |act: &Act| {
        let runtime = set.runtime();
        let walker = runtime.on(NATIVE_WALKER);
        let target = SimulatedThread::new(&runtime, SELF, 0).unwrap();
        // A thread's first call is made before.
        let _ = walker.get_event_mask();
        act(&|deed| runtime.did(deed), &walker);
        assert_eq!(runtime.breach(), None, "nobody is suspended");
        target.suspend().unwrap();
        act(&|deed| runtime.did(deed), &walker);
        let breach = runtime.breach();
        target.resume().unwrap();
        assert!(breach.is_none_or(|breach| breach.thread == SELF));
        breach.map(|breach| breach.deed)
    };
    for deed in [Deed::Allocation, Deed::Lock, Deed::Log, Deed::Loading] {
        assert_eq!(noticed(&move |did, _| did(deed)), Some(deed));
    }
    let called = |name| Some(Deed::Call(name));
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
    let stage = Stage::new(Generation::CoreClr31Windows).jit("App.Main+0x20", 0x1F_E300);
    let set = stage.set_up().unwrap();
    let runtime = set.runtime();
    let target = SimulatedThread::new(&runtime, SELF, 0).unwrap();
    target.suspend().unwrap();
    let _ = runtime.on(NATIVE_WALKER).get_function_from_ip(1);
    assert_eq!(runtime.breach(), Some(Breach { deed: Deed::FirstCall, thread: SELF }));
}
