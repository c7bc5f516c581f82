//! Numbers of `corprof.h`, and what an implementation of [`ProfilerInfo`] may leave out.

use super::*;
use core::convert::Infallible;

#[test]
fn bits_are_those_of_corprof_h() {
    assert!(!SnapshotFlags::DEFAULT.wants_context());
    assert!(SnapshotFlags::REGISTER_CONTEXT.wants_context());
    // COR_PRF_SNAPSHOT_X86_OPTIMIZED has no effect on x64.
    assert!(!SnapshotFlags(2).wants_context());
    assert!(SnapshotFlags(3).wants_context());

    let both = EventMask::MONITOR_THREADS | EventMask::ENABLE_STACK_SNAPSHOT;
    assert_eq!(both, EventMask(0x1000_0200));
    assert_eq!(both | EventMask::MONITOR_THREADS, both, "a bit that is set stays so");
    assert!(both.contains(EventMask::MONITOR_THREADS) && both.contains(both));
    assert!(!both.contains(EventMask::MONITOR_SUSPENDS));
    assert!(!EventMask::MONITOR_THREADS.contains(both), "one bit of two is not enough");
    assert!(EventMask::default().contains(EventMask::default()));
    assert_eq!(FrameInfo::new(0x7FFE_1234).handle(), 0x7FFE_1234);
}

/// An implementation of nothing.
struct Nothing;

impl ProfilerInfo for Nothing {
    type Fatal = Infallible;
}

/// Callers ask `GetFunctionFromIP` where a newer method is `E_NOTIMPL`, so a method that is left out must not
/// seem to succeed.
#[test]
fn methods_that_are_left_out_are_not_implemented() {
    let (function, thread) = (FunctionId(1), ThreadId(1));
    let ranges = &mut [CodeRange { start: 0, size: 0 }; 2];
    let results = [
        Nothing.do_stack_snapshot(&SnapshotRequest::default(), None).err(),
        Nothing.get_function_from_ip(1).err(),
        Nothing.force_gc().err(),
        Nothing.suspend_runtime().err(),
        Nothing.resume_runtime().err(),
        Nothing.get_function_from_ip2(1).err(),
        Nothing.get_function_from_ip3(1).err(),
        Nothing.get_code_info(function).err(),
        Nothing.get_code_info2(function, ranges).err(),
        Nothing.get_code_info3(function, ReJitId(0), ranges).err(),
        Nothing.get_code_info4(1, ranges).err(),
        Nothing.get_function_info2(function, None, 0).err(),
        Nothing.get_current_thread_id().err(),
        Nothing.get_thread_info(thread).err(),
        Nothing.get_handle_from_thread(thread).err(),
        Nothing.enum_threads().err(),
        Nothing.initialize_current_thread().err(),
        Nothing.get_event_mask().err(),
        Nothing.set_event_mask(EventMask::MONITOR_THREADS).err(),
    ];
    for (n, result) in results.into_iter().enumerate() {
        assert_eq!(result, Some(CallError::Failed(HResult::NOT_IMPLEMENTED)), "method {n}");
    }
}

/// Calls of a wrapper, with the threads that they are about.
struct Wrapper(core::cell::RefCell<Vec<(InfoMethod, Option<ThreadId>)>>);

impl ForwardInfo for Wrapper {
    type To = Nothing;

    fn forward<T>(
        &self,
        method: InfoMethod,
        thread: Option<ThreadId>,
        call: impl FnOnce(&Nothing) -> Called<T, Nothing>,
    ) -> Called<T, Nothing> {
        self.0.borrow_mut().push((method, thread));
        call(&Nothing)
    }
}

#[test]
fn a_wrapper_has_each_method_of_the_wrapped_one() {
    use InfoMethod::{DoStackSnapshot, GetEventMask, GetThreadInfo};
    let wrapper = Wrapper(core::cell::RefCell::default());
    let thread = ThreadId(7);
    let results = [
        wrapper.get_event_mask().err(),
        wrapper.get_thread_info(thread).err(),
        wrapper.do_stack_snapshot(&SnapshotRequest { thread, ..Default::default() }, None).err(),
    ];
    assert_eq!(results, [Some(CallError::Failed(HResult::NOT_IMPLEMENTED)); 3]);
    let about = Some(thread);
    let calls = [(GetEventMask, None), (GetThreadInfo, about), (DoStackSnapshot, about)];
    assert_eq!(*wrapper.0.borrow(), calls);
}

#[test]
fn methods_are_found_by_their_names() {
    assert!(InfoMethod::ALL.iter().all(|one| InfoMethod::from_name(one.name()) == Some(*one)));
    assert_eq!(InfoMethod::from_name("GetRuntimeInformation"), None);
    assert!(InfoMethod::EnumThreads.has(Effect::AwaitsGc));
    assert!(!InfoMethod::EnumThreads.has(Effect::Changes));
}
