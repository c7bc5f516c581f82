//! Lowering of prologues.

use super::super::cfi::Rule;
use super::super::marks::{Role, WindowsMistake};
use super::super::shape::{Allocation, EntryForm, FrameSet, Realign, Release};
use super::super::unwind_info::Operation;
use super::stream::{Note, Place, Stream};
use super::{Frame, Lowering, save, saved};
use clr_unwind::Gpr;
use iced_x86::{Code, IcedError, Register};

/// An operation that has been performed when instruction `before` is next to execute.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Described {
    pub before: u32,
    pub operation: Operation,
}

/// Distance between stack probes in bytes.
const PAGE: u32 = 0x1000;

/// Maximum number of pages that are probed with one instruction each.
const SINGLE_PROBES: u32 = 2;

/// Maximum number of instructions that are scheduled into a prologue.
const FILLERS: u32 = 8;

impl Lowering<'_> {
    pub(super) fn prologue(&mut self, frame: &Frame<'_>) -> Result<(), IcedError> {
        let shape = frame.shape();
        let layout = &frame.layout;
        self.note(frame, Role::Prologue);
        if shape.entry.has_machine_frame() {
            let error_code = shape.entry == EntryForm::InterruptWithErrorCode;
            self.describe(frame, Operation::MachineFrame(error_code));
        }
        let mut fillers = if shape.scheduled { FILLERS } else { 0 };
        let mut homes = Vec::new();
        for (slot, register) in (0..).zip(shape.home) {
            let Some(register) = register else { continue };
            self.stream.store(Place::At(Gpr::Rsp, 8 + 8 * i64::from(slot)), register)?;
            if self.program.convention.is_nonvolatile(register) {
                homes.push(save(layout, shape, register, layout.home(slot)));
            }
            self.schedule(&mut fillers)?;
        }
        self.realign(frame)?;
        for register in shape.all_pushes(self.program.convention) {
            self.stream.push(register)?;
            let kept =
                self.program.convention.is_nonvolatile(register) || shape.entry.has_machine_frame();
            let operation = if kept { Operation::Push(register) } else { Operation::Allocate(8) };
            self.describe(frame, operation);
            self.pushed(frame, register, kept)?;
            // An interrupted function needs its registers unchanged, so they are pushed first.
            if !shape.entry.has_machine_frame() {
                self.schedule(&mut fillers)?;
            }
        }
        self.push_caller(frame)?;
        let behind_pushes = self.parts[frame.part].described.len();
        self.set_frame(frame, FrameSet::BeforeAllocation)?;
        self.allocate(frame, layout.allocation, shape.allocation)?;
        self.set_frame(frame, FrameSet::AfterAllocation)?;
        for &(register, at) in &layout.saves {
            self.schedule(&mut fillers)?;
            self.stream.store(Place::At(Gpr::Rsp, i64::from(at)), register)?;
            self.describe(frame, save(layout, shape, register, at));
            self.row(|row| row.set(register, saved(layout, shape, at)));
        }
        for &(n, at) in &layout.xmm_saves {
            self.stream.store_xmm(Place::At(Gpr::Rsp, i64::from(at)), n)?;
            self.describe(frame, Operation::SaveXmm(n, at));
        }
        self.set_frame(frame, FrameSet::AfterSaves)?;
        let end = self.stream.here();
        let part = &mut self.parts[frame.part];
        part.prologue_end = end;
        // Offsets of home slots count from the value of rsp at the end of the prologue, and until
        // then their registers are unchanged. MSVC lists these saves as the last operations,
        // assemblers at their position.
        let msvc = shape.release == Release::R11;
        let place = if msvc { part.described.len() } else { behind_pushes };
        let homes = homes.into_iter().map(|operation| Described { before: end, operation });
        part.described.splice(place..place, homes);
        part.described.sort_by_key(|described| described.before);
        Ok(())
    }

    pub(super) fn funclet_prologue(
        &mut self,
        frame: &Frame<'_>,
        allocation: u32,
    ) -> Result<(), IcedError> {
        self.note(frame, Role::Prologue);
        for register in frame.shape().all_pushes(self.program.convention) {
            self.stream.push(register)?;
            let kept = self.program.convention.is_nonvolatile(register);
            let operation = if kept { Operation::Push(register) } else { Operation::Allocate(8) };
            self.describe(frame, operation);
            self.row(|row| row.pushed(register, kept));
        }
        self.stream.sub_rsp(allocation, false)?;
        self.describe(frame, Operation::Allocate(allocation));
        self.row(|row| row.moved(allocation.cast_signed()));
        self.parts[frame.part].prologue_end = self.stream.here();
        Ok(())
    }

    /// Records that the instructions so far have performed this operation.
    pub(super) fn describe(&mut self, frame: &Frame<'_>, operation: Operation) {
        let before = self.stream.here();
        self.parts[frame.part].described.push(Described { before, operation });
    }

    fn schedule(&mut self, left: &mut u32) -> Result<(), IcedError> {
        if *left > 0 {
            *left -= 1;
            self.stream.filler()?;
        }
        Ok(())
    }

    pub(super) fn set_frame(&mut self, frame: &Frame<'_>, now: FrameSet) -> Result<(), IcedError> {
        let Some(register) = frame.shape().frame.filter(|register| register.set == now) else {
            return Ok(());
        };
        match register.offset {
            0 => self.stream.mov(register.register, Gpr::Rsp)?,
            offset => {
                let place = Place::At(Gpr::Rsp, 16 * i64::from(offset));
                self.stream.lea(register.register, place)?;
            }
        }
        if register.described {
            self.describe(frame, Operation::SetFrame);
            let realigned = frame.shape().realign != Realign::No;
            self.row(|row| {
                if realigned {
                    // r10 holds the CFA.
                    row.set(register.register, Rule::By(register.register, 0));
                } else {
                    row.framed(register.register, 16 * i32::from(register.offset));
                }
            });
        }
        Ok(())
    }

    fn allocate(
        &mut self,
        frame: &Frame<'_>,
        bytes: u32,
        form: Allocation,
    ) -> Result<(), IcedError> {
        if bytes == 0 {
            return Ok(());
        }
        let stream = &mut self.stream;
        match form {
            Allocation::Push if bytes == 8 => stream.push(Gpr::Rax)?,
            Allocation::Sub | Allocation::Push => stream.sub_rsp(bytes, false)?,
            Allocation::SubImm32 => stream.sub_rsp(bytes, true)?,
            Allocation::Probes if bytes / PAGE <= SINGLE_PROBES => {
                for page in 1..=bytes / PAGE {
                    stream.touch(Place::At(Gpr::Rsp, -i64::from(page * PAGE)))?;
                }
                stream.sub_rsp(bytes, false)?;
            }
            Allocation::Probes | Allocation::ProbeLoop => {
                stream.registers(Code::Xor_r32_rm32, Register::EAX, Register::EAX)?;
                let again = stream.label();
                stream.bind(again);
                stream.touch(Place::Sum(Gpr::Rsp, Gpr::Rax))?;
                stream.immediate(Code::Sub_rm64_imm32, Register::RAX, PAGE.cast_signed())?;
                stream.immediate(Code::Cmp_rm64_imm32, Register::RAX, -bytes.cast_signed())?;
                stream.branch(Code::Jge_rel32_64, again)?;
                stream.sub_rsp(bytes, false)?;
            }
            Allocation::Chkstk => {
                stream.mov_imm32(Gpr::Rax, bytes)?;
                stream.branch(Code::Call_rel32_64, self.chkstk)?;
                self.needs_chkstk = true;
                self.stream.registers(Code::Sub_r64_rm64, Register::RSP, Register::RAX)?;
            }
        }
        self.describe(frame, Operation::Allocate(bytes));
        self.row(|row| row.moved(bytes.cast_signed()));
        Ok(())
    }
}

/// Writes libgcc's `___chkstk_ms`, which touches each page of the rax bytes below the caller's rsp
/// and changes no register.
pub(super) fn chkstk(stream: &mut Stream) -> Result<(), IcedError> {
    let note = |mistake| Some(Note { mistake, ..Note::HELPER });
    let inside = note(Some(WindowsMistake::Chkstk));
    let immediate = PAGE.cast_signed();
    let (again, last) = (stream.label(), stream.label());
    stream.now = note(None);
    stream.push(Gpr::Rcx)?;
    stream.now = inside;
    stream.push(Gpr::Rax)?;
    stream.immediate(Code::Cmp_RAX_imm32, Register::RAX, immediate)?;
    stream.lea(Gpr::Rcx, Place::At(Gpr::Rsp, 24))?;
    stream.branch(Code::Jb_rel32_64, last)?;
    stream.bind(again);
    stream.immediate(Code::Sub_rm64_imm32, Register::RCX, immediate)?;
    stream.memory_i32(Code::Or_rm64_imm8, Place::At(Gpr::Rcx, 0), 0)?;
    stream.immediate(Code::Sub_RAX_imm32, Register::RAX, immediate)?;
    stream.immediate(Code::Cmp_RAX_imm32, Register::RAX, immediate)?;
    stream.branch(Code::Ja_rel32_64, again)?;
    stream.bind(last);
    stream.registers(Code::Sub_rm64_r64, Register::RCX, Register::RAX)?;
    stream.memory_i32(Code::Or_rm64_imm8, Place::At(Gpr::Rcx, 0), 0)?;
    stream.pop(Gpr::Rax)?;
    stream.pop(Gpr::Rcx)?;
    stream.now = note(None);
    stream.plain(Code::Retnq);
    Ok(())
}
