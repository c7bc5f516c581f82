//! The registers of the machine.

use super::flags::Flags;
use clr_unwind::{Gpr, Registers};

/// Indices into the machine's slots: the integer registers, and the other values that take part in
/// addresses.
pub(super) mod slot {
    /// Always 0: no base or no index.
    pub(crate) const ZERO: u8 = 16;
    /// The address of the next instruction while an instruction is executed.
    pub(crate) const RIP: u8 = 17;
    /// The base of segment fs.
    pub(crate) const FS: u8 = 18;
    /// The base of segment gs.
    pub(crate) const GS: u8 = 19;
    /// Flag in the number of a byte register: its second byte, as in ah.
    pub(crate) const HIGH: u8 = 0x80;
}

/// The value of mxcsr at the start of a thread: round to nearest, all exceptions masked.
pub(super) const MXCSR_START: u32 = 0x1F80;

/// All registers of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cpu {
    /// Indexed by [`slot`]; slots above those are always 0.
    pub(super) slots: [u64; 32],
    pub(super) xmm: [u128; 16],
    pub(super) flags: Flags,
    pub(super) mxcsr: u32,
}

impl Default for Cpu {
    fn default() -> Self {
        Self { slots: [0; 32], xmm: [0; 16], flags: Flags::START, mxcsr: MXCSR_START }
    }
}

impl Cpu {
    /// Returns an integer register.
    #[inline]
    pub const fn get(&self, register: Gpr) -> u64 {
        self.slots[register as usize]
    }

    /// Sets an integer register.
    #[inline]
    pub const fn set(&mut self, register: Gpr, value: u64) {
        self.slots[register as usize] = value;
    }

    /// Returns the address of the instruction to execute next (VA).
    #[inline]
    pub const fn rip(&self) -> u64 {
        self.slots[slot::RIP as usize]
    }

    /// Sets the address of the instruction to execute next (VA).
    #[inline]
    pub const fn set_rip(&mut self, address: u64) {
        self.slots[slot::RIP as usize] = address;
    }

    /// Returns the stack pointer (VA).
    #[inline]
    pub const fn rsp(&self) -> u64 {
        self.get(Gpr::Rsp)
    }

    /// Returns xmm*n*, with the low quadword in the low half. `number` is taken modulo 16.
    #[inline]
    pub const fn xmm(&self, number: u8) -> u128 {
        self.xmm[(number & 15) as usize]
    }

    /// Sets xmm*n*. `number` is taken modulo 16.
    #[inline]
    pub const fn set_xmm(&mut self, number: u8, value: u128) {
        self.xmm[(number & 15) as usize] = value;
    }

    /// Returns rflags. IF and bit 1 are always set.
    pub const fn rflags(&self) -> u64 {
        self.flags.to_bits()
    }

    /// Sets rflags: CF, PF, AF, ZF, SF, DF, OF, NT, AC and ID; other bits are ignored.
    pub const fn set_rflags(&mut self, bits: u64) {
        self.flags = Flags::from_bits(bits);
    }

    /// Returns the base of segment fs (VA).
    pub const fn fs_base(&self) -> u64 {
        self.slots[slot::FS as usize]
    }

    /// Sets the base of segment fs (VA).
    pub const fn set_fs_base(&mut self, base: u64) {
        self.slots[slot::FS as usize] = base;
    }

    /// Returns the base of segment gs (VA), which is the TEB of a Windows thread.
    pub const fn gs_base(&self) -> u64 {
        self.slots[slot::GS as usize]
    }

    /// Sets the base of segment gs (VA).
    pub const fn set_gs_base(&mut self, base: u64) {
        self.slots[slot::GS as usize] = base;
    }

    /// Returns mxcsr as it was last loaded. The machine does not record floating-point exceptions
    /// in it.
    pub const fn mxcsr(&self) -> u32 {
        self.mxcsr
    }

    /// Returns the registers that a stack walk needs.
    pub fn registers(&self) -> Registers {
        let mut registers = Registers::default();
        self.copy_registers(&mut registers);
        registers
    }

    /// Copies the registers that a stack walk needs.
    pub fn copy_registers(&self, into: &mut Registers) {
        into.rip = self.rip();
        into.gpr.copy_from_slice(&self.slots[..16]);
        into.xmm.copy_from_slice(&self.xmm[6..]);
    }

    /// Sets the registers that a stack walk needs, and no others.
    pub fn set_registers(&mut self, registers: &Registers) {
        self.set_rip(registers.rip);
        self.slots[..16].copy_from_slice(&registers.gpr);
        self.xmm[6..].copy_from_slice(&registers.xmm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_of_a_walk_go_in_and_out() {
        let registers = Registers {
            rip: 1,
            gpr: core::array::from_fn(|i| 0x100 + i as u64),
            xmm: core::array::from_fn(|i| 0x200 + i as u128),
        };
        let mut cpu = Cpu::default();
        cpu.set_gs_base(7);
        cpu.set_xmm(5, 55);
        cpu.set_registers(&registers);
        assert_eq!(cpu.registers(), registers);
        assert_eq!((cpu.rip(), cpu.rsp(), cpu.get(Gpr::R15)), (1, 0x104, 0x10F));
        assert_eq!((cpu.xmm(6), cpu.xmm(15), cpu.xmm(5)), (0x200, 0x209, 55));
        assert_eq!((cpu.gs_base(), cpu.fs_base(), cpu.mxcsr()), (7, 0, 0x1F80));
        assert_eq!(cpu.slots[usize::from(slot::ZERO)], 0);
    }

    #[test]
    fn flags_that_user_code_cannot_set_stay() {
        let mut cpu = Cpu::default();
        cpu.set_rflags(u64::MAX);
        assert_eq!(cpu.rflags(), 0x24_4ED7, "no TF, IOPL, RF, VM, VIF, VIP");
        cpu.set_rflags(0);
        assert_eq!(cpu.rflags(), 0x202);
    }
}
