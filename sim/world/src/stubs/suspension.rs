//! The runtime's code in which threads wait that were stopped in managed code for a GC.

use super::frames::{Frames, call, enable_preemptive_gc, service, set, with_frame};
use super::helpers::plain;
use super::{Plan, RETURN, Service, Shared, leaf, native};
use clr_codegen::{Exit, Function, FunctionShape, Primitive, Statement, TailCallForm, Value, Word};
use clr_runtime::FrameKind;
use clr_runtime::frame::layout::{self, FrameConvention};
use clr_runtime::thread::offset;
use clr_unwind::Gpr;

impl Plan {
    /// Creates `Thread::RareDisablePreemptiveGC`, down to the wait for the end of the suspension:
    /// the functions between it and the C library are left out.
    pub(super) fn rare_disable(&self) -> Function {
        let body = vec![call(self.helper(Shared::ConditionWait))];
        native(Shared::RareDisable, plain(), body, RETURN)
    }

    /// Creates `RedirectedHandledJITCase`: its first argument is the CONTEXT of the interrupted
    /// code.
    pub(super) fn redirected_handled_jit_case(&self) -> Function {
        let (shape, at) = with_frame();
        let mut body = self.frames.begin(at, FrameKind::RedirectedThread);
        let context = Value::Register(self.frames.first_argument());
        body.push(set(Word::Local(at + layout::REGS as u32), context));
        body.push(Frames::link(at));
        body.push(enable_preemptive_gc());
        body.extend(self.frames.disable_preemptive_gc());
        body.push(Frames::unlink(at));
        body.push(service(Service::RestoreContext));
        native(Shared::RedirectedHandledJitCase, shape, body, RETURN)
    }

    /// Creates `OnHijackTripThread`, the target of a hijacked return. The return has removed the
    /// return address from the stack: the function makes room for it by pushing the return value of
    /// the interrupted function, which stays there until `OnHijackWorker` has written the address
    /// (H-32; vm/amd64/unixasmhelpers.S and vm/amd64/AsmHelpers.asm of CoreCLR 3.1.23).
    pub(super) fn on_hijack_trip_thread(&self) -> Function {
        let mut body = Vec::new();
        if self.generation.hijack_args().rsp.is_some() {
            body.push(set(Word::Register(Gpr::Rdx), Value::Register(Gpr::Rsp)));
        }
        body.push(Statement::Primitive(Primitive::PushReturnSlot(Gpr::Rax)));
        let end = Exit::TailCall(TailCallForm::Near, self.helper(Shared::OnHijackSave));
        native(Shared::OnHijackTripThread, leaf(), body, end)
    }

    /// Creates the code that saves the registers as HijackArgs (contract §3.5).
    pub(super) fn on_hijack_save(&self) -> Function {
        let convention = FrameConvention::of(self.generation);
        let layout = self.generation.hijack_args();
        // Where rsp is stored, OnHijackTripThread has copied it.
        let mut pushes: Vec<Gpr> = layout.rsp.map(|_| Gpr::Rdx).into_iter().collect();
        pushes.extend(convention.callee_saved.iter().rev());
        // The registers of return values: rax is at the lowest address.
        let returned: &[Gpr] = match (self.generation.is_unix(), layout.registers) {
            (true, 0x18) => &[Gpr::Rcx, Gpr::Rdx],
            (true, _) => &[Gpr::Rdx],
            (false, 0x10) => &[Gpr::Rcx],
            (false, _) => &[],
        };
        pushes.extend(returned);
        pushes.push(Gpr::Rax);
        let shape = FunctionShape { pushes, ..FunctionShape::default() };
        let rax = Word::Register(Gpr::Rax);
        let body = vec![
            set(Word::Register(self.frames.first_argument()), Value::Pushed),
            call(self.helper(Shared::OnHijackWorker)),
            // The return value of the interrupted function.
            set(rax, Value::Pushed),
            set(rax, Value::At(Gpr::Rax, 0)),
        ];
        native(Shared::OnHijackSave, shape, body, RETURN)
    }

    pub(super) fn on_hijack_worker(&self) -> Function {
        let (shape, at) = with_frame();
        let field = |offset: u64| Word::Local(at + offset as u32);
        let slot = self.generation.hijack_args().return_address as i32;
        let slot = Word::At(self.frames.first_argument(), slot);
        let args = Value::Register(self.frames.first_argument());
        let mut body = vec![
            Statement::Primitive(Primitive::SetThreadFlag(offset::STATE as u32, 0)),
            set(slot, Value::Thread(offset::HIJACKED_ADDRESS as u32)),
        ];
        body.extend(self.frames.begin(at, FrameKind::Hijack));
        body.extend([
            set(field(layout::RETURN_ADDRESS), Value::Thread(offset::HIJACKED_ADDRESS as u32)),
            set(field(layout::HIJACK_ARGS), args),
            Frames::link(at),
            enable_preemptive_gc(),
        ]);
        body.extend(self.frames.disable_preemptive_gc());
        body.push(Frames::unlink(at));
        native(Shared::OnHijackWorker, shape, body, RETURN)
    }
}
