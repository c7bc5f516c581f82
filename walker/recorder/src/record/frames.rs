//! A thread's explicit Frames, as the runtime keeps them in memory.

use super::layout::{Kind, Layout, Shape, field};
use super::reads::Noted;
use super::vtables::Vtables;
use clr_walker::memory::{Memory, Unreadable};
use clr_walker::profiling::{StackBounds, ThreadId};
use clr_walker::registers::{Gpr, Registers};

/// Maximum number of Frames of a thread.
const MOST_FRAMES: usize = 4096;
/// `FRAME_TOP`: the end of a chain.
const FRAME_TOP: u64 = u64::MAX;
/// The registers in a TransitionBlock, in HijackArgs and in a MachState, in their order.
const SAVED: [Gpr; 6] = [Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15, Gpr::Rbx, Gpr::Rbp];

/// A Frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Address (VA).
    pub(super) at: u64,
    pub(super) kind: Kind,
}

/// A thread's GC mode and its Frames, the topmost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) is_cooperative: bool,
    pub(super) frames: Vec<Frame>,
}

impl Chain {
    /// Reads the state of a thread. `None` if it is not as this runtime's is: a Frame outside the
    /// stack, or of a kind that is not known.
    pub(super) fn of(
        thread: ThreadId,
        stack: StackBounds,
        layout: &Layout,
        vtables: &Vtables,
        memory: &impl Memory,
    ) -> Option<Self> {
        let word = |address: u64| memory.read_u64(address).ok();
        let is_cooperative = match word(thread.0.checked_add(layout.cooperative)?)? as u32 {
            0 => false,
            1 => true,
            _ => return None,
        };
        let mut frames = Vec::new();
        let mut at = word(thread.0 + layout.top_frame)?;
        while at != FRAME_TOP {
            let last = frames.last().map_or(0, |frame: &Frame| frame.at);
            if !stack.contain(at) || at <= last || frames.len() == MOST_FRAMES {
                return None;
            }
            frames.push(Frame { at, kind: vtables.kind(word(at)?)? });
            at = word(at + field::NEXT)?;
        }
        Some(Self { is_cooperative, frames })
    }
}

impl Frame {
    pub(super) fn is_inlined_call(&self) -> bool {
        self.kind.shape == Shape::InlinedCall
    }

    /// Returns the registers that the Frame leads to, if it leads anywhere. Those that it does not
    /// set are as in `before`.
    ///
    /// # Errors
    /// [`Unreadable`] if a field cannot be read.
    pub(super) fn target<M: Memory>(
        &self,
        layout: &Layout,
        memory: &Noted<'_, M>,
        before: &Registers,
    ) -> Result<Option<Registers>, Unreadable> {
        let at = |offset: u64| self.at.wrapping_add(offset);
        let mut registers = *before;
        match self.kind.shape {
            Shape::InlinedCall => {
                registers.rip = memory.data(at(layout.call_site_sp + 8))?;
                if registers.rip == 0 {
                    return Ok(None);
                }
                memory.field(at(field::FIRST))?;
                registers.set(Gpr::Rsp, memory.data(at(layout.call_site_sp))?);
                registers.set(Gpr::Rbp, memory.data(at(layout.call_site_sp + 16))?);
            }
            Shape::Transition => {
                let block = memory.field(at(field::FIRST))?;
                memory.field(at(field::METHOD))?;
                let end = block.wrapping_add(field::TRANSITION_BLOCK);
                registers.rip = memory.data(end.wrapping_sub(8))?;
                registers.set(Gpr::Rsp, end);
                load(&mut registers, end.wrapping_sub(8 + 8 * SAVED.len() as u64), memory)?;
            }
            Shape::Helper => {
                memory.field(at(field::FIRST))?;
                if memory.field(at(field::MACHINE_RETURN))? == 0 {
                    return Ok(None);
                }
                registers.rip = memory.data(at(field::MACHINE_RIP))?;
                registers.set(Gpr::Rsp, memory.data(at(field::MACHINE_RSP))?);
                for (register, offset) in SAVED.into_iter().zip((0..).step_by(8)) {
                    let value = match memory.field(at(field::MACHINE_POINTERS + offset))? {
                        0 => memory.data(at(field::MACHINE_VALUES + offset))?,
                        pointer => memory.data(pointer)?,
                    };
                    registers.set(register, value);
                }
            }
            Shape::Hijack => {
                registers.rip = memory.data(at(field::FIRST))?;
                let arguments = memory.field(at(field::ARGUMENTS))?;
                load(&mut registers, arguments.wrapping_add(field::HIJACKED_REGISTERS), memory)?;
                let end = arguments.wrapping_add(field::HIJACKED_RETURN + 8);
                registers.set(Gpr::Rsp, end);
            }
            Shape::Resumable => {
                let context = memory.field(at(field::FIRST))?;
                load_context(&mut registers, context, memory)?;
            }
            Shape::Faulting => load_context(&mut registers, at(field::ARGUMENTS), memory)?,
            Shape::TailCall => {
                load(&mut registers, at(field::TAIL_CALL), memory)?;
                let slot = at(field::TAIL_CALL + 8 * SAVED.len() as u64);
                registers.rip = memory.data(slot)?;
                registers.set(Gpr::Rsp, slot.wrapping_add(8));
            }
            Shape::Mark => return Ok(None),
        }
        Ok(Some(registers))
    }
}

/// Loads the saved registers from `first` (VA) on.
fn load<M: Memory>(
    registers: &mut Registers,
    first: u64,
    memory: &Noted<'_, M>,
) -> Result<(), Unreadable> {
    for (register, offset) in SAVED.into_iter().zip((0..).step_by(8)) {
        registers.set(register, memory.data(first.wrapping_add(offset))?);
    }
    Ok(())
}

/// Loads the integer registers of a CONTEXT.
fn load_context<M: Memory>(
    registers: &mut Registers,
    context: u64,
    memory: &Noted<'_, M>,
) -> Result<(), Unreadable> {
    memory.field(context.wrapping_add(field::CONTEXT_FLAGS))?;
    for register in Gpr::ALL {
        let offset = field::CONTEXT_RAX + 8 * u64::from(register.number());
        registers.set(register, memory.data(context.wrapping_add(offset))?);
    }
    registers.rip = memory.data(context.wrapping_add(field::CONTEXT_RIP))?;
    Ok(())
}
