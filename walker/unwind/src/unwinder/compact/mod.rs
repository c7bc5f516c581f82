//! Unwinding by compact unwind information, and by the code where that says nothing.
//!
//! An encoding describes the frame at calls. At an interrupted instruction the code is followed to
//! the next call or return, so prologues, epilogues and frames that are made late need no special
//! treatment.

mod follow;

use super::code::{State, leave, restore};
use super::{Guesses, Position, Step, Trust, UnwindError, dwarf};
use crate::cfi::{Column, Found, Rule};
use crate::code_map::CodeRegion;
use crate::compact::{CompactError, CompactProblem, CompactTable, Entry, Layout, SavedRegisters};
use crate::memory::Memory;
use crate::registers::{Gpr, RegisterSet, Registers};
use follow::{Code, Destination};

/// A fixed frame, as an entry describes it outside prologue and epilogues.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// The register that the canonical frame address counts from.
    base: Gpr,
    /// Distance of the canonical frame address from the register in bytes.
    size: u32,
    saved: SavedRegisters,
}

impl Frame {
    /// Returns the saved registers with the distances of their slots below the canonical frame
    /// address.
    fn saved(&self) -> impl Iterator<Item = (Gpr, u16)> + '_ {
        let pointer = (self.base == Gpr::Rbp).then_some((Gpr::Rbp, 16));
        pointer.into_iter().chain(self.saved.iter())
    }

    /// Returns the same frame as a rule; `None` if it has an impossible size.
    fn rule(&self) -> Option<Rule> {
        let offset = self.size.try_into().ok()?;
        let mut rule = Rule::new().with_cfa(Column::from(self.base), offset)?;
        for (register, below) in self.saved() {
            rule = rule.with_load(register.number(), -i32::from(below))?;
        }
        Some(rule.of_compact())
    }
}

/// The meaning of the table for an address.
enum Described {
    /// A frame.
    Frame(Frame),
    /// Call frame information has it.
    ByDwarf,
    /// Nothing is known.
    Nothing,
}

/// Returns the frame of the function at `rva`, which `table` describes.
fn describe(
    region: &CodeRegion<'_>,
    table: &CompactTable<'_>,
    rva: u32,
) -> Result<Described, CompactError> {
    let Some(entry) = table.find(rva)? else { return Ok(Described::ByDwarf) };
    let at_entry = |problem| CompactError { problem, offset: entry.range.start };
    Ok(match entry.encoding.layout().map_err(at_entry)? {
        Layout::Nothing => Described::Nothing,
        Layout::Dwarf { .. } => Described::ByDwarf,
        Layout::FramePointer(saved) => Described::Frame(Frame { base: Gpr::Rbp, size: 16, saved }),
        Layout::Frameless { size, saved } => {
            Described::Frame(Frame { base: Gpr::Rsp, size, saved })
        }
        Layout::FramelessIndirect { size_at, adjustment, saved } => {
            let size = indirect_size(region, &entry, size_at, adjustment);
            let size = size.filter(|size| u64::from(saved.extent()) <= u64::from(*size));
            let problem = CompactProblem::StackSize(entry.encoding.0);
            let size = size.ok_or(at_entry(problem))?;
            Described::Frame(Frame { base: Gpr::Rsp, size, saved })
        }
    })
}

/// Reads the size of a frame from `sub rsp, imm32` in its function.
fn indirect_size(
    region: &CodeRegion<'_>,
    entry: &Entry,
    size_at: u8,
    adjustment: u8,
) -> Option<u32> {
    let instruction = entry.range.start.checked_add(size_at.into())?.checked_sub(3)?;
    match region.bytes_from(instruction)? {
        [0x48, 0x81, 0xEC, size @ ..] => {
            u32::from_le_bytes(*size.first_chunk()?).checked_add(adjustment.into())
        }
        _ => None,
    }
}

/// The place where a step begins, in an image with compact unwind information.
#[derive(Clone, Copy)]
pub(super) struct Place<'s, 'a> {
    pub(super) table: &'s CompactTable<'a>,
    pub(super) native: dwarf::Place<'s, 'a>,
}

impl<'s, 'a> dwarf::Place<'s, 'a> {
    /// Returns the place, if its image has compact unwind information.
    #[inline]
    pub(super) fn compact(self) -> Option<Place<'s, 'a>> {
        Some(Place { table: self.region.compact()?, native: self })
    }
}

/// Returns the rule of the step from a return address, if it is a simple one.
pub(super) fn simple_rule(place: Place<'_, '_>) -> Option<Rule> {
    let dwarf::Place { region, rva, .. } = place.native;
    match describe(region, place.table, rva) {
        Ok(Described::Frame(frame)) => frame.rule(),
        Ok(_) => dwarf::simple_rule(place.native),
        Err(_) => None,
    }
}

/// Moves `registers` from a frame to its caller; on an error they stay as they were.
#[inline(never)]
pub(super) fn step<M: Memory + ?Sized>(
    place: Place<'_, '_>,
    guesses: Guesses,
    registers: &mut Registers,
    position: Position,
    memory: &M,
) -> Result<Step, UnwindError> {
    let dwarf::Place { region, rva, .. } = place.native;
    // The code was followed before, if the thread was interrupted.
    let by_dwarf = |registers: &mut Registers| {
        dwarf::any_step(place.native, guesses, registers, position, memory)
    };
    if position == Position::Interrupted && region.is_executable(rva) {
        return interrupted(place, registers, memory).unwrap_or_else(|| by_dwarf(registers));
    }
    match describe(region, place.table, rva)? {
        Described::Frame(frame) => by_frame(&frame, registers, memory),
        _ => by_dwarf(registers),
    }
}

/// Makes a step from a frame that is complete.
fn by_frame<M: Memory + ?Sized>(
    frame: &Frame,
    registers: &mut Registers,
    memory: &M,
) -> Result<Step, UnwindError> {
    let rule = frame.rule().ok_or(UnwindError::NoFrameInformation { address: registers.rip })?;
    rule.apply(registers, None, memory)
}

/// Makes a step from an interrupted instruction; `None` if call frame information or a guess has to
/// decide.
fn interrupted<M: Memory + ?Sized>(
    place: Place<'_, '_>,
    registers: &mut Registers,
    memory: &M,
) -> Option<Result<Step, UnwindError>> {
    let dwarf::Place { region, table: cfi, rva, .. } = place.native;
    if place.table.stub_helper().contains(&rva) {
        let needed = RegisterSet::of(&[Gpr::Rsp]);
        let pushed = pushed_by_stub_helper(region.bytes_from(rva)?)?;
        return Some(dwarf::pop(registers, memory, pushed, Trust::Stub, needed));
    }
    let described = describe(region, place.table, rva);
    // A row of call frame information holds for its instructions, except in epilogues: compilers for
    // macOS leave these out.
    let (frame, has_row) = match described {
        Ok(Described::Frame(frame)) => (Some(frame), false),
        _ => match cfi.find(rva) {
            Found::Nothing => (None, false),
            Found::General if dwarf::is_signal_frame(cfi, rva) => return None,
            _ => (None, true),
        },
    };
    let destination = Code { region, table: place.table, rva, has_row }.follow(registers);
    match &destination {
        Destination::Leaves(state) => match leave(state, registers, memory) {
            // Assembly may save registers below rsp.
            Err(UnwindError::CodeContradictsTable { .. }) if has_row => None,
            step => Some(step),
        },
        _ if has_row => None,
        // Intel's compilers describe leaves by frames without room for the return address.
        _ if let Err(error) = described => Some(Err(error.into())),
        Destination::CallsByRow => None,
        Destination::Calls(frame, state) => {
            let trust = if state.is_unchanged() { Trust::Compact } else { Trust::FollowedCode };
            Some(through(frame, state, trust, registers, memory))
        }
        Destination::Unknown(state) => {
            Some(through(&frame?, state, Trust::CompactAssumed, registers, memory))
        }
    }
}

/// Returns the number of bytes that a stub helper has pushed. Each function has its own part, `push
/// imm32; jmp first`; the first part is `lea r11, [rip+…]; push r11; jmp [rip+…]`.
fn pushed_by_stub_helper(code: &[u8]) -> Option<u64> {
    match code {
        [0x68, _, _, _, _, 0xE9, ..] => Some(0),
        [0xE9, ..] | [0x4C, 0x8D, 0x1D, ..] | [0x41, 0x53, ..] => Some(8),
        [0xFF, 0x25, ..] => Some(16),
        _ => None,
    }
}

/// Makes the step from an instruction that leads to a place with a complete `frame`.
fn through<M: Memory + ?Sized>(
    frame: &Frame,
    state: &State,
    trust: Trust,
    registers: &mut Registers,
    memory: &M,
) -> Result<Step, UnwindError> {
    let unknown = UnwindError::NoFrameInformation { address: registers.rip };
    let by_rbp = frame.base == Gpr::Rbp;
    let base = if by_rbp { state.rbp } else { state.rsp };
    let cfa = base.ok_or(unknown)?.wrapping_add(frame.size.into());
    let step = restore(state, cfa, frame.saved(), registers, memory)?;
    // The state is large: it is not copied to note there that rbp is needed.
    let needs_rbp = by_rbp && state.is_own(Gpr::Rbp);
    let needed = if needs_rbp { step.needed.with(Gpr::Rbp) } else { step.needed };
    Ok(Step { trust, needed, ..step })
}
