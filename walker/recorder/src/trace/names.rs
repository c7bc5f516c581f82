//! Names, as the runtime says them.

use clr_com::{AssemblyId, ClassId, ICorProfilerInfo2, ModuleId, RuntimeInfo, Token};
use clr_sampler::names::{class_name, metadata, name, succeeded, text};
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

    fn class_module(&self, class: ClassId) -> Option<(ModuleId, Token)> {
        let (mut module, mut token) = (ModuleId(0), 0);
        // SAFETY: the pointers are to locals, or NULL where the result is not wanted.
        let result = unsafe {
            let (module, token) = (&raw mut module, &raw mut token);
            self.info().GetClassIDInfo2(class, module, token, null_mut(), 0, null_mut(), null_mut())
        };
        succeeded(result).ok().map(|()| (module, token))
    }

    fn class(&self, class: ClassId) -> Option<String> {
        let (module, token) = self.class_module(class)?;
        class_name(&metadata(self.info(), module).ok()?, token).ok()
    }

    fn module(&self, module: ModuleId) -> Option<String> {
        let (_, path) = self.0.get_module_info(module).ok()?;
        path.rsplit(['/', '\\']).next().map(str::to_owned)
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
            IdKind::Module => self.module(ModuleId(id)),
            IdKind::AppDomain | IdKind::Thread | IdKind::OsThread => None,
        };
        name.filter(|name| !name.is_empty())
    }

    fn module_of(&mut self, kind: IdKind, id: u64) -> Option<String> {
        let module = match kind {
            IdKind::Class => self.class_module(ClassId(id))?.0,
            _ => ModuleId(self.0.get_function_info2(FunctionId(id), None, 0).ok()?.module),
        };
        self.module(module)
    }
}
