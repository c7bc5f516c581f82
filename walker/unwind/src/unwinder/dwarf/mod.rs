//! Unwinding by DWARF call frame information: `.eh_frame` and `.debug_frame`.
//!
//! The rules are those of DWARF 5 §6.4, the System V psABI for x86-64, and the Linux Standard Base.
//! Steps read the rows of a [`CfiTable`].

mod below;
mod entered_by_return;
mod expression;
mod fallback;
mod general;
mod leaving;
mod simple;

#[cfg(feature = "macho")]
pub(super) use fallback::pop;
pub(super) use leaving::step_by_code;

use super::{Guesses, Position, Step, UnwindError};
use crate::cfi::{CfiTable, Found, General, Rule};
use crate::code_map::{CodeMap, CodeRegion};
use crate::memory::Memory;
use crate::registers::Registers;

/// The place where a step begins.
#[derive(Clone, Copy)]
pub(super) struct Place<'s, 'a> {
    pub(super) map: &'s CodeMap<'a>,
    pub(super) region: &'s CodeRegion<'a>,
    pub(super) table: &'s CfiTable<'a>,
    /// RVA of the instruction whose row counts: rip, or the byte before the return address.
    pub(super) rva: u32,
}

impl Place<'_, '_> {
    /// Returns the place of interrupted code, and `None` at a return address.
    #[inline]
    fn interrupted(self, position: Position) -> Option<Self> {
        (position == Position::Interrupted).then_some(self)
    }
}

/// Moves `registers` from a frame to its caller; on an error they stay as they were.
#[inline]
pub(super) fn step<M: Memory + ?Sized>(
    place: Place<'_, '_>,
    guesses: Guesses,
    registers: &mut Registers,
    position: Position,
    memory: &M,
) -> Result<Step, UnwindError> {
    if position == Position::Interrupted {
        return interrupted_step(place, guesses, registers, memory);
    }
    if let Found::Simple(rule) = place.table.find(place.rva) {
        return rule.apply(registers, None, memory);
    }
    any_step(place, guesses, registers, position, memory)
}

/// Makes the step from interrupted code: by call frame information, unless the code contradicts it.
#[inline(never)]
fn interrupted_step<M: Memory + ?Sized>(
    place: Place<'_, '_>,
    guesses: Guesses,
    registers: &mut Registers,
    memory: &M,
) -> Result<Step, UnwindError> {
    let position = Position::Interrupted;
    if let Found::Nothing = place.table.find(place.rva) {
        let known = fallback::step(place, guesses, registers, position, memory);
        return match known {
            Ok(_) | Err(UnwindError::EndOfStack { .. }) => known,
            Err(_) => leaving::step(place, registers, memory).map_or(known, Ok),
        };
    }
    if let Some(step) = leaving::step(place, registers, memory) {
        return Ok(step);
    }
    let row = any_step(place, guesses, registers, position, memory);
    match row {
        Ok(_) | Err(UnwindError::EndOfStack { .. }) => row,
        // A slot of the red zone may be unreadable.
        Err(_) => leaving::step_without_row(place, registers, memory).map_or(row, Ok),
    }
}

/// Returns the rule of the step from a return address, if it is a simple one.
#[inline]
pub(super) fn simple_rule(place: Place<'_, '_>) -> Option<Rule> {
    match place.table.find(place.rva) {
        Found::Simple(rule) => Some(rule),
        _ => None,
    }
}

/// Makes the step by call frame information, or if there is none by known bytes.
#[inline(never)]
pub(super) fn any_step<M: Memory + ?Sized>(
    place: Place<'_, '_>,
    guesses: Guesses,
    registers: &mut Registers,
    position: Position,
    memory: &M,
) -> Result<Step, UnwindError> {
    let Place { region, table, rva, .. } = place;
    let found = table.find(rva);
    // A signal trampoline was not called: the kernel made its address the handler's return address.
    // A description that does not begin a byte early, as glibc's does, is found at the address
    // itself. If the byte before it has a rule, that rule counts: interrupt frames make calls too.
    if position == Position::ReturnAddress
        && let Found::Nothing = found
        && let Some(rip_rva) = region.rva(registers.rip)
        && let Found::General = table.find(rip_rva)
        && let Some(step) = trampoline_step(Place { rva: rip_rva, ..place }, registers, memory)
    {
        return step;
    }
    match found {
        Found::Simple(rule) => rule.apply(registers, place.interrupted(position), memory),
        Found::General => general_step(place, registers, position, memory),
        Found::Fault(error) => Err(error.into()),
        Found::Nothing => fallback::step(place, guesses, registers, position, memory),
    }
}

/// Makes the step by the general rule at `place`.
#[inline(never)]
fn general_step<M: Memory + ?Sized>(
    place: Place<'_, '_>,
    registers: &mut Registers,
    position: Position,
    memory: &M,
) -> Result<Step, UnwindError> {
    let mut rule = General::new();
    if !place.table.general(place.rva, &mut rule) {
        return Err(UnwindError::NoFrameInformation { address: registers.rip });
    }
    rule.apply(place, registers, position, memory)
}

/// Returns true if the general rule at `rva` is that of a signal's trampoline.
#[inline(never)]
#[cfg(feature = "macho")]
pub(super) fn is_signal_frame(table: &CfiTable<'_>, rva: u32) -> bool {
    let mut rule = General::new();
    table.general(rva, &mut rule) && rule.row.signal_frame
}

/// Makes the step if the general rule at `place` is that of a signal's trampoline, to which a handler
/// returns.
#[inline(never)]
fn trampoline_step<M: Memory + ?Sized>(
    place: Place<'_, '_>,
    registers: &mut Registers,
    memory: &M,
) -> Option<Result<Step, UnwindError>> {
    let mut rule = General::new();
    let found = place.table.general(place.rva, &mut rule) && rule.row.signal_frame;
    found.then(|| rule.apply(place, registers, Position::ReturnAddress, memory))
}
