//! Lists of functions, of objects and of methods.

use super::Call;
use crate::out::{Answer, put};
use crate::threads::{Functions, Methods, Objects};
use clr_com::{
    Bool, Function, ICorProfilerInfo2Methods, ICorProfilerInfo6Methods, ModuleId, Token,
};
use clr_walker::profiling::HResult;
use std::ffi::c_void;
use std::ptr::null_mut;

impl Call<'_> {
    /// Answers EnumJITedFunctions and EnumJITedFunctions2: the functions that have code from the JIT, with the ReJITID of each
    /// version.
    pub(super) unsafe fn enum_jitted(&self, enumerator: *mut *mut c_void) -> Answer {
        self.begin()?;
        if enumerator.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        self.caller().may_fail(self.method)?;
        let code = &self.runtime().code;
        let is_known = |function: &Function| {
            self.caller().compiled(function.function).is_ok()
                && !code.is_dangling(function.function)
        };
        // A profiler is loaded before the first method is compiled.
        let started = self.runtime().process.get().gc_initialized;
        let methods = code.methods().filter(|(_, method)| started && method.kind.has_metadata());
        let functions = methods.flat_map(|(index, method)| {
            let jitted = code.versions(index).filter(|version| !code.is_in_image(version.start));
            jitted.map(|version| Function { function: method.id, rejit: version.rejit })
        });
        let functions = functions.filter(is_known).collect();
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(enumerator, Functions::make(self.session, functions)) };
        Ok(HResult::OK)
    }

    ICorProfilerInfo2Methods!(frozen_objects = EnumModuleFrozenObjects(self, module, enumerator) {
        self.begin()?;
        if module.0 == 0 {
            return Ok(HResult::DATA_INCOMPLETE);
        }
        self.module_of(module.0)?;
        if enumerator.is_null() {
            return self.null("ppEnum");
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(enumerator, Objects::make(self.session, Vec::new())) };
        Ok(HResult::OK)
    });

    // Of the modules of a text the core library alone has a table of inlined methods, as images have that are compiled
    // ahead; what it inlines texts do not say.
    ICorProfilerInfo6Methods!(inliners = EnumNgenModuleMethodsInliningThisMethod(self, inliners,
        inlinee, _method, is_incomplete, enumerator) {
        self.begin()?;
        if enumerator.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(enumerator, null_mut()) };
        if inlinee.0 == 0 || inliners.0 == 0 {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        self.module_of(inlinee.0)?;
        let module = self.module_of(inliners.0)?;
        if !self.is_precompiled(module.id) {
            return Ok(HResult::DATA_INCOMPLETE);
        }
        // SAFETY: the profiler's pointers, of which the second is not NULL.
        unsafe {
            put(is_incomplete, 0);
            put(enumerator, Methods::make(self.session, Vec::new()));
        }
        Ok(HResult::OK)
    });

    /// Returns true if a module was compiled ahead: the core library, and modules with such code.
    fn is_precompiled(&self, module: u64) -> bool {
        let code = &self.runtime().code;
        let mut own = code.methods().filter(|(_, method)| method.module == module);
        let in_image = |index| code.versions(index).any(|version| code.is_in_image(version.start));
        self.runtime().metadata.is_precompiled(module) || own.any(|(index, _)| in_image(index))
    }
}
