//! The operations that unwind codes perform, abstracted over the state: real registers or symbolic
//! rules.
#![expect(clippy::inline_always, reason = "a Draft that is not inlined whole costs half the speed")]

use super::super::UnwindError;
use crate::memory::Memory;
use crate::registers::{Gpr, RegisterSet, Registers};

/// The state that unwind codes are undone on: real registers ([`Draft`]), or expressions in them
/// ([`Rule`](super::rule::Rule)). There is one interpreter of unwind codes for both.
pub(super) trait Effects {
    /// An address in the target's memory.
    type Address: Copy;

    /// Returns `address` + `bytes`, wrapping.
    fn offset(address: Self::Address, bytes: i64) -> Self::Address;

    /// Returns the current value of a register.
    fn value(&mut self, register: Gpr) -> Self::Address;

    fn set_rsp(&mut self, address: Self::Address);

    fn load(&mut self, register: Gpr, address: Self::Address) -> Result<(), UnwindError>;

    /// Restores xmm*n*. The volatile xmm0 to xmm5 are read, as Windows does, and dropped.
    fn load_xmm(&mut self, n: u8, address: Self::Address) -> Result<(), UnwindError>;

    /// Loads the return address.
    fn load_rip(&mut self, address: Self::Address) -> Result<(), UnwindError>;

    #[inline(always)]
    fn rsp(&mut self) -> Self::Address {
        self.value(Gpr::Rsp)
    }

    #[inline(always)]
    fn add_rsp(&mut self, bytes: i64) {
        let rsp = self.rsp();
        self.set_rsp(Self::offset(rsp, bytes));
    }

    /// Executes `pop register`. A popped rsp becomes the value read plus 8, as in Windows: the add
    /// comes last.
    #[inline(always)]
    fn pop(&mut self, register: Gpr) -> Result<(), UnwindError> {
        let rsp = self.rsp();
        self.load(register, rsp)?;
        self.add_rsp(8);
        Ok(())
    }

    /// Executes `ret`.
    #[inline(always)]
    fn pop_rip(&mut self) -> Result<(), UnwindError> {
        let rsp = self.rsp();
        self.load_rip(rsp)?;
        self.add_rsp(8);
        Ok(())
    }

    /// Loads rip and rsp from the machine frame at rsp (`iretq`), which an error code may precede.
    #[inline(always)]
    fn pop_machine_frame(&mut self, error_code: bool) -> Result<(), UnwindError> {
        let rsp = self.rsp();
        let frame = Self::offset(rsp, if error_code { 8 } else { 0 });
        self.load_rip(frame)?;
        self.load(Gpr::Rsp, Self::offset(frame, 24))
    }
}

/// The registers of a frame while they become its caller's one by one.
pub(super) struct Draft<'d, M: ?Sized> {
    memory: &'d M,
    registers: &'d mut Registers,
    // Not in the array, which is indexed, so that the compiler keeps these in registers.
    rip: u64,
    rsp: u64,
    gpr_before: [u64; 16],
    /// xmm6 to xmm15 before the step, once one of them was restored: few functions save any.
    xmm_before: Option<[u128; 10]>,
    sources: Sources,
}

/// The registers that a step loads, and those that it counts addresses from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sources {
    pub(super) found: RegisterSet,
    pub(super) needed: RegisterSet,
}

impl Sources {
    /// The sources of every step: the stack pointer.
    pub(super) const RSP: Self = {
        let rsp = RegisterSet::of(&[Gpr::Rsp]);
        Self { found: rsp, needed: rsp }
    };

    /// Records that the value of `register` is used, which is the frame's unless it was loaded
    /// before.
    #[inline(always)]
    pub(super) fn need(&mut self, register: Gpr) {
        let unless_loaded = RegisterSet::EMPTY.with(register).difference(self.found);
        self.needed = self.needed.union(unless_loaded);
    }
}

impl<'d, M: Memory + ?Sized> Draft<'d, M> {
    /// Begins a step on `registers`, which [`finish`](Self::finish) must end.
    ///
    /// The registers are written in place, because writing a whole array back would wait for each
    /// of its parts.
    #[inline(always)]
    pub(super) fn new(registers: &'d mut Registers, memory: &'d M) -> Self {
        let (rip, rsp, gpr_before) = (registers.rip, registers.rsp(), registers.gpr);
        let sources = Sources::RSP;
        Self { memory, registers, rip, rsp, gpr_before, xmm_before: None, sources }
    }

    /// Ends the step. After an error the registers are restored to their values before it.
    #[inline(always)]
    pub(super) fn finish<T>(
        self,
        result: Result<T, UnwindError>,
    ) -> Result<(T, Sources), UnwindError> {
        match result {
            Ok(found) => {
                self.registers.rip = self.rip;
                self.registers.set(Gpr::Rsp, self.rsp);
                Ok((found, self.sources))
            }
            Err(error) => {
                self.registers.gpr = self.gpr_before;
                if let Some(xmm) = self.xmm_before {
                    self.registers.xmm = xmm;
                }
                Err(error)
            }
        }
    }
}

impl<M: Memory + ?Sized> Effects for Draft<'_, M> {
    type Address = u64;

    #[inline(always)]
    fn offset(address: u64, bytes: i64) -> u64 {
        address.wrapping_add_signed(bytes)
    }

    #[inline(always)]
    fn value(&mut self, register: Gpr) -> u64 {
        if register == Gpr::Rsp {
            return self.rsp;
        }
        self.sources.need(register);
        self.registers.get(register)
    }

    #[inline(always)]
    fn rsp(&mut self) -> u64 {
        self.rsp
    }

    #[inline(always)]
    fn set_rsp(&mut self, address: u64) {
        self.rsp = address;
    }

    #[inline(always)]
    fn load(&mut self, register: Gpr, address: u64) -> Result<(), UnwindError> {
        let value = self.memory.read_u64(address)?;
        if register == Gpr::Rsp {
            self.rsp = value;
        } else {
            self.registers.set(register, value);
        }
        self.sources.found = self.sources.found.with(register);
        Ok(())
    }

    #[inline(always)]
    fn load_xmm(&mut self, n: u8, address: u64) -> Result<(), UnwindError> {
        let value = self.memory.read_u128(address)?;
        self.xmm_before.get_or_insert(self.registers.xmm);
        if let Some(slot) =
            n.checked_sub(6).and_then(|i| self.registers.xmm.get_mut(usize::from(i)))
        {
            *slot = value;
            self.sources.found = self.sources.found.with_xmm(n);
        }
        Ok(())
    }

    #[inline(always)]
    fn load_rip(&mut self, address: u64) -> Result<(), UnwindError> {
        self.rip = self.memory.read_u64(address)?;
        Ok(())
    }
}
