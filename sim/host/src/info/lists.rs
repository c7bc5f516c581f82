//! Lists of functions, of objects and of methods.

use super::Call;
use crate::out::{Answer, put};
use crate::threads::{Functions, Methods, Objects};
use clr_codegen::FunctionIndex;
use clr_com::{
    Bool, Function, ICorProfilerInfo2Methods, ICorProfilerInfo6Methods, Method, ModuleId, Token,
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
        // Images have had none since native images went (recorded on 3.1.23, 8.0.34, 9.0.23, 10.0.15 and 11.0.0, of the core
        // library, too).
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(enumerator, Objects::make(self.session, Vec::new())) };
        Ok(HResult::OK)
    });

    // Images that are compiled ahead have a table of inlined methods: what the text says that their methods inline. What the
    // core library inlines of itself, much in a CLR, texts do not say.
    ICorProfilerInfo6Methods!(inliners = EnumNgenModuleMethodsInliningThisMethod(self, inliners,
        inlinee, method, is_incomplete, enumerator) {
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
        if inliners == inlinee && self.runtime().metadata.is_precompiled(module.id) {
            return self.not_simulated();
        }
        let found = self.inliners_of((inlinee.0, method), module.id);
        // SAFETY: the profiler's pointers, of which the second is not NULL.
        unsafe {
            put(is_incomplete, 0);
            put(enumerator, Methods::make(self.session, found));
        }
        Ok(HResult::OK)
    });

    /// Returns the methods of a module that are compiled ahead, and inline a method by the text. It is given by module and token.
    fn inliners_of(&self, inlinee: (u64, u32), module: u64) -> Vec<Method> {
        let scenario = &self.session.scenario;
        let code = &self.runtime().code;
        let named = |function: &FunctionIndex| {
            let name = scenario.function_name(*function)?;
            code.methods().find(|(_, method)| method.name == name)
        };
        let in_image = |index| code.versions(index).any(|version| code.is_in_image(version.start));
        let is_it = |callee: &FunctionIndex| {
            named(callee).is_some_and(|(_, method)| (method.module, method.token) == inlinee)
        };
        let inliners = scenario.inlines.iter().filter(|(_, callees)| callees.iter().any(is_it));
        let inliners = inliners.filter_map(|(caller, _)| named(caller));
        let own = inliners.filter(|(index, method)| method.module == module && in_image(*index));
        own.map(|(_, method)| Method { module: ModuleId(method.module), token: method.token })
            .collect()
    }

    /// Returns true if a module was compiled ahead: the core library, and modules with such code.
    fn is_precompiled(&self, module: u64) -> bool {
        let code = &self.runtime().code;
        let mut own = code.methods().filter(|(_, method)| method.module == module);
        let in_image = |index| code.versions(index).any(|version| code.is_in_image(version.start));
        self.runtime().metadata.is_precompiled(module) || own.any(|(index, _)| in_image(index))
    }
}
