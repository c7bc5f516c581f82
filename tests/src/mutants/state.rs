//! Registers during a step from a frame to its caller.

use super::Error;
use clr_unwind::{Gpr, Memory, Position, Registers};

/// The registers of a frame, which a step turns into those of its caller.
pub(super) struct State<'m, M: ?Sized> {
    pub(super) registers: Registers,
    pub(super) memory: &'m M,
}

impl<M: Memory + ?Sized> State<'_, M> {
    pub(super) fn rsp(&self) -> u64 {
        self.registers.rsp()
    }

    pub(super) fn set_rsp(&mut self, rsp: u64) {
        self.registers.set(Gpr::Rsp, rsp);
    }

    pub(super) fn add_rsp(&mut self, bytes: u64) {
        self.set_rsp(self.rsp().wrapping_add(bytes));
    }

    pub(super) fn load(&mut self, register: Gpr, address: u64) -> Result<(), Error> {
        self.registers.set(register, self.memory.read_u64(address)?);
        Ok(())
    }

    /// Loads a vector register. xmm0 to xmm5 are volatile, but their slots must be readable.
    pub(super) fn load_xmm(&mut self, number: u8, address: u64) -> Result<(), Error> {
        let value = self.memory.read_u128(address)?;
        if let Some(n) = usize::from(number).checked_sub(6) {
            self.registers.xmm[n] = value;
        }
        Ok(())
    }

    /// Pops a register. As in Windows, 8 is added even to a popped rsp.
    pub(super) fn pop(&mut self, register: Gpr) -> Result<(), Error> {
        self.load(register, self.rsp())?;
        self.add_rsp(8);
        Ok(())
    }

    pub(super) fn pop_rip(&mut self) -> Result<Position, Error> {
        self.registers.rip = self.memory.read_u64(self.rsp())?;
        self.add_rsp(8);
        Ok(Position::ReturnAddress)
    }

    /// Executes an `iretq`, which pops rip, cs, rflags, rsp and ss.
    pub(super) fn pop_machine_frame(&mut self) -> Result<Position, Error> {
        let rsp = self.rsp();
        self.registers.rip = self.memory.read_u64(rsp)?;
        self.load(Gpr::Rsp, rsp.wrapping_add(24))?;
        Ok(Position::Interrupted)
    }
}
