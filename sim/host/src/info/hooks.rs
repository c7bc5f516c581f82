//! The methods of hooks: `SetEnterLeaveFunctionHooks` to 3, mappers, what hooks ask.

use super::Call;
use crate::elt::ELT_INFO;
use crate::out::{Answer, put};
use crate::profiler_hooks::{INFO_FLAGS, SetBy};
use crate::results;
use clr_com::{
    ArgumentRange, EltInfo, FrameHandle, FunctionArguments, FunctionHook, FunctionIdMapper,
    ICorProfilerInfo3Methods,
};
use clr_runtime::{Outcome, ProfilerStatus};
use clr_walker::profiling::{CallError, FunctionId, HResult};
use std::ffi::c_void;

macro_rules! hooks {
    ($($name:ident $by:ident),*) => {$(
        pub(super) fn $name(
            &self,
            enter: FunctionHook,
            leave: FunctionHook,
            tailcall: FunctionHook,
        ) -> Answer {
            self.set_hooks(SetBy::$by, [enter, leave, tailcall])
        }
    )*};
}

impl Call<'_> {
    hooks! {
        set_hooks_1 One, set_hooks_2 Two, set_hooks_3 Three, set_hooks_3_with_info ThreeWithInfo
    }

    /// Sets hooks. Only `Initialize` may do so.
    fn set_hooks(&self, by: SetBy, hooks: [FunctionHook; 3]) -> Answer {
        self.begin()?;
        self.check_not_attached()?;
        let process = self.runtime().process.get();
        if process.profiler != ProfilerStatus::InitializingForStartup {
            return Ok(HResult::CALL_ONLY_FROM_INIT);
        }
        self.check_may_change()?;
        Ok(self.session.hooks.set(by, hooks, process.event_mask))
    }

    /// Refuses hooks and mappers to a profiler that was attached, at any time (recorded on 3.1.23, 8.0.34, 9.0.23, 10.0.15 and
    /// 11.0.0).
    fn check_not_attached(&self) -> Result<(), CallError<Outcome>> {
        let is_refused = self.runtime().process.get().attached;
        if is_refused { Err(HResult::UNSUPPORTED_FOR_ATTACHING_PROFILER.into()) } else { Ok(()) }
    }

    pub(super) fn set_mapper(&self, mapper: FunctionIdMapper) -> Answer {
        self.map_by(mapper, None)
    }

    pub(super) fn set_mapper2(&self, mapper: FunctionIdMapper, data: *mut c_void) -> Answer {
        self.map_by(mapper, Some(data))
    }

    /// Sets the mapper of FunctionIDs.
    fn map_by(&self, mapper: FunctionIdMapper, data: Option<*mut c_void>) -> Answer {
        self.begin()?;
        self.check_not_attached()?;
        self.check_may_change()?;
        self.session.hooks.set_mapper(mapper, data);
        Ok(HResult::OK)
    }

    /// Makes the checks of what hooks ask: the flag for it or for frames, the arguments.
    fn check_hook(&self, function: FunctionId, info: EltInfo, flag: usize) -> Answer {
        self.begin()?;
        if !self.has_info(flag) && !self.has_info(FRAMES) {
            return Ok(HResult::INCONSISTENT_WITH_FLAGS);
        }
        if function.0 == 0 || info == 0 {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        self.check_function(function);
        if info != ELT_INFO {
            self.session.shared.find_unknown(self.method, info);
        }
        Ok(HResult::OK)
    }

    fn has_info(&self, flag: usize) -> bool {
        let events = self.runtime().process.get().event_mask;
        INFO_FLAGS.get(flag).is_some_and(|flag| events.contains(*flag))
    }

    // Answers GetFunctionEnter3Info. Methods have no parameters; the frame is 0, which GetFunctionInfo2
    // takes.
    ICorProfilerInfo3Methods!(enter_info = GetFunctionEnter3Info(self, function, info, frame, size,
        arguments) {
        let checked = self.check_hook(function, info, ARGUMENTS)?;
        if checked != HResult::OK {
            return Ok(checked);
        }
        if self.has_info(FRAMES) && frame.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        // SAFETY: the profiler's pointers.
        unsafe {
            put(frame, 0);
            if !self.has_info(ARGUMENTS) {
                return Ok(HResult::OK);
            }
            if size.is_null() || (size.read_unaligned() != 0 && arguments.is_null()) {
                return Ok(HResult::INVALID_ARGUMENT);
            }
            if size.read_unaligned() < NEEDED {
                put(size, NEEDED);
                return Ok(results::INSUFFICIENT_BUFFER);
            }
            let first = ArgumentRange { start: 0, size: 0 };
            put(arguments, FunctionArguments { ranges_len: 0, size: 0, first });
        }
        Ok(HResult::OK)
    });

    ICorProfilerInfo3Methods!(leave_info = GetFunctionLeave3Info(self, function, info, frame,
        range) {
        // SAFETY: the profiler's pointers, here and below.
        unsafe { self.left(function, info, frame, Some(range)) }
    });

    ICorProfilerInfo3Methods!(tail_call_info = GetFunctionTailcall3Info(self, function, info,
        frame) {
        // SAFETY: as above.
        unsafe { self.left(function, info, frame, None) }
    });

    /// Answers GetFunctionLeave3Info, and GetFunctionTailcall3Info without a range.
    unsafe fn left(
        &self,
        function: FunctionId,
        info: EltInfo,
        frame: *mut FrameHandle,
        range: Option<*mut ArgumentRange>,
    ) -> Answer {
        let checked =
            self.check_hook(function, info, if range.is_some() { RETURNED } else { FRAMES })?;
        if checked != HResult::OK {
            return Ok(checked);
        }
        if self.has_info(FRAMES) && frame.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        if self.has_info(RETURNED) && range.is_some_and(<*mut ArgumentRange>::is_null) {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        // SAFETY: the profiler's pointers.
        unsafe {
            put(frame, 0);
            if let Some(range) = range {
                put(range, ArgumentRange { start: 0, size: 0 });
            }
        }
        Ok(HResult::OK)
    }
}

/// Size of the arguments of a method without parameters.
const NEEDED: u32 = size_of::<FunctionArguments>() as u32;
/// Indices of the flags for arguments, return values and frames.
const ARGUMENTS: usize = 0;
const RETURNED: usize = 1;
const FRAMES: usize = 2;
