//! Callbacks of ReJIT.

use super::Raised;
use crate::function_control::FunctionControl;
use crate::inner::Inner;
use crate::process::Process;
use crate::target::Target;
use clr_com::{ICorProfilerFunctionControl, Interface, ModuleId, Token};
use clr_runtime::profiling::CallbackKind as Kind;
use clr_walker::profiling::{FunctionId, HResult, ReJitId};

impl Target {
    /// Returns true if the object has `ICorProfilerCallback4`.
    pub(crate) const fn has_fourth(&self) -> bool {
        self.fourth.is_some()
    }

    /// Makes a callback of ReJIT.
    pub(super) fn raise_of_rejit(
        &self,
        inner: &Inner,
        raised: &Raised<'_>,
        stage: &Process,
    ) -> bool {
        let Some(to) = &self.fourth else { return false };
        let (code, function) = (&stage.runtime().code, raised.arguments.function);
        let Some((_, method)) = code.method(function) else { return false };
        let rejit = code.il_versions.borrow().compiled(function).last().unwrap_or(ReJitId(0));
        let (module, token) = (ModuleId(method.module), method.token);
        let call = |act: &mut dyn FnMut() -> HResult| raised.call(inner, act);
        // SAFETY: the profiler's object, which there is a reference to; the control is the runtime's.
        unsafe {
            match raised.kind {
                Kind::GetReJITParameters => {
                    let control = FunctionControl::make(inner);
                    call(&mut || to.GetReJITParameters(module, token, control));
                    drop(ICorProfilerFunctionControl::from_raw(control));
                }
                Kind::ReJITCompilationStarted => {
                    call(&mut || to.ReJITCompilationStarted(function, rejit, 1));
                }
                Kind::ReJITCompilationFinished => {
                    call(&mut || to.ReJITCompilationFinished(function, rejit, HResult::OK, 1));
                }
                _ => return false,
            }
        }
        true
    }
}

impl Inner {
    /// Reports a method of a request that cannot be compiled again, on the thread that requests it (recorded).
    pub(crate) fn rejit_error(&self, (module, method): (ModuleId, Token), result: HResult) {
        // It has the rules of the callbacks around it.
        self.call_back((Kind::GetReJITParameters, "ReJITError"), |target| {
            let Some(to) = &target.fourth else { return HResult::OK };
            // SAFETY: the profiler's object, which there is a reference to.
            unsafe { to.ReJITError(module, method, FunctionId(0), result) }
        });
    }
}
