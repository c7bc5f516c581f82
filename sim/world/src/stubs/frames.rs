//! Frames, written by single instructions.

use super::Service;
use clr_codegen::{
    CallForm, CallingConvention, FunctionIndex, FunctionShape, Primitive, Statement, Value, Word,
};
use clr_runtime::frame::layout::{self, FrameConvention};
use clr_runtime::generation::Generation;
use clr_runtime::thread::offset;
use clr_runtime::{FrameIdentities, FrameKind};
use clr_unwind::Gpr;

/// `g_TrapReturningThreads`: nonzero while threads that return to managed code have to wait (VA).
pub(crate) const TRAP_RETURNING_THREADS: u64 = 0x1_7200_0000;

/// Maximum size of a Frame in its function's locals, in bytes, including the cookie below the
/// Frame.
const SIZE: u32 = 0x100;
/// Offset of the Frame in these locals: after its cookie.
const BEHIND_COOKIE: u32 = 0x10;
/// Offset of a call's saved result from the Frame: after an InlinedCallFrame.
const RESULT: u32 = 0x80;

/// A writer of Frames.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    generation: Generation,
    identities: FrameIdentities,
    /// The wait for the end of a suspension.
    wait: Statement,
}

pub(super) fn set(word: Word, value: Value) -> Statement {
    Statement::Primitive(Primitive::Set(word, value))
}

pub(super) fn call(function: FunctionIndex) -> Statement {
    Statement::Call(CallForm::Near, function)
}

pub(super) fn call_computed() -> Statement {
    Statement::Primitive(Primitive::CallComputed)
}

pub(super) fn service(service: Service) -> Statement {
    Statement::Primitive(Primitive::Service(service.number()))
}

/// Makes the thread preemptive.
pub(super) fn enable_preemptive_gc() -> Statement {
    Statement::Primitive(Primitive::SetThreadFlag(offset::COOPERATIVE as u32, 0))
}

impl Frames {
    pub(super) fn of(generation: Generation) -> Self {
        let wait = service(Service::RareDisable);
        Self { generation, identities: FrameIdentities::of(generation), wait }
    }

    /// Lets threads wait for the end of a suspension in a function, where a signal can find them.
    pub(super) fn wait_in(&mut self, function: FunctionIndex) {
        self.wait = call(function);
    }

    /// Makes the thread cooperative; it waits if it has to.
    pub(super) fn disable_preemptive_gc(&self) -> [Statement; 4] {
        [
            Statement::Primitive(Primitive::SetThreadFlag(offset::COOPERATIVE as u32, 1)),
            set(Word::Register(Gpr::Rax), Value::Number(TRAP_RETURNING_THREADS)),
            set(Word::Register(Gpr::Rax), Value::At(Gpr::Rax, 0)),
            Statement::Primitive(Primitive::When(vec![self.wait.clone()])),
        ]
    }

    /// Returns the first word of a kind of Frame.
    pub(super) fn word(&self, kind: FrameKind) -> u64 {
        self.identities.word(kind).unwrap_or(0)
    }

    /// Returns the calling convention of the generation's code.
    pub(super) const fn convention(&self) -> CallingConvention {
        if self.generation.is_unix() {
            CallingConvention::SystemV
        } else {
            CallingConvention::WindowsX64
        }
    }

    /// Writes the first words of a Frame: its kind, and the link to the next Frame.
    pub(super) fn begin(&self, at: u32, kind: FrameKind) -> Vec<Statement> {
        vec![
            set(Word::Local(at), Value::Number(self.word(kind))),
            set(Word::Local(at + layout::NEXT as u32), Value::Thread(offset::TOP_FRAME as u32)),
        ]
    }

    /// Makes a Frame the topmost one.
    pub(super) fn link(at: u32) -> Statement {
        set(Word::Thread(offset::TOP_FRAME as u32), Value::LocalAddress(at))
    }

    /// Makes the next Frame the topmost one.
    pub(super) fn unlink(at: u32) -> Statement {
        set(Word::Thread(offset::TOP_FRAME as u32), Value::Local(at + layout::NEXT as u32))
    }

    /// Makes the Frame after the topmost one the topmost.
    pub(super) fn unlink_top() -> [Statement; 2] {
        let top = offset::TOP_FRAME as u32;
        [
            set(Word::Register(Gpr::Rax), Value::Thread(top)),
            set(Word::Thread(top), Value::At(Gpr::Rax, layout::NEXT as i32)),
        ]
    }

    /// Writes and links a Frame that leads nowhere.
    pub(super) fn mark(&self, at: u32, kind: FrameKind) -> Vec<Statement> {
        let mut body = self.begin(at, kind);
        body.push(Self::link(at));
        body
    }

    /// Prepares an InlinedCallFrame, whose call is not active.
    pub(super) fn inlined_call_frame(&self, at: u32, datum: u64) -> Vec<Statement> {
        let fields = self.generation.inlined_call_frame();
        let mut body = self.begin(at, FrameKind::InlinedCall);
        body.extend([
            set(Word::Local(at + fields.return_address as u32), Value::Number(0)),
            set(Word::Local(at + fields.call_site_sp as u32), Value::StackPointer(0)),
            set(Word::Local(at + fields.frame_pointer as u32), Value::Register(Gpr::Rbp)),
            set(Word::Local(at + layout::DATUM as u32), Value::Number(datum)),
        ]);
        body
    }

    /// Returns a call of unmanaged code while the InlinedCallFrame at `at` is linked.
    pub(super) fn call_unmanaged(&self, at: u32, call: Statement) -> Vec<Statement> {
        let fields = self.generation.inlined_call_frame();
        let return_address = Word::Local(at + fields.return_address as u32);
        let mut body = vec![set(return_address, Value::NextReturn), enable_preemptive_gc(), call];
        body.extend(self.disable_preemptive_gc());
        body.push(set(return_address, Value::Number(0)));
        body
    }

    /// Returns an inlined P/Invoke, whose Frame is linked around the call (contract §8.6).
    pub(super) fn inlined_call(&self, at: u32, datum: u64, call: Statement) -> Vec<Statement> {
        let mut body = self.inlined_call_frame(at, datum);
        body.push(Self::link(at));
        body.extend(self.call_unmanaged(at, call));
        body.push(Self::unlink(at));
        body
    }

    /// Returns an inlined P/Invoke whose result is in rax afterwards.
    pub(super) fn inlined_call_for_result(
        &self,
        at: u32,
        datum: u64,
        call: FunctionIndex,
    ) -> Vec<Statement> {
        let kept = Word::Local(at + RESULT);
        let mut body = self.inlined_call(at, datum, self::call(call));
        if let Some(place) = body.iter().position(|statement| *statement == self::call(call)) {
            body.insert(place + 1, set(kept, Value::Register(Gpr::Rax)));
        }
        body.push(set(Word::Register(Gpr::Rax), Value::Local(at + RESULT)));
        body
    }

    /// Writes a HelperMethodFrame that has not been resolved yet; it is captured where it is linked
    /// (contract §8.6).
    pub(super) fn helper_method_frame(
        &self,
        at: u32,
        attributes: u32,
        fcall: Option<FunctionIndex>,
    ) -> Vec<Statement> {
        let FrameConvention { callee_saved, machine_state, .. } =
            FrameConvention::of(self.generation);
        let field = |offset: u64| Word::Local(at + offset as u32);
        let mut body = self.begin(at, FrameKind::HelperMethod);
        let entry = fcall.map_or(Value::Number(0), Value::Function);
        body.extend([
            set(field(layout::HELPER_METHOD), Value::Number(0)),
            set(field(layout::HELPER_ATTRIBUTES), Value::Number(attributes.into())),
            set(field(layout::FCALL_ENTRY), entry),
            set(field(machine_state.return_slot), Value::Number(0)),
        ]);
        for (register, n) in callee_saved.iter().zip(0..) {
            body.push(set(field(machine_state.captured + 8 * n), Value::Register(*register)));
        }
        body.extend([
            set(field(machine_state.captured_rsp), Value::StackPointer(-8)),
            set(field(machine_state.captured_rip), Value::Here),
            Self::link(at),
        ]);
        body
    }

    /// Writes a Frame with a TransitionBlock, whose address is in the first argument's register,
    /// and a method, which is in r10.
    pub(super) fn transition_frame(&self, at: u32, kind: FrameKind) -> Vec<Statement> {
        let block = Value::Register(self.first_argument());
        self.transition_frame_of(at, kind, block, Value::Register(Gpr::R10))
    }

    /// Writes a Frame with a TransitionBlock and a method.
    pub(super) fn transition_frame_of(
        &self,
        at: u32,
        kind: FrameKind,
        block: Value,
        method: Value,
    ) -> Vec<Statement> {
        let field = |offset: u64| Word::Local(at + offset as u32);
        let mut body = self.begin(at, kind);
        body.extend([
            set(field(layout::TRANSITION_BLOCK), block),
            set(field(layout::METHOD), method),
            Self::link(at),
        ]);
        body
    }

    /// Writes the Frame of a call from unmanaged code (contract §3.5).
    pub(super) fn unmanaged_to_managed_frame(&self, at: u32, kind: FrameKind) -> Vec<Statement> {
        let caller = Word::Local(at + layout::UNMANAGED_CALLER as u32);
        let mut body = self.begin(at, kind);
        body.push(set(caller, Value::ReturnAddress));
        body.push(Self::link(at));
        body
    }

    /// Returns `JIT_PInvokeBegin`: it makes the InlinedCallFrame that the first argument's register
    /// points to the active Frame of the caller, as if the current call were the native one
    /// (C-156).
    pub(super) fn begin_p_invoke(&self) -> Vec<Statement> {
        let fields = self.generation.inlined_call_frame();
        let frame = self.first_argument();
        let top = offset::TOP_FRAME as u32;
        let field = |offset: u64| Word::At(frame, offset as i32);
        vec![
            set(field(0), Value::Number(self.word(FrameKind::InlinedCall))),
            set(field(layout::NEXT), Value::Thread(top)),
            set(field(layout::DATUM), Value::Number(0)),
            set(field(fields.call_site_sp), Value::CallerSp),
            set(field(fields.frame_pointer), Value::Register(Gpr::Rbp)),
            set(field(fields.return_address), Value::ReturnAddress),
            set(Word::Thread(top), Value::Register(frame)),
            enable_preemptive_gc(),
        ]
    }

    /// Returns `JIT_PInvokeEnd`: it makes that Frame inactive and unlinks it.
    pub(super) fn end_p_invoke(&self) -> Vec<Statement> {
        let fields = self.generation.inlined_call_frame();
        let frame = self.first_argument();
        let mut body = self.disable_preemptive_gc().to_vec();
        body.push(set(Word::At(frame, fields.return_address as i32), Value::Number(0)));
        let next = Value::At(frame, layout::NEXT as i32);
        body.push(set(Word::Thread(offset::TOP_FRAME as u32), next));
        body
    }

    /// Makes room for a Frame in a shape's locals. Returns the Frame's offset there.
    pub(super) fn reserve(shape: &mut FunctionShape) -> u32 {
        let at = shape.locals.next_multiple_of(16) + BEHIND_COOKIE;
        shape.locals = at + SIZE;
        at
    }

    /// Returns the register of a function's first argument.
    pub(super) const fn first_argument(&self) -> Gpr {
        if self.generation.is_unix() { Gpr::Rdi } else { Gpr::Rcx }
    }

    /// Returns the shape of an assembled stub that saves registers as a TransitionBlock (contract
    /// §3.5).
    pub(super) fn transition_stub(&self) -> FunctionShape {
        let convention = FrameConvention::of(self.generation);
        let mut pushes: Vec<Gpr> = convention.callee_saved.iter().rev().copied().collect();
        if self.generation.is_unix() {
            pushes.extend([Gpr::R9, Gpr::R8, Gpr::Rcx, Gpr::Rdx, Gpr::Rsi, Gpr::Rdi]);
        }
        FunctionShape { pushes, ..FunctionShape::default() }
    }
}

/// Returns the shape of a native function with a Frame in its locals, and the Frame's offset there.
pub(super) fn with_frame() -> (FunctionShape, u32) {
    let shape = FunctionShape {
        pushes: vec![Gpr::Rbx, Gpr::Rbp],
        locals: SIZE + BEHIND_COOKIE,
        ..FunctionShape::default()
    };
    (shape, BEHIND_COOKIE)
}

/// Makes room for an InlinedCallFrame, and makes the prologue save what a method with one saves:
/// all nonvolatile registers (C-099). Returns the Frame's offset in the locals.
pub(super) fn reserve_frame(shape: &mut FunctionShape, convention: CallingConvention) -> u32 {
    let missing: Vec<Gpr> = convention
        .nonvolatile()
        .iter()
        .copied()
        .filter(|register| !shape.saves_register(*register))
        .collect();
    shape.pushes.splice(0..0, missing);
    Frames::reserve(shape)
}
