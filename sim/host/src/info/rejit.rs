//! ReJIT: requests, reverts, and the versions of a method's IL.
//!
//! Results were recorded on 3.1.23, 8.0.34, 10.0.15 and 11.0.0. The code of a program is as its text says: a method that is
//! compiled again keeps its code and its address.

use super::Call;
use crate::out::{Answer, count, put, put_all};
use clr_com::{ICorProfilerInfo4Methods, ICorProfilerInfo10Methods, ModuleId, Token};
use clr_runtime::Outcome;
use clr_runtime::profiling::Accepts;
use clr_walker::profiling::{CallError, EventMask, FunctionId, HResult, ReJitId};

/// `COR_PRF_ENABLE_REJIT` (corprof.idl).
const ENABLE_REJIT: EventMask = EventMask(0x4_0000);
/// `COR_PRF_REJIT_BLOCK_INLINING`.
const BLOCK_INLINING: u32 = 1;
/// Largest number of methods of a request that is looked at.
const MOST: u32 = 0x1_0000;

/// A method as requests name it: its module, and its token in it.
type Requested = (ModuleId, Token);

impl Call<'_> {
    /// Checks that the profiler may request, and reads its methods.
    unsafe fn requested(
        &self,
        (len, modules, methods): (u32, *const ModuleId, *const Token),
    ) -> Result<Vec<Requested>, CallError<Outcome>> {
        if !self.runtime().process.get().event_mask.contains(ENABLE_REJIT) {
            return Err(HResult::REJIT_NOT_ENABLED.into());
        }
        if len == 0 || modules.is_null() || methods.is_null() {
            return Err(HResult::INVALID_ARGUMENT.into());
        }
        // SAFETY: the profiler's arrays have this number of elements.
        let method = |index| unsafe {
            (modules.add(index).read_unaligned(), methods.add(index).read_unaligned())
        };
        Ok((0..len.min(MOST) as usize).map(method).collect())
    }

    /// Returns the functions that are named. Of a method that does not exist the profiler hears at once.
    fn functions(&self, requested: &[Requested]) -> Vec<FunctionId> {
        let mut functions = Vec::new();
        for (module, method) in requested {
            let known = self.runtime().metadata.module(module.0);
            let is_known =
                known.is_some_and(|known| known.methods().iter().any(|one| one.token == *method));
            match self.function_named(module.0, *method) {
                Some(function) => functions.push(function),
                // The class is not loaded: the program does not call the method.
                None if is_known => {}
                None => self.session.rejit_error((*module, *method), HResult::INVALID_ARGUMENT),
            }
        }
        functions
    }

    /// Refuses a profiler without the callbacks of ReJIT.
    fn check_callbacks(&self) -> Result<(), CallError<Outcome>> {
        let profiler = self.session.profiler.borrow();
        if profiler.as_ref().is_some_and(|target| !target.has_fourth()) {
            return Err(HResult::CALLBACK4_REQUIRED.into());
        }
        Ok(())
    }

    ICorProfilerInfo4Methods!(request_rejit = RequestReJIT(self, len, modules, methods) {
        self.begin()?;
        self.check_may_change()?;
        self.check_callbacks()?;
        // SAFETY: the profiler's arrays.
        let requested = unsafe { self.requested((len, modules, methods)) }?;
        self.caller().request_rejit(&self.functions(&requested))?;
        Ok(HResult::OK)
    });

    ICorProfilerInfo10Methods!(request_rejit_with_inliners = RequestReJITWithInliners(self, flags, len,
        modules, methods) {
        self.begin()?;
        self.check_may_change()?;
        self.check_callbacks()?;
        // SAFETY: the profiler's arrays.
        let requested = unsafe { self.requested((len, modules, methods)) }?;
        if flags & BLOCK_INLINING == 0 {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let mut functions = self.functions(&requested);
        let inliners: Vec<_> = {
            let versions = self.runtime().code.il_versions.borrow();
            functions.iter().flat_map(|function| versions.inliners(*function)).collect()
        };
        // Recorded on 8.0.34, 10.0.15 and 11.0.0: the next calls of both compile them again.
        functions.extend(inliners);
        self.caller().request_rejit(&functions)?;
        Ok(HResult::OK)
    });

    ICorProfilerInfo4Methods!(request_revert = RequestRevert(self, len, modules, methods, status) {
        self.begin()?;
        self.check_may_change()?;
        // SAFETY: the profiler's arrays.
        let requested = unsafe { self.requested((len, modules, methods)) }?;
        let function = |(module, method): &Requested| self.function_named(module.0, *method);
        let functions = requested.iter().filter_map(function);
        self.caller().request_revert(&functions.collect::<Vec<_>>())?;
        // SAFETY: the same.
        unsafe { put_all(status, len, &vec![HResult::OK; requested.len()]) };
        Ok(HResult::OK)
    });

    ICorProfilerInfo4Methods!(rejit_ids = GetReJITIDs(self, function, room, len, ids) {
        let is_core_3 = !self.session.generation.family().is_core_since(5);
        // CoreCLR 3.1 answers in callbacks without triggers, too (recorded).
        if is_core_3 {
            self.caller().begin(Accepts::Callbacks)?;
        } else {
            self.begin()?;
        }
        if len.is_null() || room != 0 && ids.is_null() || room == 0 && is_core_3 {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        if self.runtime().code.method(function).is_none() {
            return self.unknown(function.0);
        }
        // Since .NET 11 the IL that a method had before all requests is no version.
        let first = (!self.session.generation.family().is_core_since(11)).then_some(ReJitId(0));
        let mut all: Vec<_> = first.into_iter().collect();
        all.extend(self.runtime().code.il_versions.borrow().compiled(function));
        // SAFETY: the profiler's pointers.
        unsafe {
            put_all(ids, room, &all);
            put(len, count(all.len()));
        }
        Ok(if all.len() > room as usize { HResult::FALSE } else { HResult::OK })
    });
}
