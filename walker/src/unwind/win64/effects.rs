//! What unwind codes do, apart from what it is done to.

use super::super::UnwindError;
use crate::memory::Memory;
use crate::registers::{Gpr, Registers};

/// The state that unwind codes are undone on: real registers ([`Draft`]), or expressions in them
/// ([`Rule`](super::rule::Rule)). There is one interpreter of unwind codes for both.
pub(super) trait Effects {
    /// An address in the target's memory.
    type Address: Copy;

    /// `address` + `bytes`, wrapping.
    fn offset(address: Self::Address, bytes: i64) -> Self::Address;

    /// The value of a register as it now is.
    fn value(&mut self, register: Gpr) -> Self::Address;

    fn set_rsp(&mut self, address: Self::Address);

    fn load(&mut self, register: Gpr, address: Self::Address) -> Result<(), UnwindError>;

    /// Restores xmm*n*. xmm0 to xmm5 are volatile: read, as Windows does, and dropped.
    fn load_xmm(&mut self, n: u8, address: Self::Address) -> Result<(), UnwindError>;

    /// Takes the return address.
    fn load_rip(&mut self, address: Self::Address) -> Result<(), UnwindError>;

    fn rsp(&mut self) -> Self::Address {
        self.value(Gpr::Rsp)
    }

    fn add_rsp(&mut self, bytes: i64) {
        let rsp = self.rsp();
        self.set_rsp(Self::offset(rsp, bytes));
    }

    /// `pop register`. A popped rsp is the value read plus 8, as Windows has it: the add comes last.
    fn pop(&mut self, register: Gpr) -> Result<(), UnwindError> {
        let rsp = self.rsp();
        self.load(register, rsp)?;
        self.add_rsp(8);
        Ok(())
    }

    /// `ret`.
    fn pop_rip(&mut self) -> Result<(), UnwindError> {
        let rsp = self.rsp();
        self.load_rip(rsp)?;
        self.add_rsp(8);
        Ok(())
    }

    /// Takes rip and rsp from the machine frame at rsp (`iretq`), behind an error code or not.
    fn pop_machine_frame(&mut self, error_code: bool) -> Result<(), UnwindError> {
        let rsp = self.rsp();
        let frame = Self::offset(rsp, if error_code { 8 } else { 0 });
        self.load_rip(frame)?;
        self.load(Gpr::Rsp, Self::offset(frame, 24))
    }
}

/// Registers in the making: written back only when a step has succeeded.
pub(super) struct Draft<'m, M: ?Sized> {
    memory: &'m M,
    rip: u64,
    gpr: [u64; 16],
    /// xmm6 to xmm15 once one of them was restored: few functions save any.
    xmm: Option<[u128; 10]>,
    /// xmm6 to xmm15 before the step.
    xmm_before: &'m [u128; 10],
}

impl<'m, M: Memory + ?Sized> Draft<'m, M> {
    #[inline]
    pub(super) fn new(registers: &'m Registers, memory: &'m M) -> Self {
        Self {
            memory,
            rip: registers.rip,
            gpr: registers.gpr,
            xmm: None,
            xmm_before: &registers.xmm,
        }
    }

    /// The registers as they now are, to be written back with [`Restored::commit`].
    #[inline]
    pub(super) fn finish(self) -> Restored {
        Restored { rip: self.rip, gpr: self.gpr, xmm: self.xmm }
    }
}

/// The registers of a caller, complete.
pub(super) struct Restored {
    rip: u64,
    gpr: [u64; 16],
    xmm: Option<[u128; 10]>,
}

impl Restored {
    #[inline]
    pub(super) fn commit(self, registers: &mut Registers) {
        registers.rip = self.rip;
        registers.gpr = self.gpr;
        if let Some(xmm) = self.xmm {
            registers.xmm = xmm;
        }
    }
}

impl<M: Memory + ?Sized> Effects for Draft<'_, M> {
    type Address = u64;

    #[inline]
    fn offset(address: u64, bytes: i64) -> u64 {
        address.wrapping_add_signed(bytes)
    }

    #[inline]
    fn value(&mut self, register: Gpr) -> u64 {
        self.gpr[register as usize]
    }

    #[inline]
    fn set_rsp(&mut self, address: u64) {
        self.gpr[Gpr::Rsp as usize] = address;
    }

    #[inline]
    fn load(&mut self, register: Gpr, address: u64) -> Result<(), UnwindError> {
        self.gpr[register as usize] = self.memory.read_u64(address)?;
        Ok(())
    }

    fn load_xmm(&mut self, n: u8, address: u64) -> Result<(), UnwindError> {
        let value = self.memory.read_u128(address)?;
        let xmm = self.xmm.get_or_insert(*self.xmm_before);
        if let Some(slot) = n.checked_sub(6).and_then(|i| xmm.get_mut(usize::from(i))) {
            *slot = value;
        }
        Ok(())
    }

    #[inline]
    fn load_rip(&mut self, address: u64) -> Result<(), UnwindError> {
        self.rip = self.memory.read_u64(address)?;
        Ok(())
    }
}
