//! Requests of a ReJIT. The locks that they take are not simulated, nor the suspension of the runtime by CoreCLR 3.1.

use super::Caller;
use super::info::Result;
use crate::TargetMemory;
use clr_walker::profiling::FunctionId;

impl<M: TargetMemory> Caller<'_, '_, M> {
    /// Requests that the next calls of these methods compile them again, after the checks of RequestReJIT. The thread is one of
    /// the runtime from then on (`SetupThreadForReJIT` of src/vm/proftoeeinterfaceimpl.cpp of CoreCLR 3.1).
    ///
    /// # Errors
    /// Returns an [`Outcome`](crate::Outcome) that is no return.
    pub fn request_rejit(&self, functions: &[FunctionId]) -> Result<()> {
        self.attach()?;
        let was_cooperative = self.set_cooperative(false)?;
        let mut versions = self.runtime.code.il_versions.borrow_mut();
        for function in functions {
            versions.request(*function);
        }
        drop(versions);
        self.set_cooperative(was_cooperative)?;
        Ok(())
    }

    /// Requests that the next calls of these methods execute what they were before all requests, in the same way.
    ///
    /// # Errors
    /// The same.
    pub fn request_revert(&self, functions: &[FunctionId]) -> Result<()> {
        self.attach()?;
        let mut versions = self.runtime.code.il_versions.borrow_mut();
        for function in functions {
            versions.revert(*function);
        }
        Ok(())
    }
}
