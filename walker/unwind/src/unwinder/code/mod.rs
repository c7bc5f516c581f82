//! The code from an interrupted instruction on: what it does to the frame until it leaves the function.

mod instruction;
mod state;
#[cfg(test)]
mod tests;
mod usual;

pub(super) use instruction::{Effect, Instruction, decode};
#[cfg(feature = "macho")]
pub(super) use state::mixed;
pub(super) use state::{Source, State};

use super::{Position, Step, Trust, UnwindError};
use crate::cfi::NONVOLATILE;
use crate::memory::Memory;
use crate::registers::{Gpr, RegisterSet, Registers};
use state::PRESERVED;

/// Makes the step from an instruction that leads to a return, or to a jump into another function.
pub(super) fn leave<M: Memory + ?Sized>(
    state: &State,
    registers: &mut Registers,
    memory: &M,
) -> Result<Step, UnwindError> {
    let unknown = UnwindError::NoFrameInformation { address: registers.rip };
    let (at, _) = state.top().ok_or(unknown)?;
    restore(state, at.wrapping_add(8), [].into_iter(), registers, memory)
}

/// Restores the registers of the caller, whose stack pointer is `cfa`: those `saved` at a distance
/// below it, and the others from where the state has them. Not inlined: the code has been followed, so
/// the stack need is not added up.
#[inline(never)]
pub(super) fn restore<M: Memory + ?Sized>(
    state: &State,
    cfa: u64,
    saved: impl Iterator<Item = (Gpr, u16)>,
    registers: &mut Registers,
    memory: &M,
) -> Result<Step, UnwindError> {
    let rsp = registers.rsp();
    if cfa <= rsp {
        return Err(UnwindError::NoProgress { rsp, caller_rsp: cfa });
    }
    let contradiction = UnwindError::CodeContradictsTable { address: registers.rip };
    let mut sources = PRESERVED.map(|register| state.register(register));
    for (register, below) in saved {
        let at = PRESERVED.iter().position(|it| *it == register);
        let source = at.and_then(|at| sources.get_mut(at)).ok_or(contradiction)?;
        *source = state.word(cfa.wrapping_sub(below.into()));
    }
    let (mut gpr, mut found, mut kept) = (registers.gpr, RegisterSet::EMPTY, RegisterSet::EMPTY);
    let mut needed = RegisterSet::of(&[Gpr::Rsp]);
    if state.needs_rbp {
        needed = needed.with(Gpr::Rbp);
    }
    for (register, source) in PRESERVED.into_iter().zip(sources) {
        gpr[register as usize] = match source {
            Source::Register(same) if same == register => {
                kept = kept.with(register);
                continue;
            }
            Source::Register(other) => {
                needed = needed.with(other);
                registers.get(other)
            }
            Source::Stack(distance) => memory.read_u64(rsp.wrapping_add_signed(distance.into()))?,
            Source::Lost => return Err(contradiction),
        };
        found = found.with(register);
    }
    let Source::Stack(distance) = state.word(cfa.wrapping_sub(8)) else {
        return Err(contradiction);
    };
    registers.rip = memory.read_u64(rsp.wrapping_add_signed(distance.into()))?;
    registers.gpr = gpr;
    registers.set(Gpr::Rsp, cfa);
    Ok(Step {
        trust: Trust::FollowedCode,
        establisher_frame: cfa,
        handler: None,
        caller: Position::ReturnAddress,
        found: found.with(Gpr::Rsp),
        kept,
        needed,
    })
}

const _: () = {
    let preserved = RegisterSet::of(&PRESERVED).with(Gpr::Rsp);
    assert!(preserved.contains_all(NONVOLATILE) && NONVOLATILE.contains_all(preserved));
};
