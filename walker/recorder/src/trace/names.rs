//! Names, as the runtime says them.

use clr_com::{AssemblyId, ClassId, ICorProfilerInfo2, ModuleId, RuntimeInfo};
use clr_sampler::names::{class_info, class_name, metadata, module_file, name, text};
use clr_trace::{IdKind, Names};
use clr_walker::profiling::{FunctionId, ProfilerInfo as _};
use std::ptr::null_mut;

/// The names that the runtime has.
pub(super) struct RuntimeNames(RuntimeInfo);

impl RuntimeNames {
    pub(super) const fn new(info: RuntimeInfo) -> Self {
        Self(info)
    }

    fn info(&self) -> &ICorProfilerInfo2 {
        self.0.info2()
    }

    fn function(&self, function: FunctionId) -> Option<String> {
        name(&self.0, function).or_else(|| self.0.get_dynamic_function_name(function).ok())
    }

    fn class(&self, class: ClassId) -> Option<String> {
        let (module, token) = class_info(self.info(), class).ok()?;
        class_name(&metadata(self.info(), module).ok()?, token).ok()
    }

    fn assembly(&self, assembly: AssemblyId) -> Option<String> {
        let name = text(|name, room, len| {
            // SAFETY: the pointers are to locals of `text`, or NULL.
            unsafe {
                self.info().GetAssemblyInfo(assembly, room, len, name, null_mut(), null_mut())
            }
        });
        name.ok()
    }
}

impl Names for RuntimeNames {
    fn name(&mut self, kind: IdKind, id: u64) -> Option<String> {
        let name = match kind {
            IdKind::Assembly => self.assembly(AssemblyId(id)),
            IdKind::Class => self.class(ClassId(id)),
            IdKind::Function => self.function(FunctionId(id)),
            IdKind::Module => module_file(self.info(), ModuleId(id)).ok(),
            IdKind::AppDomain | IdKind::Thread | IdKind::OsThread => None,
        };
        name.filter(|name| !name.is_empty())
    }

    fn module_of(&mut self, kind: IdKind, id: u64) -> Option<String> {
        let module = match kind {
            IdKind::Class => class_info(self.info(), ClassId(id)).ok()?.0,
            _ => ModuleId(self.0.get_function_info2(FunctionId(id), None, 0).ok()?.module),
        };
        module_file(self.info(), module).ok()
    }
}
