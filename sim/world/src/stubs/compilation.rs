//! The runtime's code that compiles methods.

use super::frames::{call, enable_preemptive_gc, service, set};
use super::helpers::plain;
use super::{Plan, RETURN, Service, Shared, native};
use clr_codegen::{Function, Primitive, Statement, Value, Word};
use clr_unwind::Gpr;

/// Reports the code of a method to the code manager, if a service has compiled one.
fn compiling(by: Service) -> [Statement; 2] {
    let reports = vec![service(Service::Compiled)];
    [service(by), Statement::Primitive(Primitive::When(reports))]
}

impl Plan {
    /// Creates a function that compiles methods, or has them compiled; returns `None` for any other one.
    pub(super) fn function_of_compilation(&self, shared: Shared) -> Option<Function> {
        Some(match shared {
            Shared::Jit => Self::jit(),
            Shared::TierUp => self.preemptive_helper(shared, Service::TierUp),
            Shared::TieringThread => self.tiering_thread(),
            Shared::Patchpoint | Shared::PatchpointWorker => self.patchpoint(shared),
            _ => return None,
        })
    }

    /// Compiles a method. Its code is added to the code manager without the lock of its tables:
    /// ranges have a lock of their own, which no look-up takes (contract §2.6).
    fn jit() -> Function {
        native(Shared::Jit, plain(), compiling(Service::Compile).to_vec(), RETURN)
    }

    /// Creates the first function of a thread of tiered compilation, which stays preemptive.
    fn tiering_thread(&self) -> Function {
        let compile =
            vec![call(self.helper(Shared::Jit)), set(Word::Register(Gpr::Rax), Value::Number(1))];
        let serve =
            vec![service(Service::ServeTiers), Statement::Primitive(Primitive::When(compile))];
        let body = vec![Statement::Primitive(Primitive::Repeat(serve))];
        native(Shared::TieringThread, plain(), body, RETURN)
    }

    /// Creates the helper that code calls whose loop has run long, or its worker: it compiles the method again. Its Frame is
    /// assumed: recorded walks show the frames alone.
    fn patchpoint(&self, shared: Shared) -> Function {
        let mut body = vec![enable_preemptive_gc()];
        body.extend(compiling(Service::ReplaceOnStack));
        body.extend(self.frames.disable_preemptive_gc());
        self.gc_helper(shared, [Shared::Patchpoint, Shared::PatchpointWorker], body)
    }
}
