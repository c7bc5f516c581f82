//! A thread's explicit Frames, as the runtime keeps them in memory.

use super::layout::{Kind, Layout, Shape, field};
use super::reads::Noted;
use super::vtables::Vtables;
use clr_unwind::{Gpr, Memory, Registers, Unreadable};
use clr_walker::profiling::{StackBounds, ThreadId};

/// Maximum number of Frames of a thread.
const MOST_FRAMES: usize = 4096;
/// `FRAME_TOP`: the end of a chain.
const FRAME_TOP: u64 = u64::MAX;

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
        let frames: Vec<_> = iterate(thread, layout, vtables, memory).collect();
        let is_within = frames.iter().all(|frame| stack.contain(frame.at));
        let last = frames.last().map_or(thread.0 + layout.top_frame, |last| last.at + field::NEXT);
        let is_whole = is_within && frames.len() < MOST_FRAMES && word(last)? == FRAME_TOP;
        is_whole.then_some(Self { is_cooperative, frames })
    }
}

/// Returns a thread's Frames, the topmost first, as far as their kinds are known and their addresses
/// ascend. Allocates nothing.
pub(super) fn iterate<M: Memory>(
    thread: ThreadId,
    layout: &Layout,
    vtables: &Vtables,
    memory: &M,
) -> impl Iterator<Item = Frame> {
    let (mut link, mut last) = (thread.0.wrapping_add(layout.top_frame), 0);
    let next = move || {
        let word = |address: u64| memory.read_u64(address).ok();
        let at = word(link).filter(|at| *at != FRAME_TOP && *at > last)?;
        let kind = vtables.kind(word(at)?)?;
        (link, last) = (at.wrapping_add(field::NEXT), at);
        Some(Frame { at, kind })
    };
    std::iter::from_fn(next).take(MOST_FRAMES)
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
        let saved = layout.saved;
        let names = saved.registers;
        let size = 8 * names.len() as u64;
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
                let end = block.wrapping_add(saved.transition_block);
                registers.rip = memory.data(end.wrapping_sub(8))?;
                registers.set(Gpr::Rsp, end);
                load(&mut registers, names, end.wrapping_sub(8 + size), memory)?;
            }
            Shape::Helper => {
                memory.field(at(field::FIRST))?;
                if memory.field(at(saved.machine_return))? == 0 {
                    return Ok(None);
                }
                registers.rip = memory.data(at(field::MACHINE_RIP))?;
                registers.set(Gpr::Rsp, memory.data(at(field::MACHINE_RSP))?);
                for (register, offset) in names.iter().zip((0..).step_by(8)) {
                    let pointer = memory.field(at(saved.machine_pointers + offset))?;
                    let value = match saved.machine_values {
                        Some(values) if pointer == 0 => memory.data(at(values + offset))?,
                        _ => memory.data(pointer)?,
                    };
                    registers.set(*register, value);
                }
            }
            Shape::Hijack => {
                registers.rip = memory.data(at(field::FIRST))?;
                let arguments = memory.field(at(field::ARGUMENTS))?;
                load(&mut registers, names, arguments.wrapping_add(saved.hijacked), memory)?;
                let end = arguments.wrapping_add(saved.hijacked + size);
                // Else the return address follows.
                let sp =
                    if layout.has_hijacked_sp { memory.data(end)? } else { end.wrapping_add(8) };
                registers.set(Gpr::Rsp, sp);
            }
            Shape::Resumable => {
                let context = memory.field(at(field::FIRST))?;
                load_context(&mut registers, context, memory)?;
            }
            Shape::Faulting => load_context(&mut registers, at(field::ARGUMENTS), memory)?,
            Shape::Software => {
                let context = at(layout.software_context);
                registers.rip = memory.data(context.wrapping_add(field::CONTEXT_RIP))?;
                for register in names.iter().copied().chain([Gpr::Rsp]) {
                    let offset = field::CONTEXT_RAX + 8 * u64::from(register.number());
                    registers.set(register, memory.data(context.wrapping_add(offset))?);
                }
                // The runtime asks for this word alone whether the Frame leads anywhere.
                memory.data(at(field::FIRST))?;
            }
            Shape::TailCall => {
                load(&mut registers, names, at(field::TAIL_CALL), memory)?;
                let slot = at(field::TAIL_CALL + size);
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
    names: &[Gpr],
    first: u64,
    memory: &Noted<'_, M>,
) -> Result<(), Unreadable> {
    for (register, offset) in names.iter().zip((0..).step_by(8)) {
        registers.set(*register, memory.data(first.wrapping_add(offset))?);
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

#[cfg(test)]
mod tests {
    use super::*;
    use clr_unwind::{Convention, Segment, Segments};

    const AT: u64 = 0x10_0000;
    const BLOCK: u64 = AT + 0x100;

    /// Returns the registers that a Frame of this class leads to, whose structure at [`BLOCK`] has the
    /// number of each word in it.
    fn target(name: &str, convention: Convention, fields: &[(u64, u64)]) -> Registers {
        let mut words: Vec<u64> = (0..0x40).collect();
        for (offset, value) in fields {
            words[(offset / 8) as usize] = *value;
        }
        for (number, word) in words[0x20..].iter_mut().enumerate() {
            *word = number as u64;
        }
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let memory = Segments::new([Segment::new(AT, &bytes)]).unwrap();
        let layout = Layout::of([8, 0, 4], convention, None).unwrap();
        let kind = layout.frames().find(|kind| kind.name == name).unwrap();
        let noted = Noted::new(&memory);
        let before = Registers::default();
        Frame { at: AT, kind }.target(&layout, &noted, &before).unwrap().unwrap()
    }

    /// By CalleeSavedRegisters and TransitionBlock of contract §3.5.
    #[test]
    fn a_transition_block_has_two_more_registers_on_windows_and_six_arguments_less() {
        let fields = [(field::FIRST, BLOCK)];
        let found = target("PrestubMethodFrame", Convention::SystemV, &fields);
        assert_eq!((found.rip, found.rsp()), (12, BLOCK + 0x68));
        assert_eq!((found.get(Gpr::R12), found.get(Gpr::Rbp), found.get(Gpr::Rdi)), (6, 11, 0));
        let found = target("PrestubMethodFrame", Convention::WindowsX64, &fields);
        assert_eq!((found.rip, found.rsp()), (8, BLOCK + 0x48));
        let saved = [Gpr::Rdi, Gpr::Rsi, Gpr::Rbx, Gpr::Rbp, Gpr::R12, Gpr::R15];
        assert_eq!(saved.map(|register| found.get(register)), [0, 1, 2, 3, 4, 7]);
    }

    #[test]
    fn a_hijack_frame_leads_behind_its_arguments_or_to_the_stack_pointer_in_them() {
        let fields = [(field::FIRST, 0x77), (field::ARGUMENTS, BLOCK)];
        let found = target("HijackFrame", Convention::SystemV, &fields);
        assert_eq!((found.rip, found.rsp()), (0x77, BLOCK + 0x48));
        assert_eq!((found.get(Gpr::R12), found.get(Gpr::Rbp)), (2, 7));
        let found = target("HijackFrame", Convention::WindowsX64, &fields);
        assert_eq!((found.rip, found.rsp()), (0x77, 9), "which is in them");
        assert_eq!((found.get(Gpr::Rdi), found.get(Gpr::R15)), (1, 8));
    }
}
