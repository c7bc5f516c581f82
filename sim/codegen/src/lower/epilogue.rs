//! Lowering of epilogues.

use super::super::cfi::Rule;
use super::super::marks::{Role, WindowsMistake};
use super::super::program::{Exit, ReturnForm, TailCallForm};
use super::super::shape::{EntryForm, EpilogueCfi, FunctionShape, Release, UnwindData};
use super::super::unwind_info::Operation;
use super::prologue::Described;
use super::stream::{Label, Place};
use super::{Frame, Lowering, Undone};
use clr_unwind::Gpr;
use iced_x86::{Code, IcedError};
use std::ops::Range;

impl Lowering<'_> {
    /// Restores the registers that the prologue saved, and leaves the function.
    pub(super) fn epilogue(&mut self, frame: &Frame<'_>, exit: Exit) -> Result<(), IcedError> {
        self.epilogue_before(frame, exit, None)
    }

    /// Writes an epilogue like [`epilogue`](Self::epilogue), with the code of `tail`, which has no
    /// frame, between the epilogue and the jump or return.
    pub(super) fn epilogue_before(
        &mut self,
        frame: &Frame<'_>,
        exit: Exit,
        tail: Option<Label>,
    ) -> Result<(), IcedError> {
        let shape = frame.shape();
        let layout = &frame.layout;
        self.note(frame, Role::Body);
        let restored = shape.epilogue_cfi == EpilogueCfi::Restored;
        let here = self.stream.here();
        let row = if restored { self.rows.remember(here) } else { self.rows.now() };
        self.load_target(exit)?;
        let by_r11 = shape.release == Release::R11;
        if by_r11 {
            self.stream.lea(Gpr::R11, Place::At(Gpr::Rsp, i64::from(layout.allocation)))?;
        }
        let place = |at: u32| {
            if by_r11 {
                Place::At(Gpr::R11, i64::from(at) - i64::from(layout.allocation))
            } else {
                frame.at(at)
            }
        };
        for &(n, at) in &layout.xmm_saves {
            self.stream.load_xmm(n, place(at))?;
        }
        for &(register, at) in &layout.saves {
            self.stream.load(register, place(at))?;
            self.row(|row| row.set(register, Rule::Same));
        }
        for (slot, register) in (0..).zip(shape.home) {
            if let Some(register) = register
                && self.program.convention.is_nonvolatile(register)
            {
                self.stream.load(register, place(layout.home(slot)))?;
            }
        }
        let left_pushed = self.restore_left_pushes(frame)?;
        self.note(frame, Role::Epilogue);
        let mistake = mistake(shape, exit);
        let release = self.stream.here();
        let pops_rbp = self.release(frame)?;
        // Before the first of these instructions, the frame is as in the body.
        let released = layout.allocation > 0 || pops_rbp;
        self.mistake(mistake.filter(|_| released));
        let first_pop = self.stream.here();
        self.pop_caller(frame)?;
        let pushes = shape.all_pushes(self.program.convention).rev();
        for register in pushes.skip(usize::from(pops_rbp) + left_pushed) {
            // rax may hold the target of a tail call, or a result.
            let keeps_rax = !shape.entry.has_machine_frame() && register == Gpr::Rax;
            self.stream.pop(if keeps_rax { Gpr::Rcx } else { register })?;
            self.row(|row| row.popped(register));
            self.mistake(mistake);
        }
        if shape.entry == EntryForm::InterruptWithErrorCode {
            self.stream.add_rsp(8, false)?;
            self.row(|row| row.moved(-8));
            self.mistake(mistake);
        }
        self.undo_realignment(frame)?;
        if let Some(tail) = tail {
            self.stream.bind(tail);
            self.stream.filler()?;
        }
        self.leave(frame, exit)?;
        self.mistake(None);
        let end = self.stream.here();
        if restored {
            self.rows.restore(end, &row);
        } else {
            self.rows.leave_wrong(end, &row);
        }
        self.parts[frame.part].epilogues.push((first_pop, end));
        let restored = usize::from(pops_rbp) + left_pushed;
        self.describe_epilogue(frame, release..end, first_pop, restored);
        Ok(())
    }

    /// Records the operations that the `epilogue` undoes. Of the pushes, the last `restored` ones are
    /// undone by its first instruction, and the others by pops from `first_pop` on.
    fn describe_epilogue(
        &mut self,
        frame: &Frame<'_>,
        epilogue: Range<u32>,
        first_pop: u32,
        restored: usize,
    ) {
        let shape = frame.shape();
        let described = self.all_described(frame.describing);
        let last = epilogue.end - 1;
        let pushes = shape.all_pushes(self.program.convention).count();
        let is_push = |operation| matches!(operation, Operation::Push(_) | Operation::Allocate(_));
        let lowered = described.iter().filter(|described| is_push(described.operation)).count();
        // In the order in which they are undone: the allocation, then the pushes.
        let mut left = lowered;
        let mut operations = Vec::new();
        for Described { operation, .. } in described.into_iter().rev() {
            match operation {
                Operation::Push(_) | Operation::Allocate(_) => {
                    let popped = pushes.checked_sub(left).and_then(|n| n.checked_sub(restored));
                    let at = popped.map_or(epilogue.start, |n| first_pop + n as u32);
                    operations.push((at, operation));
                    left -= 1;
                }
                Operation::SetFrame => operations.push((epilogue.start, operation)),
                Operation::MachineFrame(error_code) => {
                    if error_code {
                        operations.push((last - 1, Operation::Allocate(8)));
                    }
                    operations.push((last, Operation::MachineFrame(false)));
                }
                Operation::Save(..) | Operation::SaveXmm(..) => {}
            }
        }
        let Range { start: begin, end } = epilogue;
        self.parts[frame.part].undone.push(Undone { begin, end, operations });
    }

    pub(super) fn funclet_epilogue(
        &mut self,
        frame: &Frame<'_>,
        allocation: u32,
    ) -> Result<(), IcedError> {
        self.note(frame, Role::Epilogue);
        let release = self.stream.here();
        self.stream.add_rsp(allocation, false)?;
        self.row(|row| row.moved(-allocation.cast_signed()));
        let unlisted = frame.shape().unwind == UnwindData::Version2WithoutEpilogs;
        self.mistake(unlisted.then_some(WindowsMistake::UnlistedEpilogue));
        let first_pop = self.stream.here();
        for register in frame.shape().all_pushes(self.program.convention).rev() {
            // rax holds the result.
            self.stream.pop(if register == Gpr::Rax { Gpr::Rcx } else { register })?;
            self.row(|row| row.popped(register));
        }
        self.stream.plain(Code::Retnq);
        self.mistake(None);
        let end = self.stream.here();
        self.parts[frame.part].epilogues.push((first_pop, end));
        self.describe_epilogue(frame, release..end, first_pop, 0);
        Ok(())
    }

    /// Releases the fixed allocation. Returns true if the last pushed register has been popped too.
    fn release(&mut self, frame: &Frame<'_>) -> Result<bool, IcedError> {
        let bytes = frame.layout.allocation;
        // Bytes that remain between rsp and the CFA.
        let left = (frame.layout.pushed + frame.layout.entry).cast_signed();
        let by_frame = frame.layout.frame_register(frame.shape());
        let form = frame.shape().release;
        match (form, by_frame) {
            (Release::Lea | Release::LeaDisp32, Some((register, distance))) => {
                let up = i64::from(bytes) - i64::from(distance);
                let place = match form {
                    Release::Lea => Place::AtDisp8(register, up),
                    _ => Place::AtDisp32(register, up),
                };
                self.mistake(reads_wrong_in_r12(frame.shape(), up));
                self.stream.lea(Gpr::Rsp, place)?;
                self.mistake(None);
            }
            (Release::Mov, Some((register, _))) => self.stream.mov(Gpr::Rsp, register)?,
            (Release::Leave, _) => {
                self.stream.plain(Code::Leaveq);
                let behind = match by_frame {
                    Some(_) => 8 * frame.shape().pushes_behind_frame().cast_signed(),
                    None => 0,
                };
                self.row(|row| {
                    row.at_rsp(left - behind);
                    row.popped(Gpr::Rbp);
                });
                return Ok(true);
            }
            (Release::R11, _) => self.stream.mov(Gpr::Rsp, Gpr::R11)?,
            (Release::Pop, _) if bytes == 8 => self.stream.pop(Gpr::Rcx)?,
            _ if bytes == 0 => {}
            (Release::AddImm32, _) => self.stream.add_rsp(bytes, true)?,
            _ => self.stream.add_rsp(bytes, false)?,
        }
        let counted = frame.shape().epilogue_cfi == EpilogueCfi::Continued;
        self.row(|row| {
            if counted {
                row.moved(-bytes.cast_signed());
            } else {
                row.at_rsp(left);
            }
        });
        Ok(false)
    }

    /// Loads the target of an indirect tail call while the frame still exists.
    fn load_target(&mut self, exit: Exit) -> Result<(), IcedError> {
        match exit {
            Exit::TailCall(TailCallForm::Register | TailCallForm::RegisterWithoutRex, callee) => {
                self.stream.load(Gpr::Rax, Place::Absolute(self.cells.function(callee)))
            }
            Exit::TailCall(TailCallForm::RegisterMemory, callee) => {
                self.stream.lea(Gpr::Rax, Place::Absolute(self.cells.function(callee)))
            }
            _ => Ok(()),
        }
    }

    fn leave(&mut self, frame: &Frame<'_>, exit: Exit) -> Result<(), IcedError> {
        if frame.shape().entry.has_machine_frame() {
            self.stream.plain(Code::Iretq);
            return Ok(());
        }
        let near = matches!(exit, Exit::TailCall(_, callee) if self.is_here(callee));
        if exit == Exit::Return(ReturnForm::VzeroupperRet) {
            self.stream.plain(Code::VEX_Vzeroupper);
            if frame.shape().unwind == UnwindData::Version1 {
                self.mistake(None);
            }
        }
        let stream = &mut self.stream;
        match exit {
            Exit::Return(ReturnForm::Ret | ReturnForm::VzeroupperRet) => {
                stream.plain(Code::Retnq);
            }
            Exit::Return(ReturnForm::RetImm) => stream.bytes(&[0xC2, 0, 0])?,
            Exit::Return(ReturnForm::RepRet) => stream.bytes(&[0xF3, 0xC3])?,
            Exit::Return(ReturnForm::BndRet) => stream.bytes(&[0xF2, 0xC3])?,
            Exit::Return(ReturnForm::RexRet) => stream.bytes(&[0x48, 0xC3])?,
            Exit::TailCall(TailCallForm::Register, _) | Exit::Computed => {
                stream.bytes(&[0x48, 0xFF, 0xE0])?;
            }
            Exit::TailCall(TailCallForm::RegisterWithoutRex, _) => {
                stream.bytes(&[0xFF, 0xE0])?;
            }
            Exit::TailCall(TailCallForm::RegisterMemory, _) => {
                stream.bytes(&[0x48, 0xFF, 0x20])?;
            }
            Exit::TailCall(TailCallForm::Near, callee) if near => {
                stream.branch(Code::Jmp_rel32_64, self.entries[callee.index()])?;
            }
            Exit::TailCall(TailCallForm::Near | TailCallForm::Memory, callee) => {
                stream.through(Code::Jmp_rm64, Place::Absolute(self.cells.function(callee)))?;
            }
        }
        Ok(())
    }
}

/// Returns the reason why the Windows rules do not recognize this epilogue once rsp has moved.
fn mistake(shape: &FunctionShape, exit: Exit) -> Option<WindowsMistake> {
    match (shape.unwind, exit) {
        // Descriptors list the epilogues.
        (UnwindData::Version3, _) => None,
        _ if shape.entry.has_machine_frame() => Some(WindowsMistake::InterruptReturn),
        (UnwindData::Version2WithoutEpilogs, _) => Some(WindowsMistake::UnlistedEpilogue),
        (UnwindData::Version1, Exit::Return(ReturnForm::RexRet)) => Some(WindowsMistake::RexReturn),
        (UnwindData::Version1, Exit::Return(ReturnForm::VzeroupperRet)) => {
            Some(WindowsMistake::Vzeroupper)
        }
        (UnwindData::Version1, Exit::TailCall(TailCallForm::RegisterWithoutRex, _)) => {
            Some(WindowsMistake::JumpWithoutRex)
        }
        _ => None,
    }
}

/// Returns the mistake if the Windows rules misread the lea of this release. Without r12's SIB
/// byte, its 8-bit displacement looks like the next instruction: a pop, or the REX prefix of one.
fn reads_wrong_in_r12(shape: &FunctionShape, up: i64) -> Option<WindowsMistake> {
    let in_r12 = shape.frame.is_some_and(|frame| frame.described && frame.register == Gpr::R12);
    let short_pop = shape.pushes.last().is_some_and(|register| register.number() < 8);
    let misread = match up {
        0x40 | 0x48 => short_pop,
        0x58 => true,
        _ => false,
    };
    let scanned = shape.unwind == UnwindData::Version1 && shape.release == Release::Lea;
    (in_r12 && misread && scanned).then_some(WindowsMistake::FrameInR12)
}
