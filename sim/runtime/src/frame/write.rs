//! A writer of Frames, for the code that links them and for threads built by hand.

use super::layout::{self, FrameConvention};
use super::{FrameIdentities, FrameKind, FrameShape};
use crate::generation::Generation;
use crate::memory::TargetMemory;
use clr_unwind::{Gpr, Registers, Unreadable};

/// Contents of a Frame of any kind; each kind uses the values it has fields for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameFields {
    /// Method: a FunctionID, or 0 (`m_Datum`, `m_pMD`).
    pub method: u64,
    /// Registers that the Frame leads to: rip (0 for an inactive call), rsp, and the callee-saved
    /// registers. Where the stack layout determines their addresses, rsp places the block that
    /// holds them.
    pub registers: Registers,
    /// ContextFlags of the CONTEXT, if the Frame has one.
    pub context_flags: u32,
    /// Address of the CONTEXT (VA), if the Frame points to one.
    pub context_at: u64,
    /// State of a HelperMethodFrame that is not complete yet: the registers are then those captured
    /// in its helper, and rsp is the address of the helper's return address.
    pub lazy: Option<LazyFields>,
}

/// Fields of a HelperMethodFrame that describe a helper before completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LazyFields {
    /// `m_FCallEntry` (VA): 0 for a JIT helper.
    pub fcall_entry: u64,
    /// Attributes: `layout::CAPTURE_DEPTH_2`, `layout::EXACT_DEPTH`.
    pub attributes: u32,
}

/// Writer for the Frames of a generation.
#[derive(Debug)]
pub struct FrameWriter<'m, M: ?Sized> {
    /// Runtime whose layouts are used.
    pub generation: Generation,
    /// Words that identify the kinds.
    pub identities: &'m FrameIdentities,
    /// The target's memory.
    pub memory: &'m mut M,
}

impl<M: TargetMemory + ?Sized> FrameWriter<'_, M> {
    /// Writes a Frame at `at` (VA), linked to `next`. A kind that the runtime has no word for gets
    /// the word 0, as corrupt memory would.
    ///
    /// # Errors
    /// Returns [`Unreadable`] if the Frame is not in writable memory.
    pub fn write(
        &mut self,
        at: u64,
        next: u64,
        kind: FrameKind,
        fields: &FrameFields,
    ) -> Result<(), Unreadable> {
        let word = self.identities.word(kind).unwrap_or(0);
        self.field(at, 0, word)?;
        self.field(at, layout::NEXT, next)?;
        let registers = &fields.registers;
        match kind.shape() {
            FrameShape::InlinedCall => {
                let layout = self.generation.inlined_call_frame();
                self.field(at, layout::DATUM, fields.method)?;
                self.field(at, layout.call_site_sp, registers.rsp())?;
                self.field(at, layout.return_address, registers.rip)?;
                self.field(at, layout.frame_pointer, registers.get(Gpr::Rbp))
            }
            FrameShape::FramedMethod => {
                self.field(at, layout::METHOD, fields.method)?;
                self.transition_block(at, registers)
            }
            FrameShape::Transition => self.transition_block(at, registers),
            FrameShape::HelperMethod => {
                self.field(at, layout::HELPER_METHOD, fields.method)?;
                self.machine_state(at, fields)
            }
            FrameShape::Hijack => {
                let layout = self.generation.hijack_args();
                let args = registers.rsp().wrapping_sub(layout.return_address + 8);
                self.field(at, layout::RETURN_ADDRESS, registers.rip)?;
                self.field(at, layout::HIJACK_ARGS, args)?;
                self.saved(args.wrapping_add(layout.registers), registers)?;
                if let Some(rsp) = layout.rsp {
                    self.field(args, rsp, registers.rsp())?;
                }
                self.field(args, layout.return_address, registers.rip)
            }
            FrameShape::Resumable | FrameShape::FuncEval => {
                self.field(at, layout::REGS, fields.context_at)?;
                self.context(fields.context_at, fields)
            }
            FrameShape::Faulting => self.context(at.wrapping_add(layout::FAULTING_CONTEXT), fields),
            FrameShape::Software => {
                self.field(at, layout::RETURN_ADDRESS, registers.rip)?;
                self.context(at.wrapping_add(layout::SOFTWARE_CONTEXT), fields)
            }
            FrameShape::TailCall => {
                self.saved(at.wrapping_add(layout::TAIL_CALL_REGISTERS), registers)
            }
            FrameShape::UnmanagedToManaged => {
                self.field(at, layout::UNMANAGED_CALLER, registers.rip)
            }
            FrameShape::Mark => Ok(()),
        }
    }

    fn field(&mut self, at: u64, offset: u64, value: u64) -> Result<(), Unreadable> {
        self.memory.write_u64(at.wrapping_add(offset), value)
    }

    /// Writes the callee-saved registers, followed by rip, from `first` on.
    fn saved(&mut self, first: u64, registers: &Registers) -> Result<(), Unreadable> {
        let convention = FrameConvention::of(self.generation);
        for (register, n) in convention.callee_saved.iter().zip(0..) {
            self.field(first, 8 * n, registers.get(*register))?;
        }
        self.field(first, convention.saved_size(), registers.rip)
    }

    fn transition_block(&mut self, at: u64, registers: &Registers) -> Result<(), Unreadable> {
        let convention = FrameConvention::of(self.generation);
        let end = registers.rsp();
        let block = end.wrapping_sub(convention.transition_block_size);
        self.field(at, layout::TRANSITION_BLOCK, block)?;
        self.saved(end.wrapping_sub(8 + convention.saved_size()), registers)
    }

    fn machine_state(&mut self, at: u64, fields: &FrameFields) -> Result<(), Unreadable> {
        let FrameConvention { callee_saved, machine_state, .. } =
            FrameConvention::of(self.generation);
        let registers = &fields.registers;
        for (register, n) in callee_saved.iter().zip(0..) {
            let slot = machine_state.captured + 8 * n;
            self.field(at, slot, registers.get(*register))?;
            let pointer = if fields.lazy.is_some() { 0 } else { at.wrapping_add(slot) };
            self.field(at, machine_state.pointers + 8 * n, pointer)?;
        }
        if let Some(lazy) = fields.lazy {
            self.field(at, layout::HELPER_ATTRIBUTES, u64::from(lazy.attributes))?;
            self.field(at, layout::FCALL_ENTRY, lazy.fcall_entry)?;
            self.field(at, machine_state.captured_rip, registers.rip)?;
            self.field(at, machine_state.captured_rsp, registers.rsp())?;
            self.field(at, machine_state.return_slot, 0)
        } else {
            self.field(at, machine_state.rip, registers.rip)?;
            self.field(at, machine_state.rsp, registers.rsp())?;
            self.field(at, machine_state.return_slot, registers.rsp().wrapping_sub(8))
        }
    }

    /// Writes the known fields of a CONTEXT.
    fn context(&mut self, at: u64, fields: &FrameFields) -> Result<(), Unreadable> {
        // MxCsr follows the flags in the same word; 0 is as good a value as any.
        self.field(at, layout::CONTEXT_FLAGS, u64::from(fields.context_flags))?;
        for register in Gpr::ALL {
            let offset = layout::CONTEXT_RAX + 8 * u64::from(register.number());
            self.field(at, offset, fields.registers.get(register))?;
        }
        for (value, n) in fields.registers.xmm.iter().zip(0..) {
            let offset = layout::CONTEXT_XMM6 + 16 * n;
            self.field(at, offset, *value as u64)?;
            self.field(at, offset + 8, (value >> 64) as u64)?;
        }
        self.field(at, layout::CONTEXT_RIP, fields.registers.rip)
    }
}
