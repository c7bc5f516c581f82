//! Maps from IL to native code, and the addresses of code.
//!
//! Results were recorded on 3.1.23, 8.0.34, 9.0.23, 10.0.15 and 11.0.0. A map has the prologue, then the code of the IL, as
//! that of a method with one statement has.

use super::Call;
use crate::out::{Answer, count, put, put_all};
use crate::results;
use clr_com::{
    ICorProfilerInfo4Methods, ICorProfilerInfo9Methods, ICorProfilerInfoMethods, IlToNative,
};
use clr_runtime::{CodeVersion, Outcome};
use clr_walker::profiling::{CallError, FunctionId, HResult, ReJitId};

/// `ICorDebugInfo::PROLOG`.
const PROLOGUE: u32 = (-2_i32).cast_unsigned();

impl Call<'_> {
    /// Returns the versions of a function's code that are those of a ReJITID, the oldest first. An id that the function
    /// does not have stands for 0 (recorded).
    fn versions(
        &self,
        function: FunctionId,
        rejit: ReJitId,
    ) -> Result<Vec<&CodeVersion>, CallError<Outcome>> {
        let code = &self.runtime().code;
        let Some((index, _)) = code.method(function) else { return self.unknown(function.0) };
        let is_known = code.versions(index).any(|one| one.rejit == rejit);
        let wanted = if is_known { rejit } else { ReJitId(0) };
        Ok(code.versions(index).filter(|one| one.rejit == wanted).collect())
    }

    /// Refuses a map that is asked for without room for it.
    fn check_map(
        (room, len, map): (u32, *mut u32, *mut IlToNative),
    ) -> Result<(), CallError<Outcome>> {
        if room > 0 && (len.is_null() || map.is_null()) {
            return Err(HResult::INVALID_ARGUMENT.into());
        }
        Ok(())
    }

    /// Writes the map of a version of code.
    unsafe fn put_map(
        &self,
        code: &CodeVersion,
        (room, len, map): (u32, *mut u32, *mut IlToNative),
    ) -> HResult {
        let prologue = self.runtime().code.prologue_size(code);
        let end = u32::try_from(code.size).unwrap_or(u32::MAX);
        let entries = [
            IlToNative { il_offset: PROLOGUE, native_start: 0, native_end: prologue },
            IlToNative { il_offset: 0, native_start: prologue, native_end: end },
        ];
        // SAFETY: the profiler's pointers.
        unsafe {
            put(len, count(entries.len()));
            put_all(map, room, &entries);
        }
        HResult::OK
    }

    ICorProfilerInfoMethods!(map = GetILToNativeMapping(self, function, room, len, map) {
        // SAFETY: the profiler's pointers.
        unsafe { self.map_of_version(function, ReJitId(0), room, len, map) }
    });

    ICorProfilerInfo4Methods!(map_of_version = GetILToNativeMapping2(self, function, rejit, room,
        len, map) {
        self.begin()?;
        Self::check_map((room, len, map))?;
        let versions = self.versions(function, rejit)?;
        // Without code the address is 0, which GetILToNativeMapping3 refuses.
        let found = versions.first().filter(|_| self.caller().compiled(function).is_ok());
        let Some(code) = found else { return Ok(HResult::INVALID_ARGUMENT) };
        // SAFETY: the profiler's pointers.
        Ok(unsafe { self.put_map(code, (room, len, map)) })
    });

    ICorProfilerInfo9Methods!(map_of_code = GetILToNativeMapping3(self, start, room, len, map) {
        self.begin()?;
        if start == 0 {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        Self::check_map((room, len, map))?;
        // CoreCLR 3.1 takes any address of the code, later ones the first alone.
        let needs_start = self.session.generation.family().is_core_since(8);
        let found = self.runtime().code.find(start).map(|found| found.code);
        let found = found.filter(|code| !needs_start || code.start == start);
        let Some(code) = found else { return Ok(HResult::FAIL) };
        // SAFETY: the profiler's pointers.
        Ok(unsafe { self.put_map(code, (room, len, map)) })
    });

    ICorProfilerInfo9Methods!(code_starts = GetNativeCodeStartAddresses(self, function, rejit, room,
        len, starts) {
        self.begin()?;
        let mut found: Vec<_> =
            self.versions(function, rejit)?.iter().map(|code| code.start).collect();
        if self.caller().compiled(function).is_err() {
            // CoreCLR 3.1 lists code that does not exist yet as 0 (recorded).
            let lists_missing = !self.session.generation.family().is_core_since(5);
            found = if lists_missing { vec![0] } else { Vec::new() };
        }
        // SAFETY: the profiler's pointers.
        unsafe {
            put(len, count(found.len()));
            if starts.is_null() || found.len() <= room as usize {
                put_all(starts, room, &found);
                return Ok(HResult::OK);
            }
        }
        Ok(results::INSUFFICIENT_BUFFER)
    });
}
