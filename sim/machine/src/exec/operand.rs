//! Access to operands: registers of all sizes, memory, the stack.

use super::{Halted, Reason};
use crate::Machine;
use crate::cpu::slot;
use crate::flags::low;
use crate::memory::Refused;
use crate::op::{IN_MEMORY, PackedOp};
use crate::stop::{Access, Fault};
use clr_unwind::Gpr;

const RSP: u8 = Gpr::Rsp as u8;

impl Machine {
    #[inline(always)]
    pub(super) fn slot(&self, number: u8) -> u64 {
        self.cpu.slots[(number & 31) as usize]
    }

    /// Returns the low `BITS` bits of a register, or its second byte.
    #[inline(always)]
    pub(super) fn reg<const BITS: u32>(&self, number: u8) -> u64 {
        if BITS == 8 {
            // The flag of a second byte, shifted, is the byte's distance in bits.
            return low::<8>(self.slot(number) >> ((number & slot::HIGH) >> 4));
        }
        low::<BITS>(self.slot(number))
    }

    /// Sets a register: 32 bits clear the upper half, fewer keep the rest.
    #[inline(always)]
    pub(super) fn set_reg<const BITS: u32>(&mut self, number: u8, value: u64) {
        let register = &mut self.cpu.slots[(number & 31) as usize];
        match BITS {
            64 => *register = value,
            32 => *register = low::<32>(value),
            16 => *register = *register & !0xFFFF | low::<16>(value),
            _ => {
                let shift = (number & slot::HIGH) >> 4;
                *register = *register & !(0xFF << shift) | low::<8>(value) << shift;
            }
        }
    }

    /// Returns the address of the operand in memory.
    #[inline(always)]
    pub(super) fn address(&self, op: PackedOp) -> u64 {
        let index = self.slot(op.index()) << op.scale();
        self.slot(op.base()).wrapping_add(index).wrapping_add(op.disp())
    }

    /// Reads `BITS` bits of memory.
    #[inline(always)]
    pub(super) fn read_mem<const BITS: u32>(&mut self, address: u64) -> Result<u64, Halted> {
        let value = match BITS {
            64 => self.memory.load(address).map(u64::from_le_bytes),
            32 => self.memory.load(address).map(|bytes| u32::from_le_bytes(bytes).into()),
            16 => self.memory.load(address).map(|bytes| u16::from_le_bytes(bytes).into()),
            _ => self.memory.load(address).map(|[byte]| byte.into()),
        };
        match value {
            Ok(value) => Ok(value),
            Err(Refused) => self.read_slowly(address, BITS as usize / 8).map(|value| value as u64),
        }
    }

    /// Reads 16 bytes of memory.
    #[inline(always)]
    pub(super) fn read_x(&mut self, address: u64) -> Result<u128, Halted> {
        match self.memory.load(address) {
            Ok(bytes) => Ok(u128::from_le_bytes(bytes)),
            Err(Refused) => self.read_slowly(address, 16),
        }
    }

    #[cold]
    #[inline(never)]
    fn read_slowly(&mut self, address: u64, len: usize) -> Result<u128, Halted> {
        let mut bytes = [0; 16];
        let read = self.memory.load_slowly(address, &mut bytes[..len.min(16)], Access::Read);
        match read {
            Ok(()) => Ok(u128::from_le_bytes(bytes)),
            Err(fault) => self.fault(fault),
        }
    }

    /// Writes `BITS` bits of memory.
    #[inline(always)]
    pub(super) fn write_mem<const BITS: u32>(
        &mut self,
        address: u64,
        value: u64,
    ) -> Result<(), Halted> {
        let written = match BITS {
            64 => self.memory.store(address, value.to_le_bytes()),
            32 => self.memory.store(address, (value as u32).to_le_bytes()),
            16 => self.memory.store(address, (value as u16).to_le_bytes()),
            _ => self.memory.store(address, [value as u8]),
        };
        match written {
            Ok(()) => Ok(()),
            Err(Refused) => self.write_slowly(address, value.into(), BITS as usize / 8),
        }
    }

    /// Writes 16 bytes of memory.
    #[inline(always)]
    pub(super) fn write_x(&mut self, address: u64, value: u128) -> Result<(), Halted> {
        match self.memory.store(address, value.to_le_bytes()) {
            Ok(()) => Ok(()),
            Err(Refused) => self.write_slowly(address, value, 16),
        }
    }

    #[cold]
    #[inline(never)]
    fn write_slowly(&mut self, address: u64, value: u128, len: usize) -> Result<(), Halted> {
        let code = &self.code;
        let bytes = value.to_le_bytes();
        let written =
            self.memory.store_slowly(address, &bytes[..len.min(16)], |n| code.has_page(n));
        match written {
            Ok(()) => {
                self.code.invalidate(address, len as u64);
                Ok(())
            }
            Err(fault) => self.fault(fault),
        }
    }

    fn fault<T>(&mut self, fault: Fault) -> Result<T, Halted> {
        self.halt(Reason::Fault(fault))
    }

    /// Stops execution before the present instruction.
    pub(super) fn halt<T>(&mut self, reason: Reason) -> Result<T, Halted> {
        self.reason = reason;
        Err(Halted)
    }

    /// Returns the operand that is in the second register or in memory.
    #[inline(always)]
    pub(super) fn rm<const BITS: u32>(&mut self, op: PackedOp) -> Result<u64, Halted> {
        if op.rm() == IN_MEMORY {
            self.read_mem::<BITS>(self.address(op))
        } else {
            Ok(self.reg::<BITS>(op.rm()))
        }
    }

    /// Writes the operand that is in the second register or in memory.
    #[inline(always)]
    pub(super) fn set_rm<const BITS: u32>(
        &mut self,
        op: PackedOp,
        value: u64,
    ) -> Result<(), Halted> {
        if op.rm() == IN_MEMORY {
            self.write_mem::<BITS>(self.address(op), value)
        } else {
            self.set_reg::<BITS>(op.rm(), value);
            Ok(())
        }
    }

    #[inline(always)]
    pub(super) fn push<const BITS: u32>(&mut self, value: u64) -> Result<(), Halted> {
        let rsp = self.slot(RSP).wrapping_sub(u64::from(BITS / 8));
        self.write_mem::<BITS>(rsp, value)?;
        self.set_reg::<64>(RSP, rsp);
        Ok(())
    }

    #[inline(always)]
    pub(super) fn pop<const BITS: u32>(&mut self) -> Result<u64, Halted> {
        let rsp = self.slot(RSP);
        let value = self.read_mem::<BITS>(rsp)?;
        self.set_reg::<64>(RSP, rsp.wrapping_add(u64::from(BITS / 8)));
        Ok(value)
    }
}
