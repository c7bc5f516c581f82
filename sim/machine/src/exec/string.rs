//! Execution of string instructions, one element at a time.

use super::Halted;
use super::alu::sub;
use crate::Machine;
use crate::op::{StringOp, repeat};
use clr_unwind::Gpr;

const RAX: u8 = Gpr::Rax as u8;

impl Machine {
    /// Executes one element of the operation with the given index. Returns the address of the next
    /// instruction, which is `at` while the instruction repeats.
    #[inline(never)]
    pub(super) fn string<const BITS: u32>(
        &mut self,
        string: StringOp,
        index: u32,
        at: u64,
        next: u64,
    ) -> Result<u64, Halted> {
        let op = self.code.op(index);
        let repeats = op.imm != repeat::NONE;
        let count = self.cpu.get(Gpr::Rcx);
        if repeats && count == 0 {
            return Ok(next);
        }
        let (rsi, rdi) = (self.cpu.get(Gpr::Rsi), self.cpu.get(Gpr::Rdi));
        let step = self.cpu.flags.direction().wrapping_mul(u64::from(BITS / 8));
        match string {
            StringOp::Movs => {
                let value = self.read_mem::<BITS>(rsi)?;
                self.write_mem::<BITS>(rdi, value)?;
            }
            StringOp::Stos => self.write_mem::<BITS>(rdi, self.reg::<BITS>(RAX))?,
            StringOp::Lods => {
                let value = self.read_mem::<BITS>(rsi)?;
                self.set_reg::<BITS>(RAX, value);
            }
            StringOp::Scas => {
                let value = self.read_mem::<BITS>(rdi)?;
                let accumulator = self.reg::<BITS>(RAX);
                self.cpu.flags = sub::<BITS>(accumulator, value, 0, self.cpu.flags).1;
            }
            StringOp::Cmps => {
                let first = self.read_mem::<BITS>(rsi)?;
                let second = self.read_mem::<BITS>(rdi)?;
                self.cpu.flags = sub::<BITS>(first, second, 0, self.cpu.flags).1;
            }
        }
        if string != StringOp::Stos && string != StringOp::Scas {
            self.cpu.set(Gpr::Rsi, rsi.wrapping_add(step));
        }
        if string != StringOp::Lods {
            self.cpu.set(Gpr::Rdi, rdi.wrapping_add(step));
        }
        if !repeats {
            return Ok(next);
        }
        self.cpu.set(Gpr::Rcx, count - 1);
        let compares = matches!(string, StringOp::Scas | StringOp::Cmps);
        let wanted = op.imm == repeat::EQUAL;
        let done = count == 1 || compares && self.cpu.flags.zero() != wanted;
        Ok(if done { next } else { at })
    }
}
