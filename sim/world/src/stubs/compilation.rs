//! The runtime's code that compiles methods.

use super::frames::{Frames, call, enable_preemptive_gc, service, set, with_frame};
use super::helpers::plain;
use super::{Plan, RETURN, Service, Shared, method_id, native};
use clr_codegen::{Function, FunctionIndex, Primitive, Statement, Value, Word};
use clr_runtime::FrameKind;
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
            Shared::Patchpoint => self.patchpoint(),
            Shared::PatchpointWorker => self.patchpoint_worker(),
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

    /// Creates the helper that code calls whose loop has run long: it compiles the method again.
    fn patchpoint(&self) -> Function {
        if self.generation.has_helper_method_frames() {
            return self.with_helper_frame(Shared::Patchpoint, self.replacing_on_stack());
        }
        let shape = self.frames.transition_stub();
        let body = vec![
            set(Word::Register(self.frames.first_argument()), Value::Pushed),
            set(Word::Register(Gpr::R10), Value::Number(0)),
            call(self.helper(Shared::PatchpointWorker)),
        ];
        native(Shared::Patchpoint, shape, body, RETURN)
    }

    fn patchpoint_worker(&self) -> Function {
        let (shape, at) = with_frame();
        let mut body = self.frames.transition_frame(at, FrameKind::DynamicHelper);
        body.extend(self.replacing_on_stack());
        body.push(Frames::unlink(at));
        native(Shared::PatchpointWorker, shape, body, RETURN)
    }

    fn replacing_on_stack(&self) -> Vec<Statement> {
        let mut body = vec![enable_preemptive_gc()];
        body.extend(compiling(Service::ReplaceOnStack));
        body.extend(self.frames.disable_preemptive_gc());
        body
    }

    /// Loads an assembly or a class of a method, by a call of the runtime. Without a method nothing is named.
    pub(super) fn loading(
        &self,
        target: Option<FunctionIndex>,
        load: Vec<Statement>,
    ) -> Vec<Statement> {
        let method = target.map_or(0, |target| method_id(self.place(target)));
        let named = set(Word::Register(Gpr::R10), Value::Number(method));
        let named = self.names_loads.then_some(named);
        named.into_iter().chain(load).collect()
    }
}
