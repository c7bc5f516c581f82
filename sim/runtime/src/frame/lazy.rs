//! The lazy machine state of a HelperMethodFrame: the runtime finds the registers of the helper's
//! managed caller only on demand (contract §8.6).

use super::layout::{self, FrameConvention};
use super::{FrameReader, FrameShape};
use crate::memory::{TargetMemory, read_u32};
use crate::{CodeManager, NativeCode};
use clr_unwind::{Gpr, Memory, Position, Registers, Unreadable, UnwindError, Unwinder};

/// Limit on the native frames below a helper's Frame.
const DEPTH_LIMIT: u32 = 1 << 12;

/// Reason why a machine state cannot be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LazyStateError {
    /// Memory could not be read or written.
    Fault(Unreadable),
    /// Native code cannot be unwound, which is fatal on Unix.
    Native {
        /// Address of the code (VA).
        at: u64,
    },
}

impl From<Unreadable> for LazyStateError {
    fn from(unreadable: Unreadable) -> Self {
        Self::Fault(unreadable)
    }
}

/// The values that are written into a HelperMethodFrame to complete it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    at: u64,
    convention: FrameConvention,
    registers: Registers,
    method: Option<u64>,
}

impl<M: Memory + ?Sized> FrameReader<'_, M> {
    /// Returns the values that the Frame lacks, or `None` if it can be read as it is: if it is not
    /// a HelperMethodFrame, or is already complete.
    pub(crate) fn missing(
        &self,
        native: &NativeCode<'_>,
        code: &CodeManager<'_>,
    ) -> Result<Option<Completion>, LazyStateError> {
        let convention = FrameConvention::of(self.generation);
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

    /// Unwinds one native frame. On Windows the image's function table is used, and code without an
    /// entry is a leaf (C-146). On Unix call frame information is used as libunwind does: rip is
    /// taken for a return address, so the description of the preceding byte applies.
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
    /// Writes the values. The real runtime stores pointers to the slots in which the helper saved
    /// each register; here all pointers lead to the values found, which replace the captured ones.
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
        // Written last: it marks the state as complete.
        memory.write_u64(field(state.return_slot), rsp.wrapping_sub(8))
    }
}

#[cfg(test)]
mod tests;
