//! The lazy machine state of a HelperMethodFrame: the registers of the helper's managed caller are
//! found only when somebody asks (contract §8.6).

use super::layout::{self, Convention};
use super::{FrameReader, FrameShape};
use crate::memory::{TargetMemory, read_u32};
use crate::{CodeManager, NativeCode};
use clr_walker::memory::{Memory, Unreadable};
use clr_walker::registers::{Gpr, Registers};
use clr_walker::unwind::{Position, UnwindError, Unwinder};

/// No helper has more native frames below it.
const DEPTH_LIMIT: u32 = 1 << 12;

/// Why a machine state cannot be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LazyStateError {
    /// Memory could not be read or written.
    Fault(Unreadable),
    /// Native code cannot be unwound, which on Unix is fatal.
    Native {
        /// Its address (VA).
        at: u64,
    },
}

impl From<Unreadable> for LazyStateError {
    fn from(unreadable: Unreadable) -> Self {
        Self::Fault(unreadable)
    }
}

/// What completing a HelperMethodFrame writes into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    /// The Frame (VA).
    at: u64,
    convention: Convention,
    registers: Registers,
    method: Option<u64>,
}

impl<M: Memory + ?Sized> FrameReader<'_, M> {
    /// What is missing for the Frame to be read: nothing, unless it is a HelperMethodFrame that
    /// nobody has asked before.
    pub(crate) fn missing(
        &self,
        native: &NativeCode<'_>,
        code: &CodeManager<'_>,
    ) -> Result<Option<Completion>, LazyStateError> {
        let convention = Convention::of(self.generation);
        let state = convention.machine_state;
        if self.kind.shape() != FrameShape::HelperMethod || self.field(state.return_slot)? != 0 {
            return Ok(None);
        }
        let mut registers =
            Registers { rip: self.field(state.captured_rip)?, ..Registers::default() };
        registers.set(Gpr::Rsp, self.field(state.captured_rsp)?.wrapping_add(8));
        for (register, n) in convention.callee_saved.iter().zip(0..) {
            registers.set(*register, self.field(state.captured + 8 * n)?);
        }
        let entry = self.field(layout::FCALL_ENTRY)?;
        let attributes = read_u32(self.memory, self.at.wrapping_add(layout::HELPER_ATTRIBUTES))?;
        let exactly = if attributes & layout::CAPTURE_DEPTH_2 != 0 {
            Some(2)
        } else if entry != 0 || attributes & layout::EXACT_DEPTH != 0 {
            Some(1)
        } else {
            None
        };
        for depth in 0..DEPTH_LIMIT {
            let arrived = match exactly {
                Some(frames) => depth >= frames,
                None => code.find(registers.rip).is_some(),
            };
            if arrived {
                let method = native.fcall_method(entry);
                return Ok(Some(Completion { at: self.at, convention, registers, method }));
            }
            self.unwind_native(native, &mut registers)?;
        }
        Err(LazyStateError::Native { at: registers.rip })
    }

    /// On Windows by the image's function table; what is in none is a leaf (C-146). On Unix by call
    /// frame information, as libunwind does it: rip is taken for a return address, so that what is
    /// described in front of it counts.
    fn unwind_native(
        &self,
        native: &NativeCode<'_>,
        registers: &mut Registers,
    ) -> Result<(), LazyStateError> {
        let at = registers.rip;
        let unix = self.generation.is_unix();
        let position = if unix { Position::ReturnAddress } else { Position::Interrupted };
        let described = || {
            let (region, rva) = native.map().find(at.wrapping_sub(1))?;
            region.cfi()?.function(rva)
        };
        if unix && described().is_none() {
            return Err(LazyStateError::Native { at });
        }
        let unwinder = Unwinder::new(native.map()).with_rules(self.generation.unwind_rules());
        match unwinder.step(registers, position, self.memory) {
            Ok(_) => Ok(()),
            Err(UnwindError::Stack(unreadable)) => Err(unreadable.into()),
            Err(_) => Err(LazyStateError::Native { at }),
        }
    }
}

impl Completion {
    /// Writes it. The real runtime points to where the helper saved each register; here all point
    /// to the values that were found, kept where the captured ones were.
    pub(crate) fn write<M: TargetMemory + ?Sized>(&self, memory: &mut M) -> Result<(), Unreadable> {
        let state = self.convention.machine_state;
        let field = |offset: u64| self.at.wrapping_add(offset);
        let rsp = self.registers.rsp();
        memory.write_u64(field(state.rip), self.registers.rip)?;
        memory.write_u64(field(state.rsp), rsp)?;
        for (register, n) in self.convention.callee_saved.iter().zip(0..) {
            let slot = field(state.captured + 8 * n);
            memory.write_u64(slot, self.registers.get(*register))?;
            memory.write_u64(field(state.pointers + 8 * n), slot)?;
        }
        if let Some(method) = self.method {
            memory.write_u64(field(layout::HELPER_METHOD), method)?;
        }
        // Last: it says that the state is complete.
        memory.write_u64(field(state.return_slot), rsp.wrapping_sub(8))
    }
}

#[cfg(test)]
mod tests;
