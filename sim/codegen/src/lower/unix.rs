//! Lowering of constructs that compilers, linkers and the kernel use only in native code on Unix.

use super::super::cfi::{Cfa, Row, Rowed, Rule};
use super::super::marks::Role;
use super::super::program::{CallForm, CodeKind, Exit, FunctionIndex, Statement};
use super::super::shape::{CallingConvention, EntryForm, FrameSet, Realign, Release, Wrap};
use super::stream::{Label, Place};
use super::{Frame, Lowering};
use clr_unwind::Gpr;
use iced_x86::{Code, IcedError, Register};

/// Code that belongs to no function.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Helper {
    pub kind: HelperKind,
    /// First instruction, and the one after the last.
    pub begin: u32,
    pub end: u32,
}

/// The kinds of helpers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum HelperKind {
    /// The language-specific handler.
    Personality,
    /// The procedure linkage table.
    Plt,
    /// The code that looks up a function for the procedure linkage table.
    Resolver,
    /// The return address of signal handlers is the second instruction of this code.
    SignalTrampoline,
}

impl HelperKind {
    /// Returns the name of the helper.
    pub(in super::super) const fn name(self) -> &'static str {
        match self {
            Self::Personality => "__gxx_personality_v0",
            Self::Plt => "plt",
            Self::Resolver => "_dl_runtime_resolve",
            Self::SignalTrampoline => "__restore_rt",
        }
    }

    /// Returns the symbol of the helper if linkers emit one.
    pub(in super::super) fn symbol(self) -> Option<&'static str> {
        (self != Self::Plt).then(|| self.name())
    }
}

/// An entry of the procedure linkage table.
#[derive(Clone, Copy, Debug)]
pub(super) struct PltEntry {
    pub function: FunctionIndex,
    pub label: Label,
    /// First instruction.
    pub begin: u32,
    /// The instruction that the slot points to initially.
    lazy: u32,
}

/// Number of slots before those of the entries.
const RESERVED: u32 = 2;

/// Returns the instructions whose addresses the table's slots hold.
pub(super) fn plt_slots(plt: &[PltEntry], helpers: &[Helper]) -> Vec<u32> {
    let resolver = helpers.iter().find(|helper| helper.kind == HelperKind::Resolver);
    let Some(resolver) = resolver else { return Vec::new() };
    // The reserved slots are for the loader's own use.
    let reserved = [resolver.begin, resolver.begin];
    reserved.into_iter().chain(plt.iter().map(|entry| entry.lazy)).collect()
}

/// The labels of a function that has code without a frame.
pub(super) enum Wrapped {
    Not,
    /// Label of the code after the epilogue.
    Tail(Label),
    /// Label of the code placed separately, label of the place that it jumps back to, and the row
    /// there.
    Apart(Label, Label, Box<Rowed>),
}

impl Lowering<'_> {
    fn is_unix(&self) -> bool {
        self.kind == CodeKind::Native && self.program.convention == CallingConvention::SystemV
    }

    pub(super) fn helper(&mut self, kind: HelperKind, begin: u32) {
        let end = self.stream.here();
        self.helpers.push(Helper { kind, begin, end });
    }

    /// Writes the code before the prologue.
    pub(super) fn before_wrapped(&mut self, frame: &Frame<'_>) -> Result<Wrapped, IcedError> {
        self.note(frame, Role::Prologue);
        match frame.shape().wrap {
            Wrap::Whole => Ok(Wrapped::Not),
            Wrap::Inside => {
                let tail = self.stream.label();
                self.stream.filler()?;
                self.stream.registers(Code::Test_rm64_r64, Register::RSP, Register::RSP)?;
                self.stream.branch(Code::Je_rel32_64, tail)?;
                Ok(Wrapped::Tail(tail))
            }
            Wrap::Apart => {
                let (apart, back) = (self.stream.label(), self.stream.label());
                self.stream.registers(Code::Test_rm64_r64, Register::RSP, Register::RSP)?;
                self.stream.branch(Code::Jne_rel32_64, apart)?;
                self.stream.bind(back);
                let row = self.rows.remember(self.stream.here());
                Ok(Wrapped::Apart(apart, back, Box::new(row)))
            }
        }
    }

    pub(super) fn last_epilogue(
        &mut self,
        frame: &Frame<'_>,
        exit: Exit,
        wrapped: &Wrapped,
    ) -> Result<(), IcedError> {
        match wrapped {
            Wrapped::Tail(tail) => self.epilogue_before(frame, exit, Some(*tail)),
            Wrapped::Not | Wrapped::Apart(..) => self.epilogue(frame, exit),
        }
    }

    /// Writes the code after the last epilogue.
    pub(super) fn behind_wrapped(
        &mut self,
        frame: &Frame<'_>,
        wrapped: Wrapped,
    ) -> Result<(), IcedError> {
        match wrapped {
            Wrapped::Tail(tail) if self.stream.index_of(tail).is_none() => {
                // There is no epilogue before the tail.
                self.rows.begin(self.stream.here(), Row::at_entry(EntryForm::Call));
                self.stream.bind(tail);
                self.stream.plain(Code::Int3);
            }
            Wrapped::Not | Wrapped::Tail(_) => {}
            Wrapped::Apart(apart, back, row) => {
                self.note(frame, Role::Prologue);
                self.rows.restore(self.stream.here(), &row);
                self.stream.bind(apart);
                self.stream.filler()?;
                self.stream.branch(Code::Jmp_rel32_64, back)?;
            }
        }
        Ok(())
    }

    /// Writes `lea r10, [rsp + 8]; and rsp, -n; push [r10 - 8]`, as gcc does.
    pub(super) fn realign(&mut self, frame: &Frame<'_>) -> Result<(), IcedError> {
        let Some(bytes) = frame.shape().realign.bytes() else { return Ok(()) };
        self.stream.lea(Gpr::R10, Place::At(Gpr::Rsp, 8))?;
        self.row(|row| row.cfa = Cfa::Above(Gpr::R10, 0));
        self.stream.immediate(Code::And_rm64_imm8, Register::RSP, -i32::from(bytes))?;
        self.stream.through(Code::Push_rm64, Place::At(Gpr::R10, -8))
    }

    /// Pushes a register, after which the frame register may be set.
    pub(super) fn pushed(
        &mut self,
        frame: &Frame<'_>,
        register: Gpr,
        kept: bool,
    ) -> Result<(), IcedError> {
        let shape = frame.shape();
        let set = shape.frame.filter(|frame| frame.register == register);
        let sets = set.is_some_and(|frame| frame.set == FrameSet::BehindPush);
        if shape.realign == Realign::No {
            self.row(|row| row.pushed(register, kept));
        } else if kept && !sets {
            let place = shape.pushes.iter().position(|push| *push == register).unwrap_or(0);
            let rule = Rule::By(Gpr::Rbp, below(place));
            self.row(|row| row.set(register, rule));
        }
        if sets { self.set_frame(frame, FrameSet::BehindPush) } else { Ok(()) }
    }

    /// Restores by mov the registers pushed after rbp, since `leave` releases their slots. Returns
    /// the number of these pushes.
    pub(super) fn restore_left_pushes(&mut self, frame: &Frame<'_>) -> Result<usize, IcedError> {
        let shape = frame.shape();
        let leaves_some = shape.release == Release::Leave
            && shape.frame.is_some_and(|frame| frame.set == FrameSet::BehindPush);
        if !leaves_some {
            return Ok(0);
        }
        let behind = shape.pushes_behind_frame() as usize;
        let first = shape.pushes.len() - behind;
        for (register, number) in shape.pushes.iter().skip(first).zip(1..) {
            if self.program.convention.is_nonvolatile(*register) {
                self.stream.load(*register, Place::At(Gpr::Rbp, -8 * number))?;
                self.row(|row| row.set(*register, Rule::Same));
            }
        }
        Ok(behind)
    }

    /// Pushes r10 after the other registers, so that the body can find the CFA.
    pub(super) fn push_caller(&mut self, frame: &Frame<'_>) -> Result<(), IcedError> {
        if frame.shape().realign == Realign::No {
            return Ok(());
        }
        self.stream.push(Gpr::R10)?;
        let at = below(frame.shape().pushes.len());
        self.row(|row| row.cfa = Cfa::Word(Gpr::Rbp, at));
        Ok(())
    }

    pub(super) fn pop_caller(&mut self, frame: &Frame<'_>) -> Result<(), IcedError> {
        if frame.shape().realign == Realign::No {
            return Ok(());
        }
        self.stream.pop(Gpr::R10)?;
        self.row(|row| row.cfa = Cfa::Above(Gpr::R10, 0));
        Ok(())
    }

    pub(super) fn undo_realignment(&mut self, frame: &Frame<'_>) -> Result<(), IcedError> {
        if frame.shape().realign == Realign::No {
            return Ok(());
        }
        self.stream.lea(Gpr::Rsp, Place::At(Gpr::R10, -8))?;
        self.row(|row| {
            row.cfa = Cfa::Above(Gpr::Rsp, 8);
            row.rsp = 8;
        });
        Ok(())
    }

    pub(super) fn push_arguments(&mut self, frame: &Frame<'_>) -> Result<(), IcedError> {
        for _ in 0..frame.shape().arguments {
            self.stream.push(Gpr::Rax)?;
            self.row(|row| row.passed(8));
        }
        Ok(())
    }

    pub(super) fn give_arguments_back(&mut self, frame: &Frame<'_>) -> Result<(), IcedError> {
        let bytes = 8 * i32::from(frame.shape().arguments);
        if bytes > 0 {
            self.note(frame, Role::Body);
            self.stream.add_rsp(bytes.cast_unsigned(), false)?;
            self.row(|row| row.passed(-bytes));
        }
        Ok(())
    }

    /// Returns the functions that are called through the procedure linkage table, ascending.
    fn linked_functions(&self) -> Vec<FunctionIndex> {
        let mut functions = Vec::new();
        if self.is_unix() {
            let native = self.program.functions.iter().filter(|f| f.kind == CodeKind::Native);
            for statement in native.flat_map(|function| &function.body) {
                collect(statement, &mut functions);
            }
        }
        functions.sort_unstable();
        functions.dedup();
        functions
    }

    /// Writes the table at the beginning of the code. Its first entry jumps to the resolver, and
    /// every entry has 16 bytes, which its CFI relies on.
    pub(super) fn procedure_linkage_table(&mut self) -> Result<(), IcedError> {
        const ENTRY: i32 = 16;
        let functions = self.linked_functions();
        if functions.is_empty() {
            return Ok(());
        }
        self.stream.now = None;
        let begin = self.stream.here();
        let mut row = Row::at_entry(EntryForm::Call);
        row.moved(8);
        self.rows.begin(begin, row);
        self.stream.through(Code::Push_rm64, Place::Absolute(self.cells.plt(0)))?;
        self.row(|row| row.moved(8));
        self.stream.through(Code::Jmp_rm64, Place::Absolute(self.cells.plt(1)))?;
        self.stream.bytes(&[0x0F, 0x1F, 0x40, 0])?;
        self.row(|row| row.cfa = Cfa::Plt);
        for (number, function) in (0..).zip(functions) {
            let label = self.stream.label();
            self.stream.bind(label);
            let begin = self.stream.here();
            let slot = Place::Absolute(self.cells.plt(RESERVED + number));
            self.stream.through(Code::Jmp_rm64, slot)?;
            let lazy = self.stream.here();
            self.plt.push(PltEntry { function, label, begin, lazy });
            let [a, b, c, d] = (8 * function.0).to_le_bytes();
            self.stream.bytes(&[0x68, a, b, c, d])?;
            let to_begin = -ENTRY * (number.cast_signed() + 2);
            let [a, b, c, d] = to_begin.to_le_bytes();
            self.stream.bytes(&[0xE9, a, b, c, d])?;
        }
        self.helper(HelperKind::Plt, begin);
        self.resolver()
    }

    /// Writes the code that looks up a function. Real resolvers are written by hand, as they must
    /// keep all registers that pass arguments. The stack holds the loader's word, the offset of the
    /// function's cell, and the return address.
    fn resolver(&mut self) -> Result<(), IcedError> {
        let begin = self.stream.here();
        let mut row = Row::at_entry(EntryForm::Call);
        row.moved(16);
        self.rows.begin(begin, row);
        self.stream.mov(Gpr::R11, Gpr::Rbp)?;
        self.row(|row| row.set(Gpr::Rbp, Rule::In(Gpr::R11)));
        self.stream.lea(Gpr::Rbp, Place::Absolute(self.cells.function(FunctionIndex(0))))?;
        self.stream.push(Gpr::Rbx)?;
        self.row(|row| row.pushed(Gpr::Rbx, true));
        self.stream.mov(Gpr::Rbx, Gpr::Rsp)?;
        self.row(|row| row.framed(Gpr::Rbx, 0));
        self.stream.immediate(Code::And_rm64_imm8, Register::RSP, -64)?;
        self.stream.sub_rsp(0x40, false)?;
        self.stream.store(Place::At(Gpr::Rsp, 0), Gpr::Rax)?;
        self.stream.load(Gpr::R10, Place::At(Gpr::Rbx, 16))?;
        self.stream.load(Gpr::R10, Place::Sum(Gpr::Rbp, Gpr::R10))?;
        self.stream.mov(Gpr::Rbp, Gpr::R11)?;
        self.row(|row| row.set(Gpr::Rbp, Rule::Same));
        self.stream.mov(Gpr::Rsp, Gpr::Rbx)?;
        self.stream.pop(Gpr::Rbx)?;
        self.row(|row| row.popped(Gpr::Rbx));
        self.stream.add_rsp(16, false)?;
        self.row(|row| row.moved(-16));
        self.stream.jump_to(Gpr::R10)?;
        self.helper(HelperKind::Resolver, begin);
        Ok(())
    }

    /// Writes the trampoline that signal handlers return to. Its FDE begins one byte early, since
    /// unwinders look up a return address minus 1.
    pub(super) fn signal_trampoline(&mut self) -> Result<(), IcedError> {
        const RT_SIGRETURN: u32 = 15;
        let signals = self.program.functions.iter().any(|f| f.shape.entry == EntryForm::Signal);
        if !signals || !self.is_unix() {
            return Ok(());
        }
        let begin = self.stream.here();
        self.rows.begin(begin, Row::of_signal());
        self.stream.plain(Code::Nopd);
        self.stream.mov_imm32(Gpr::Rax, RT_SIGRETURN)?;
        self.stream.plain(Code::Syscall);
        self.helper(HelperKind::SignalTrampoline, begin);
        Ok(())
    }
}

/// Returns the offset from rbp of the push with this number after the push of rbp.
fn below(number: usize) -> i32 {
    -8 * i32::from(number as u8)
}

fn collect(statement: &Statement, functions: &mut Vec<FunctionIndex>) {
    if let Statement::Call(CallForm::Plt, callee) = statement {
        functions.push(*callee);
    }
    for inner in statement.bodies().flatten() {
        collect(inner, functions);
    }
}
