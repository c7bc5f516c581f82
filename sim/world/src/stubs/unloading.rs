//! The runtime's code that frees code.

use super::frames::{call, enable_preemptive_gc, service, set};
use super::helpers::{ARGUMENT, plain};
use super::{Plan, RETURN, Service, Shared, method_id, native};
use clr_codegen::{Function, FunctionIndex, Primitive, Statement, Value, Word};
use clr_unwind::Gpr;

/// Copies a helper's argument to the register in which services look for it.
fn keep_argument() -> Statement {
    set(Word::Register(Gpr::Rbx), Value::Register(ARGUMENT))
}

impl Plan {
    /// Chooses the QCall of newer runtimes, or the FCall of older ones.
    pub(super) const fn qcall_or(&self, qcall: Shared, otherwise: Shared) -> Shared {
        if self.generation.frees_by_qcalls() { qcall } else { otherwise }
    }

    /// Returns the statements of a method that has something unloaded.
    pub(super) fn unloading(
        &self,
        target: Option<FunctionIndex>,
        by: Vec<Statement>,
    ) -> Vec<Statement> {
        let method = target.map_or(0, |target| method_id(self.place(target)));
        let argument = set(Word::Register(ARGUMENT), Value::Number(method));
        [argument].into_iter().chain(by).collect()
    }

    /// Creates a helper that performs a service in cooperative mode: an FCall with a Frame, or the
    /// unmanaged side of a QCall.
    pub(super) fn cooperative_helper(&self, shared: Shared, what: Service) -> Function {
        if !self.generation.frees_by_qcalls() {
            return self.with_helper_frame(shared, vec![keep_argument(), service(what)]);
        }
        let mut body = vec![keep_argument()];
        body.extend(self.frames.disable_preemptive_gc());
        body.push(service(what));
        body.push(enable_preemptive_gc());
        native(shared, plain(), body, RETURN)
    }

    /// Creates the unmanaged side of the QCall that unloads an assembly: the code is freed while
    /// all other threads are stopped.
    pub(super) fn loader_allocator_destroy(&self) -> Function {
        let free = vec![call(self.helper(Shared::DeleteCodeHeap)), service(Service::Unloaded)];
        let body = vec![
            keep_argument(),
            service(Service::Unload),
            Statement::Primitive(Primitive::When(free)),
        ];
        native(Shared::LoaderAllocatorDestroy, plain(), body, RETURN)
    }
}

/// Changes the code manager's tables under the writer lock (contract §2.6), and performs these
/// services meanwhile.
pub(super) fn writing(shared: Shared, what: &[Service]) -> Function {
    let mut body = vec![service(Service::BeginWrite), Statement::Work(4)];
    body.extend(what.iter().map(|what| service(*what)));
    body.extend([Statement::Work(2), service(Service::EndWrite)]);
    native(shared, plain(), body, RETURN)
}
