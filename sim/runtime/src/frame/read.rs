//! A reader of Frames in memory.

use super::layout::{self, FRAME_TOP, FrameConvention};
use super::{FrameIdentities, FrameKind, FrameShape};
use crate::Context;
use crate::generation::Generation;
use crate::memory::read_u32;
use clr_unwind::{Gpr, Memory, Unreadable};

/// A Frame of known kind, read with the layout of a generation.
pub struct FrameReader<'m, M: ?Sized> {
    /// Address of the Frame (VA).
    pub at: u64,
    /// Kind of the Frame.
    pub kind: FrameKind,
    /// Generation of the runtime that wrote the Frame.
    pub generation: Generation,
    /// Memory of the process.
    pub memory: &'m M,
}

impl<'m, M: Memory + ?Sized> FrameReader<'m, M> {
    /// Returns the Frame at `at`, or `None` if its first word is not a Frame identity.
    ///
    /// # Errors
    /// Returns [`Unreadable`] if its first word cannot be read.
    pub fn new(
        at: u64,
        generation: Generation,
        identities: &FrameIdentities,
        memory: &'m M,
    ) -> Result<Option<Self>, Unreadable> {
        let kind = identities.kind(memory.read_u64(at)?);
        Ok(kind.map(|kind| Self { at, kind, generation, memory }))
    }

    pub(super) fn field(&self, offset: u64) -> Result<u64, Unreadable> {
        self.memory.read_u64(self.at.wrapping_add(offset))
    }

    /// Returns the address of the next Frame on the chain.
    pub(crate) fn next(&self) -> Result<u64, Unreadable> {
        self.field(layout::NEXT)
    }

    const fn shape(&self) -> FrameShape {
        self.kind.shape()
    }

    /// Returns true if this is an InlinedCallFrame whose call is active (C-070, C-071).
    pub(crate) fn is_active_call(&self) -> Result<bool, Unreadable> {
        Ok(self.shape() == FrameShape::InlinedCall && self.call_return_address()? != 0)
    }

    /// Returns true if this is an InlinedCallFrame around a call that managed exception handling is making.
    pub(crate) fn is_exception_helper(&self) -> Result<bool, Unreadable> {
        let helper = self.generation.exception_helper();
        Ok(self.is_active_call()? && helper.has(self.field(layout::DATUM)?))
    }

    fn call_return_address(&self) -> Result<u64, Unreadable> {
        self.field(self.generation.inlined_call_frame().return_address)
    }

    /// Returns true if the Frame represents a thread that was interrupted and will be resumed: the
    /// attribute RESUMABLE.
    pub(crate) const fn is_resumable(&self) -> bool {
        matches!(self.shape(), FrameShape::Resumable)
    }

    /// Returns the method, or 0 for none. Only a Frame with a method is an internal stop (contract
    /// §3.8).
    pub(crate) fn function(&self) -> Result<u64, Unreadable> {
        match self.shape() {
            FrameShape::InlinedCall if self.is_active_call()? => {
                let datum = self.field(layout::DATUM)?;
                // A word with bit 0 set belongs to a stub. The next two bits are marks.
                Ok(if datum & 1 == 0 { datum & !layout::DATUM_MARKS } else { 0 })
            }
            FrameShape::FramedMethod => self.field(layout::METHOD),
            FrameShape::HelperMethod => self.field(layout::HELPER_METHOD),
            _ => Ok(0),
        }
    }

    /// Returns the address (VA) at which the walk continues, or 0 for none. A HelperMethodFrame
    /// must be complete.
    pub(crate) fn return_address(&self, identities: &FrameIdentities) -> Result<u64, Unreadable> {
        let convention = FrameConvention::of(self.generation);
        match self.shape() {
            FrameShape::InlinedCall => self.call_return_address(),
            FrameShape::FramedMethod | FrameShape::Transition => {
                let block = self.field(layout::TRANSITION_BLOCK)?;
                self.memory.read_u64(block.wrapping_add(convention.transition_block_size - 8))
            }
            FrameShape::HelperMethod => self.field(convention.machine_state.rip),
            FrameShape::Hijack | FrameShape::Software => self.field(layout::RETURN_ADDRESS),
            FrameShape::Resumable | FrameShape::FuncEval => {
                let context = self.field(layout::REGS)?;
                self.memory.read_u64(context.wrapping_add(layout::CONTEXT_RIP))
            }
            FrameShape::Faulting => self.field(layout::FAULTING_CONTEXT + layout::CONTEXT_RIP),
            FrameShape::TailCall => {
                self.field(layout::TAIL_CALL_REGISTERS + convention.saved_size())
            }
            FrameShape::UnmanagedToManaged => self.unmanaged_caller(identities),
            FrameShape::Mark => Ok(0),
        }
    }

    /// Returns the unmanaged caller, or 0 if the next Frame is an active InlinedCallFrame with the
    /// same return address (C-080).
    fn unmanaged_caller(&self, identities: &FrameIdentities) -> Result<u64, Unreadable> {
        let caller = self.field(layout::UNMANAGED_CALLER)?;
        let next = self.next()?;
        if next == FRAME_TOP {
            return Ok(caller);
        }
        let below = Self::new(next, self.generation, identities, self.memory)?;
        let same_call = match below {
            Some(below) if below.is_active_call()? => below.call_return_address()? == caller,
            _ => false,
        };
        Ok(if same_call { 0 } else { caller })
    }

    /// Sets the registers that the Frame leads to (C-070 to C-074, C-076).
    ///
    /// # Errors
    /// Returns [`Unreadable`] if the Frame's memory cannot be read.
    pub fn update(
        &self,
        context: &mut Context,
        identities: &FrameIdentities,
    ) -> Result<(), Unreadable> {
        let convention = FrameConvention::of(self.generation);
        context.registers.rip = self.return_address(identities)?;
        match self.shape() {
            FrameShape::InlinedCall => {
                let layout = self.generation.inlined_call_frame();
                context.registers.set(Gpr::Rsp, self.field(layout.call_site_sp)?);
                context.registers.set(Gpr::Rbp, self.field(layout.frame_pointer)?);
                Ok(())
            }
            FrameShape::FramedMethod | FrameShape::Transition => {
                let block = self.field(layout::TRANSITION_BLOCK)?;
                let end = block.wrapping_add(convention.transition_block_size);
                context.registers.set(Gpr::Rsp, end);
                self.load(context, end.wrapping_sub(8 + convention.saved_size()))
            }
            FrameShape::HelperMethod => self.update_from_machine_state(context),
            FrameShape::Hijack => {
                let args = self.field(layout::HIJACK_ARGS)?;
                let layout = self.generation.hijack_args();
                let rsp = match layout.rsp {
                    Some(rsp) => self.memory.read_u64(args.wrapping_add(rsp))?,
                    None => args.wrapping_add(layout.return_address + 8),
                };
                context.registers.set(Gpr::Rsp, rsp);
                self.load(context, args.wrapping_add(layout.registers))
            }
            FrameShape::Resumable => {
                self.load_context(context, self.field(layout::REGS)?)?;
                context.flags &= !self.generation.redirected_context_flags_lost();
                Ok(())
            }
            FrameShape::FuncEval => self.load_context(context, self.field(layout::REGS)?),
            FrameShape::Faulting => {
                self.load_context(context, self.at.wrapping_add(layout::FAULTING_CONTEXT))?;
                context.flags &= !self.generation.faulting_context_flags_lost();
                Ok(())
            }
            FrameShape::Software => {
                let source = self.at.wrapping_add(layout::SOFTWARE_CONTEXT);
                context.registers.rip =
                    self.memory.read_u64(source.wrapping_add(layout::CONTEXT_RIP))?;
                for register in convention.callee_saved.iter().chain(&[Gpr::Rsp]) {
                    context.registers.set(*register, self.context_register(source, *register)?);
                }
                Ok(())
            }
            FrameShape::TailCall => {
                let first = self.at.wrapping_add(layout::TAIL_CALL_REGISTERS);
                let end = first.wrapping_add(convention.saved_size() + 8);
                context.registers.set(Gpr::Rsp, end);
                self.load(context, first)
            }
            FrameShape::UnmanagedToManaged | FrameShape::Mark => Ok(()),
        }
    }

    /// Loads the callee-saved registers stored in memory from `first` on.
    fn load(&self, context: &mut Context, first: u64) -> Result<(), Unreadable> {
        let saved = FrameConvention::of(self.generation).callee_saved;
        for (register, n) in saved.iter().zip(0..) {
            let value = self.memory.read_u64(first.wrapping_add(8 * n))?;
            context.registers.set(*register, value);
        }
        Ok(())
    }

    /// Loads registers from a completed MachState: pointers to the saved callee-saved registers. On
    /// Unix a null pointer stands for the unwound value.
    fn update_from_machine_state(&self, context: &mut Context) -> Result<(), Unreadable> {
        let FrameConvention { callee_saved, machine_state, .. } =
            FrameConvention::of(self.generation);
        context.registers.set(Gpr::Rsp, self.field(machine_state.rsp)?);
        for (register, n) in callee_saved.iter().zip(0..) {
            let pointer = self.field(machine_state.pointers + 8 * n)?;
            let value = match machine_state.unwound {
                Some(unwound) if pointer == 0 => self.field(unwound + 8 * n)?,
                _ => self.memory.read_u64(pointer)?,
            };
            context.registers.set(*register, value);
        }
        Ok(())
    }

    fn context_register(&self, context: u64, register: Gpr) -> Result<u64, Unreadable> {
        let offset = layout::CONTEXT_RAX + 8 * u64::from(register.number());
        self.memory.read_u64(context.wrapping_add(offset))
    }

    fn load_context(&self, context: &mut Context, source: u64) -> Result<(), Unreadable> {
        context.flags = read_u32(self.memory, source.wrapping_add(layout::CONTEXT_FLAGS))?;
        for register in Gpr::ALL {
            context.registers.set(register, self.context_register(source, register)?);
        }
        for (value, n) in context.registers.xmm.iter_mut().zip(0..) {
            *value = self.memory.read_u128(source.wrapping_add(layout::CONTEXT_XMM6 + 16 * n))?;
        }
        Ok(())
    }
}
