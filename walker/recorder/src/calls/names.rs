//! Names of functions, classes and modules, as the runtime says them.

use clr_com::{AssemblyId, ClassId, ICorProfilerInfo10, ModuleId};
use clr_sampler::names::{class_info, class_name, metadata, method, module_file, succeeded, text};
use clr_walker::profiling::{FunctionId, HResult};
use std::collections::HashMap;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

/// A name, and whether it is one of the program's module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) text: String,
    pub(super) is_own: bool,
}

/// Names, by which the program's code is distinguished from all other.
#[derive(Debug)]
pub(super) struct Names {
    /// The file name of the program's module.
    program: String,
    /// The names that were asked for, by FunctionID.
    functions: Mutex<HashMap<FunctionId, Named>>,
}

impl Names {
    pub(super) fn new(program: &str) -> Self {
        Self { program: program.to_owned(), functions: Mutex::default() }
    }

    /// Returns true for the name of the program's module.
    pub(super) fn is_own(&self, module: &str) -> bool {
        module == self.program
    }

    /// Returns true for the name of the program's assembly.
    pub(super) fn is_own_assembly(&self, assembly: &str) -> bool {
        self.program.strip_suffix(".dll") == Some(assembly)
    }

    /// Returns `Type.Method`; of a function without metadata `?`.
    pub(super) fn function(&self, info: &ICorProfilerInfo10, function: FunctionId) -> Named {
        let known = || self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&function) {
            return found.clone();
        }
        let named = self
            .ask_function(info, function)
            .unwrap_or_else(|_| Named { text: "?".to_owned(), is_own: false });
        known().insert(function, named.clone());
        named
    }

    fn ask_function(
        &self,
        info: &ICorProfilerInfo10,
        function: FunctionId,
    ) -> Result<Named, HResult> {
        let (mut module, mut token) = (ModuleId(0), 0);
        // SAFETY: the pointers are to locals, or NULL where the result is not wanted.
        succeeded(unsafe {
            let (module, token) = (&raw mut module, &raw mut token);
            let (none, no_len) = (null_mut(), null_mut());
            info.GetFunctionInfo2(function, 0, none, module, token, 0, no_len, null_mut())
        })?;
        let text = method(&metadata(info, module)?, token)?;
        Ok(Named { text, is_own: self.is_own(&Self::module(info, module)) })
    }

    /// Returns the name of a class with its namespace, without type arguments.
    pub(super) fn class(&self, info: &ICorProfilerInfo10, class: ClassId) -> Named {
        self.ask_class(info, class)
            .unwrap_or_else(|result| Named { text: format!("?{result}"), is_own: false })
    }

    fn ask_class(&self, info: &ICorProfilerInfo10, class: ClassId) -> Result<Named, HResult> {
        let (module, token) = class_info(info, class)?;
        let text = class_name(&metadata(info, module)?, token)?;
        Ok(Named { text, is_own: self.is_own(&Self::module(info, module)) })
    }

    /// Returns the file name of a module.
    pub(super) fn module(info: &ICorProfilerInfo10, module: ModuleId) -> String {
        module_file(info, module).unwrap_or_default()
    }

    /// Returns the result of GetAssemblyInfo, and the assembly's name.
    pub(super) fn assembly(info: &ICorProfilerInfo10, assembly: AssemblyId) -> (HResult, String) {
        let mut result = HResult::OK;
        let name = text(|name, room, len| {
            // SAFETY: the pointers are to locals of `text`, or NULL.
            result =
                unsafe { info.GetAssemblyInfo(assembly, room, len, name, null_mut(), null_mut()) };
            result
        });
        (result, name.unwrap_or_default())
    }
}
