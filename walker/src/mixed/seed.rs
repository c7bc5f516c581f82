//! Seeds: the CONTEXTs that `DoStackSnapshot` starts from.

use super::Stopped;
use super::cursor::{Cursor, Steps};
use super::reason::SeedRefused;
use crate::profiling::{StackBounds, TargetThread, ThreadContext};
use clr_unwind::Registers;
use core::marker::PhantomData;

/// Size in bytes of a seed, which is the largest size of a CONTEXT (contract §1.7, C-162).
const SIZE: usize = 0xC20;
/// Offset of ContextFlags in bytes.
const FLAGS: usize = 0x30;

/// A seed: registers of a frame of a stopped thread, valid for as long as it is stopped.
#[derive(Clone, Copy, Debug)]
pub struct Seed<'s> {
    registers: Registers,
    stopped: PhantomData<&'s ()>,
}

impl<'s> Seed<'s> {
    /// Creates a seed from the thread's own registers.
    ///
    /// # Errors
    /// [`SeedRefused`] if they must not be a seed.
    pub fn at_context<T: TargetThread>(stopped: &'s Stopped<'_, T>) -> Result<Self, SeedRefused> {
        let context = stopped.context().map_err(|_| SeedRefused::NoContext)?;
        Self::checked(&context.registers, stopped.target().stack())
    }

    /// Creates a seed from a frame that the thread's own registers have been unwound to.
    pub(super) fn new<T: TargetThread>(
        stopped: &'s Stopped<'_, T>,
        cursor: &Cursor,
        steps: &Steps<'_, '_, T>,
    ) -> Result<Self, SeedRefused> {
        let convention = steps.unwinder.convention();
        if let Some(register) = convention.nonvolatile().difference(cursor.known).gprs().next() {
            return Err(SeedRefused::LostRegister { register });
        }
        let seed = Self::checked(&cursor.registers, stopped.target().stack())?;
        if steps.has_no_caller(*cursor) {
            return Err(SeedRefused::NoCaller { sp: cursor.registers.rsp() });
        }
        Ok(seed)
    }

    fn checked(registers: &Registers, stack: StackBounds) -> Result<Self, SeedRefused> {
        let sp = registers.rsp();
        if !stack.contain(sp) {
            return Err(SeedRefused::OutsideStack { sp });
        }
        if !sp.is_multiple_of(8) {
            return Err(SeedRefused::Unaligned { sp });
        }
        Ok(Self { registers: *registers, stopped: PhantomData })
    }

    /// Returns the registers.
    pub const fn registers(&self) -> &Registers {
        &self.registers
    }

    /// Returns the CONTEXT, of the largest size, because contextSize is ignored (C-022).
    pub(super) fn context(&self) -> SeedContext {
        let mut bytes = [0; SIZE];
        // The buffer is long enough, so this cannot fail.
        let _ = self.registers.write_context(&mut bytes);
        if let Some(flags) = bytes.get_mut(FLAGS..FLAGS + 4) {
            flags.copy_from_slice(&ThreadContext::FULL.to_le_bytes());
        }
        SeedContext(bytes)
    }
}

/// A seed's CONTEXT, aligned as the runtime's own (contract §1.7).
#[repr(C, align(16))]
pub(super) struct SeedContext(pub [u8; SIZE]);
