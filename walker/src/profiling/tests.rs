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

/// The part of the interface that walks need.
struct Walks;

impl ProfilerInfo for Walks {
    type Fatal = Infallible;

    fn do_stack_snapshot(
        &self,
        _: ThreadId,
        _: Option<&mut SnapshotCallback<'_>>,
        _: SnapshotFlags,
        _: u64,
        _: Option<&[u8]>,
        _: u32,
    ) -> Result<(), CallError<Infallible>> {
        Ok(())
    }

    fn get_function_from_ip(&self, ip: u64) -> Result<FunctionId, CallError<Infallible>> {
        Ok(FunctionId(ip))
    }

    fn suspend_runtime(&self) -> Result<(), CallError<Infallible>> {
        Ok(())
    }

    fn resume_runtime(&self) -> Result<(), CallError<Infallible>> {
        Ok(())
    }
}

/// Callers ask `GetFunctionFromIP` where a newer method is `E_NOTIMPL`, so a method that is left out must not
/// seem to succeed.
#[test]
fn methods_that_are_left_out_are_not_implemented() {
    let (function, thread) = (FunctionId(1), ThreadId(1));
    let ranges = &mut [CodeRange { start: 0, size: 0 }; 2];
    let results = [
        Walks.get_function_from_ip2(1).err(),
        Walks.get_function_from_ip3(1).err(),
        Walks.get_code_info(function).err(),
        Walks.get_code_info2(function, ranges).err(),
        Walks.get_code_info3(function, ReJitId(0), ranges).err(),
        Walks.get_code_info4(1, ranges).err(),
        Walks.get_function_info2(function, None, 0).err(),
        Walks.get_current_thread_id().err(),
        Walks.get_thread_info(thread).err(),
        Walks.get_handle_from_thread(thread).err(),
        Walks.enum_threads().err(),
        Walks.initialize_current_thread().err(),
        Walks.get_event_mask().err(),
        Walks.set_event_mask(EventMask::MONITOR_THREADS).err(),
    ];
    for (n, result) in results.into_iter().enumerate() {
        assert_eq!(result, Some(CallError::Failed(HResult::NOT_IMPLEMENTED)), "method {n}");
    }
}
