//! Steps by simple rules, which are those of nearly all code.

use super::{Place, below};
use crate::cfi::{NONVOLATILE, Rule};
use crate::memory::Memory;
use crate::registers::{Gpr, RegisterSet, Registers};
use crate::unwinder::{Position, Step, Trust, UnwindError};

impl Rule {
    /// Makes the step. `interrupted` is the place of interrupted code, and `None` at a return
    /// address.
    #[expect(clippy::inline_always, reason = "measured: a Step in memory costs 2 ns")]
    #[inline(always)]
    pub(in crate::unwinder) fn apply<M: Memory + ?Sized>(
        &self,
        registers: &mut Registers,
        interrupted: Option<Place<'_, '_>>,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        let rsp = registers.rsp();
        let base = registers.gpr[usize::from(self.cfa_register & 15)];
        let cfa = base.wrapping_add_signed(self.cfa_offset.into());
        if cfa <= rsp {
            if self.is_root() {
                return Err(UnwindError::EndOfStack { address: registers.rip });
            }
            // Interrupted code may have taken its return address off the stack.
            if cfa < rsp || interrupted.is_none() {
                return Err(UnwindError::NoProgress { rsp, caller_rsp: cfa });
            }
        }
        let len = usize::from(self.window);
        let start = cfa.wrapping_sub(self.window.into());
        let mut found = self.found;
        if start < rsp {
            found = self.load_above(cfa, registers, interrupted, memory)?;
        } else if let Some(window) = memory.window(start, len) {
            let word = |below: usize| {
                let at = len.wrapping_sub(below);
                let bytes = window.get(at..).and_then(<[u8]>::first_chunk);
                bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
            };
            for load in self.loads.iter().take(usize::from(self.count)) {
                registers.gpr[load.register() & 15] = word(load.below().into());
            }
            registers.rip = word(8);
        } else {
            self.load(cfa, registers, memory)?;
        }
        registers.set(Gpr::Rsp, cfa);
        let found = RegisterSet::from_gpr_bits(found).with(Gpr::Rsp);
        // Registers that an epilogue has restored are the caller's, whichever they are.
        let kept = NONVOLATILE.union(RegisterSet::from_gpr_bits(self.found));
        Ok(Step {
            trust: if self.is_of_compact() { Trust::Compact } else { Trust::Cfi },
            establisher_frame: cfa,
            handler: None,
            caller: Position::ReturnAddress,
            found,
            kept: kept.difference(found),
            needed: RegisterSet::from_gpr_bits(1 << (self.cfa_register & 15)),
        })
    }

    /// Loads all registers except rsp one by one, for memory that has no window.
    fn load<M: Memory + ?Sized>(
        &self,
        cfa: u64,
        registers: &mut Registers,
        memory: &M,
    ) -> Result<(), UnwindError> {
        let mut gpr = registers.gpr;
        let rip = memory.read_u64(cfa.wrapping_sub(8))?;
        for load in self.loads.iter().take(usize::from(self.count)) {
            let address = cfa.wrapping_sub(load.below().into());
            gpr[load.register() & 15] = memory.read_u64(address)?;
        }
        (registers.gpr, registers.rip) = (gpr, rip);
        Ok(())
    }
    /// Loads all registers except rsp, of which some have their slots below rsp, and returns those that were
    /// loaded, as bits by encoding.
    #[cold]
    #[inline(never)]
    fn load_above<M: Memory + ?Sized>(
        &self,
        cfa: u64,
        registers: &mut Registers,
        interrupted: Option<Place<'_, '_>>,
        memory: &M,
    ) -> Result<u16, UnwindError> {
        let rsp = registers.rsp();
        let (mut gpr, mut found) = (registers.gpr, 0);
        let rip = memory.read_u64(cfa.wrapping_sub(8))?;
        for load in self.loads.iter().take(usize::from(self.count)) {
            let address = cfa.wrapping_sub(load.below().into());
            let saved = if address < rsp {
                below::saved(address, rsp, interrupted, memory)?
            } else {
                Some(memory.read_u64(address)?)
            };
            if let Some(saved) = saved {
                gpr[load.register() & 15] = saved;
                found |= 1 << (load.register() & 15);
            }
        }
        (registers.gpr, registers.rip) = (gpr, rip);
        Ok(found)
    }
}
