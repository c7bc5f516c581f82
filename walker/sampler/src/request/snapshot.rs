//! DoStackSnapshot on the stack of a sample, for tests of walks.

use super::Sample;
use clr_com::RuntimeInfo;
use clr_unwind::Registers;
use clr_walker::profiling::{
    CallError, FunctionId, HResult, ProfilerInfo as _, SnapshotFlags, SnapshotFrame,
    SnapshotRequest, ThreadId,
};

/// Size of the largest CONTEXT that a runtime reads, in bytes.
const SIZE_OF_SEED: usize = 0xCA0;

/// A managed frame as DoStackSnapshot reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The method of the frame.
    pub function: FunctionId,
    /// The instruction of the frame (VA).
    pub ip: u64,
    /// The stack pointer of the frame (VA).
    pub sp: u64,
}

impl Sample {
    /// Asks the runtime about the thread of the sample: the calling one if `thread` is 0, else a
    /// suspended one. `is_seeded`: from the sample's registers on.
    #[inline(never)]
    pub(super) fn take_snapshot(&mut self, info: &RuntimeInfo, thread: ThreadId, is_seeded: bool) {
        #[repr(align(16))]
        struct Context([u8; SIZE_OF_SEED]);
        let mut context = Context([0; SIZE_OF_SEED]);
        self.reports.clear();
        if self.registers.write_context(&mut context.0).is_err() {
            return;
        }
        let reports = &mut self.reports;
        let mut callback = |frame: &mut SnapshotFrame<'_>| {
            if let (Some(function), Ok(registers)) =
                (frame.function, Registers::from_context(frame.context))
                && reports.len() < reports.capacity()
            {
                reports.push(Report { function, ip: frame.ip, sp: registers.rsp() });
            }
            HResult::OK
        };
        let flags = SnapshotFlags::REGISTER_CONTEXT;
        let seed = is_seeded.then_some(&context.0[..]);
        let request = SnapshotRequest::of(thread, flags).seeded(seed);
        let result = info.do_stack_snapshot(&request, Some(&mut callback));
        self.snapshot = Some(match result {
            Ok(()) => HResult::OK,
            Err(CallError::Failed(result)) => result,
        });
    }
}
