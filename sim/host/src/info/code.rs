//! Code and its functions.

use super::Call;
use crate::out::{Answer, count, put, put_all, wide};
use crate::results;
use clr_com::{
    Bool, ClassId, FrameHandle, ICorProfilerInfo2Methods, ICorProfilerInfo4Methods,
    ICorProfilerInfo8Methods, ICorProfilerInfo9Methods, ICorProfilerInfoMethods, IlMap, ModuleId,
    Token,
};
use clr_runtime::profiling::Accepts;
use clr_runtime::{MethodKind, Outcome};
use clr_walker::profiling::{
    CallError, CodeRange, FrameInfo, FunctionId, HResult, ProfilerInfo as _, ReJitId,
};

/// Maximum number of pieces that the code of a method has.
const PIECES: usize = 2;
/// `void ()`, without `this`.
static NO_ARGUMENTS: [u8; 3] = [0, 0, 1];

impl Call<'_> {
    /// Answers GetCodeInfo2 to 4: `look` writes pieces of code, and returns their number.
    pub(super) unsafe fn code_info(
        &self,
        (room, len, ranges): (u32, *mut u32, *mut CodeRange),
        look: impl FnOnce(&mut [CodeRange]) -> Result<u32, CallError<Outcome>>,
    ) -> Answer {
        if room != 0 && ranges.is_null() {
            self.caller().begin(Accepts::All)?;
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let mut found = [CodeRange { start: 0, size: 0 }; PIECES];
        let count = look(&mut found)?;
        // SAFETY: the profiler's pointers.
        unsafe {
            put_all(ranges, room, found.get(..count as usize).unwrap_or(&found));
            put(len, count);
        }
        Ok(HResult::OK)
    }

    ICorProfilerInfoMethods!(get_code_info = GetCodeInfo(self, function, start, size) {
        self.check_function(function);
        let found = self.caller().get_code_info(function)?;
        // SAFETY: the profiler's pointers. The address is of the simulated process.
        unsafe {
            put(start, found.start as *const u8);
            put(size, u32::try_from(found.size).unwrap_or(u32::MAX));
        }
        Ok(HResult::OK)
    });

    // Answers GetFunctionInfo. The class of a generic type's method is 0
    // (NonGenericTypeHandleToClassID).
    ICorProfilerInfoMethods!(get_function_info = GetFunctionInfo(self, function, class, module,
        token) {
        self.check_function(function);
        let info = self.caller().get_function_info2(function, None, 0)?;
        let own_class = self.runtime().code.method(function).map_or(0, |(_, method)| method.class);
        let is_generic = self
            .runtime()
            .metadata
            .class(own_class)
            .is_some_and(|(module, one)| module.parameters_of(one.token).next().is_some());
        // SAFETY: the profiler's pointers.
        unsafe {
            put(class, ClassId(if is_generic { 0 } else { own_class }));
            put(module, ModuleId(info.module));
            put(token, info.token);
        }
        Ok(HResult::OK)
    });

    ICorProfilerInfo2Methods!(get_function_info2 = GetFunctionInfo2(self, function, frame_info,
        class, module, token, room, len, type_args) {
        self.check_function(function);
        let frame_info = (frame_info != 0).then(|| FrameInfo::new(frame_info));
        let info = self.caller().get_function_info2(function, frame_info, room)?;
        if room != 0 && type_args.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        // SAFETY: the profiler's pointers.
        unsafe {
            put(class, ClassId(info.class));
            put(module, ModuleId(info.module));
            put(token, info.token);
            // Without room for the number, arguments are not written either.
            if !len.is_null() {
                let written: Vec<_> = info.type_arguments.iter().map(|one| ClassId(*one)).collect();
                put_all(type_args, room, &written);
                let count = info.type_argument_count;
                put(len, if room == 0 { count } else { count.min(room) });
            }
        }
        Ok(HResult::OK)
    });

    ICorProfilerInfo2Methods!(get_code_info2 = GetCodeInfo2(self, function, room, len, ranges) {
        self.check_function(function);
        let look = |ranges: &mut [_]| self.caller().get_code_info2(function, ranges);
        // SAFETY: the profiler's pointers.
        unsafe { self.code_info((room, len, ranges), look) }
    });

    ICorProfilerInfo4Methods!(get_code_info3 = GetCodeInfo3(self, function, rejit, room, len,
        ranges) {
        self.check_function(function);
        let look = |ranges: &mut [_]| self.caller().get_code_info3(function, rejit, ranges);
        // SAFETY: the profiler's pointers.
        unsafe { self.code_info((room, len, ranges), look) }
    });

    ICorProfilerInfo9Methods!(get_code_info4 = GetCodeInfo4(self, start, room, len, ranges) {
        let look = |ranges: &mut [_]| self.caller().get_code_info4(start, ranges);
        // SAFETY: the profiler's pointers.
        unsafe { self.code_info((room, len, ranges), look) }
    });

    // The signature of a dynamic method is that of all methods of texts: no arguments, no result.
    ICorProfilerInfo8Methods!(dynamic_info = GetDynamicFunctionInfo(self, function, module, signature,
        signature_len, room, len, name) {
        self.begin()?;
        let Some((_, method)) = self.runtime().code.method(function) else {
            return self.unknown(function.0);
        };
        if method.kind.has_metadata() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let text = wide(&method.name);
        let is_short = !name.is_null() && room > 0 && (room as usize) < text.len();
        // SAFETY: the profiler's pointers.
        unsafe {
            put(module, ModuleId(method.module));
            if !signature.is_null() && !signature_len.is_null() {
                put(signature, NO_ARGUMENTS.as_ptr());
                put(signature_len, NO_ARGUMENTS.len() as u32);
            }
            if !name.is_null() {
                put(name, 0);
            }
            if !is_short {
                put_all(name, room, &text);
            }
            put(len, count(text.len()));
        }
        Ok(if is_short { results::INSUFFICIENT_BUFFER } else { HResult::OK })
    });

    // The map is for debuggers, which texts have none of: it is taken, and has no effect.
    ICorProfilerInfoMethods!(set_il_map = SetILInstrumentedCodeMap(self, function, _start, _len,
        entries) {
        self.begin()?;
        if self.runtime().code.method(function).is_none() {
            return self.unknown(function.0);
        }
        // The runtime owns the entries now, which are of its own heap.
        let _ = entries;
        Ok(HResult::OK)
    });

    pub(super) unsafe fn is_dynamic(&self, function: FunctionId, is_dynamic: *mut Bool) -> Answer {
        self.begin()?;
        let Some((_, method)) = self.runtime().code.method(function) else {
            return self.unknown(function.0);
        };
        let dynamic = matches!(method.kind, MethodKind::IlStub | MethodKind::Dynamic);
        // SAFETY: the profiler's pointer.
        unsafe { put(is_dynamic, dynamic.into()) };
        Ok(HResult::OK)
    }
}
