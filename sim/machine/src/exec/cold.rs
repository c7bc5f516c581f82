//! Execution of less frequent integer instructions.

use super::alu::{add, deposit_bits, double_shift, extract_bits, shift, step, sub};
use super::{Halted, Reason};
use crate::Machine;
use crate::flags::{low, sign_extend};
use crate::op::{BY_REGISTER, IN_MEMORY, Other, PackedOp, Shift};
use clr_unwind::Gpr;

const RAX: u8 = Gpr::Rax as u8;
const RCX: u8 = Gpr::Rcx as u8;
const RDX: u8 = Gpr::Rdx as u8;
const RBX: u8 = Gpr::Rbx as u8;

impl Machine {
    /// Executes the operation with the given index.
    #[inline(never)]
    pub(super) fn other<const BITS: u32>(
        &mut self,
        other: Other,
        index: u32,
    ) -> Result<(), Halted> {
        let op = self.code.op(index);
        match other {
            Other::Load => {
                let value = self.rm::<BITS>(op)?;
                self.set_reg::<BITS>(op.reg(), value);
            }
            Other::Store => return self.set_rm::<BITS>(op, self.reg::<BITS>(op.reg())),
            Other::StoreImm => return self.set_rm::<BITS>(op, op.imm()),
            Other::Lea => self.set_reg::<BITS>(op.reg(), self.address(op)),
            Other::Push => {
                let value = self.rm::<BITS>(op)?;
                return self.push::<BITS>(value);
            }
            Other::Pop => return self.pop_rm::<BITS>(op),
            Other::Inc | Other::Dec | Other::Neg | Other::Not => {
                return self.unary::<BITS>(other, op);
            }
            Other::ImulReg | Other::ImulImm | Other::Mul | Other::Imul | Other::Mulx => {
                return self.multiply::<BITS>(other, op);
            }
            Other::Div | Other::Idiv => return self.divide::<BITS>(other, op),
            Other::Shld | Other::Shrd => {
                let count = self.count(op);
                let a = self.rm::<BITS>(op)?;
                let b = self.reg::<BITS>(op.reg());
                let flags = self.cpu.flags;
                let (result, flags) =
                    double_shift::<BITS>(other == Other::Shld, a, b, count, flags);
                self.set_rm::<BITS>(op, result)?;
                self.cpu.flags = flags;
            }
            Other::Bt | Other::Bts | Other::Btr | Other::Btc => {
                return self.bit_test::<BITS>(other, op);
            }
            Other::Bsf | Other::Bsr | Other::Tzcnt | Other::Lzcnt | Other::Popcnt => {
                return self.count_bits::<BITS>(other, op);
            }
            Other::Bswap => {
                let value = self.reg::<BITS>(op.rm()).swap_bytes() >> (64 - BITS);
                self.set_reg::<BITS>(op.rm(), value);
            }
            Other::Cmov => {
                // Memory is read even if the value is not used.
                let value = self.rm::<BITS>(op)?;
                let moved = self.cpu.flags.condition(op.imm8());
                let value = if moved { value } else { self.reg::<BITS>(op.reg()) };
                self.set_reg::<BITS>(op.reg(), value);
            }
            Other::Set => {
                let holds = self.cpu.flags.condition(op.imm8());
                return self.set_rm::<BITS>(op, holds.into());
            }
            Other::Sign8 => {
                let value = self.rm::<8>(op)?;
                self.set_reg::<BITS>(op.reg(), sign_extend::<8>(value));
            }
            Other::Sign16 => {
                let value = self.rm::<16>(op)?;
                self.set_reg::<BITS>(op.reg(), sign_extend::<16>(value));
            }
            Other::Sign32 => {
                let value = self.rm::<32>(op)?;
                self.set_reg::<BITS>(op.reg(), sign_extend::<32>(value));
            }
            Other::Zero8 => {
                let value = self.rm::<8>(op)?;
                self.set_reg::<BITS>(op.reg(), value);
            }
            Other::Xchg | Other::Xadd | Other::Cmpxchg => {
                return self.exchange::<BITS>(other, op);
            }
            Other::CmpxchgPair => return self.exchange_pair::<BITS>(op),
            Other::ExtendA => {
                let value = match BITS {
                    16 => sign_extend::<8>(self.slot(RAX)),
                    32 => sign_extend::<16>(self.slot(RAX)),
                    _ => sign_extend::<32>(self.slot(RAX)),
                };
                self.set_reg::<BITS>(RAX, value);
            }
            Other::ExtendIntoD => {
                let sign = self.reg::<BITS>(RAX) >> (BITS - 1);
                self.set_reg::<BITS>(RDX, sign.wrapping_neg());
            }
            Other::Andn
            | Other::Bextr
            | Other::Bzhi
            | Other::Shlx
            | Other::Shrx
            | Other::Sarx
            | Other::Pdep
            | Other::Pext
            | Other::Rorx
            | Other::Blsi
            | Other::Blsr
            | Other::Blsmsk => return self.manipulate_bits::<BITS>(other, op),
        }
        Ok(())
    }

    /// Returns the count: the immediate or cl.
    pub(super) fn count(&self, op: PackedOp) -> u64 {
        if op.imm == BY_REGISTER { self.reg::<8>(RCX) } else { op.imm() }
    }

    /// Executes the shift with the given index.
    #[inline(never)]
    pub(super) fn shift_rm<const BITS: u32>(
        &mut self,
        kind: Shift,
        index: u32,
    ) -> Result<(), Halted> {
        let op = self.code.op(index);
        let count = self.count(op);
        let a = self.rm::<BITS>(op)?;
        let (result, flags) = shift::<BITS>(kind, a, count, self.cpu.flags);
        self.set_rm::<BITS>(op, result)?;
        self.cpu.flags = flags;
        Ok(())
    }

    /// Pops into a register or memory. The address of a destination in memory is computed with rsp
    /// after the pop.
    fn pop_rm<const BITS: u32>(&mut self, op: PackedOp) -> Result<(), Halted> {
        let before = self.cpu.rsp();
        let value = self.pop::<BITS>()?;
        let written = self.set_rm::<BITS>(op, value);
        if written.is_err() {
            self.cpu.set(Gpr::Rsp, before);
        }
        written
    }

    fn unary<const BITS: u32>(&mut self, other: Other, op: PackedOp) -> Result<(), Halted> {
        let a = self.rm::<BITS>(op)?;
        let flags = self.cpu.flags;
        let (result, flags) = match other {
            Other::Inc => step::<BITS>(true, a, flags),
            Other::Dec => step::<BITS>(false, a, flags),
            Other::Neg => sub::<BITS>(0, a, 0, flags),
            _ => (!a, flags),
        };
        self.set_rm::<BITS>(op, result)?;
        self.cpu.flags = flags;
        Ok(())
    }

    /// Multiplies. ZF and the other flags that the manuals leave undefined do not change.
    fn multiply<const BITS: u32>(&mut self, other: Other, op: PackedOp) -> Result<(), Halted> {
        let value = self.rm::<BITS>(op)?;
        let a = match other {
            Other::ImulReg => self.reg::<BITS>(op.reg()),
            Other::ImulImm => low::<BITS>(op.imm()),
            Other::Mulx => self.reg::<BITS>(RDX),
            _ => self.reg::<BITS>(RAX),
        };
        let signed = !matches!(other, Other::Mul | Other::Mulx);
        let product = if signed {
            let wide = |value| i128::from(sign_extend::<BITS>(value).cast_signed());
            (wide(a) * wide(value)).cast_unsigned()
        } else {
            u128::from(a) * u128::from(value)
        };
        let (result, high) = (low::<BITS>(product as u64), low::<BITS>((product >> BITS) as u64));
        match other {
            Other::ImulReg | Other::ImulImm => self.set_reg::<BITS>(op.reg(), result),
            Other::Mulx => {
                // If both destinations are the same register, it gets the high half.
                self.set_reg::<BITS>(op.imm8(), result);
                self.set_reg::<BITS>(op.reg(), high);
                return Ok(());
            }
            _ if BITS == 8 => self.set_reg::<16>(RAX, product as u64),
            _ => {
                self.set_reg::<BITS>(RAX, result);
                self.set_reg::<BITS>(RDX, high);
            }
        }
        let lost = if signed {
            i128::from(sign_extend::<BITS>(result).cast_signed()) != product.cast_signed()
        } else {
            high != 0
        };
        self.cpu.flags = self.cpu.flags.with_carry_overflow(lost, lost);
        Ok(())
    }

    /// Divides. The flags, which the manuals leave undefined, do not change.
    fn divide<const BITS: u32>(&mut self, other: Other, op: PackedOp) -> Result<(), Halted> {
        let divisor = self.rm::<BITS>(op)?;
        let dividend = if BITS == 8 {
            self.reg::<16>(RAX).into()
        } else {
            u128::from(self.reg::<BITS>(RDX)) << BITS | u128::from(self.reg::<BITS>(RAX))
        };
        let result = if other == Other::Div {
            let divisor = u128::from(divisor);
            let quotient = dividend.checked_div(divisor).filter(|q| q >> BITS == 0);
            quotient.map(|quotient| (quotient as u64, (dividend % divisor) as u64))
        } else {
            let unused = 128 - 2 * BITS;
            let dividend = (dividend << unused).cast_signed() >> unused;
            let divisor = i128::from(sign_extend::<BITS>(divisor).cast_signed());
            let half = 1_i128 << (BITS - 1);
            let quotient = dividend.checked_div(divisor).filter(|q| (-half..half).contains(q));
            let bits = |value: i128| value.cast_unsigned() as u64;
            quotient.map(|quotient| (bits(quotient), bits(dividend % divisor)))
        };
        let Some((quotient, remainder)) = result else { return self.halt(Reason::Divide) };
        if BITS == 8 {
            self.set_reg::<16>(RAX, low::<8>(remainder) << 8 | low::<8>(quotient));
        } else {
            self.set_reg::<BITS>(RAX, quotient);
            self.set_reg::<BITS>(RDX, remainder);
        }
        Ok(())
    }

    fn bit_test<const BITS: u32>(&mut self, other: Other, op: PackedOp) -> Result<(), Halted> {
        let by_register = op.imm == BY_REGISTER;
        let bit = if by_register { self.reg::<BITS>(op.reg()) } else { op.imm() };
        let mut address = 0;
        if op.rm() == IN_MEMORY {
            address = self.address(op);
            if by_register {
                // A bit in memory may be far from the operand, in either direction.
                let words = sign_extend::<BITS>(bit).cast_signed() >> BITS.trailing_zeros();
                let bytes = words.wrapping_mul(i64::from(BITS / 8));
                address = address.wrapping_add(bytes.cast_unsigned());
            }
        }
        let value = if op.rm() == IN_MEMORY {
            self.read_mem::<BITS>(address)?
        } else {
            self.rm::<BITS>(op)?
        };
        let mask = 1 << (bit % u64::from(BITS));
        let result = match other {
            Other::Bts => value | mask,
            Other::Btr => value & !mask,
            _ => value ^ mask,
        };
        if other != Other::Bt {
            if op.rm() == IN_MEMORY {
                self.write_mem::<BITS>(address, result)?;
            } else {
                self.set_rm::<BITS>(op, result)?;
            }
        }
        self.cpu.flags = self.cpu.flags.with_carry(value & mask != 0);
        Ok(())
    }

    /// Counts or finds bits. bsf and bsr of 0 do not change the destination; flags that the manuals
    /// leave undefined do not change.
    fn count_bits<const BITS: u32>(&mut self, other: Other, op: PackedOp) -> Result<(), Halted> {
        let value = self.rm::<BITS>(op)?;
        let flags = self.cpu.flags;
        let leading = value.leading_zeros() - (64 - BITS);
        let trailing = value.trailing_zeros().min(BITS);
        let result = match other {
            Other::Bsf | Other::Bsr => {
                self.cpu.flags = flags.with_zero(value == 0);
                if value == 0 {
                    return Ok(());
                }
                if other == Other::Bsf { trailing } else { BITS - 1 - leading }
            }
            Other::Popcnt => {
                self.cpu.flags = flags.after::<BITS>(1, 0).with_zero(value == 0);
                value.count_ones()
            }
            _ => {
                let result = if other == Other::Tzcnt { trailing } else { leading };
                self.cpu.flags = flags.with_carry(value == 0).with_zero(result == 0);
                result
            }
        };
        self.set_reg::<BITS>(op.reg(), result.into());
        Ok(())
    }

    fn exchange<const BITS: u32>(&mut self, other: Other, op: PackedOp) -> Result<(), Halted> {
        let old = self.rm::<BITS>(op)?;
        let reg = self.reg::<BITS>(op.reg());
        match other {
            Other::Xchg => {
                self.set_rm::<BITS>(op, reg)?;
                self.set_reg::<BITS>(op.reg(), old);
            }
            Other::Xadd => {
                let (sum, flags) = add::<BITS>(old, reg, 0, self.cpu.flags);
                if op.rm() == IN_MEMORY {
                    self.set_rm::<BITS>(op, sum)?;
                    self.set_reg::<BITS>(op.reg(), old);
                } else {
                    // If both operands are the same register, it gets the sum.
                    self.set_reg::<BITS>(op.reg(), old);
                    self.set_rm::<BITS>(op, sum)?;
                }
                self.cpu.flags = flags;
            }
            _ => {
                let accumulator = self.reg::<BITS>(RAX);
                let (_, flags) = sub::<BITS>(accumulator, old, 0, self.cpu.flags);
                if accumulator == old {
                    self.set_rm::<BITS>(op, reg)?;
                } else {
                    // Memory is written in any case; a 32-bit register is not.
                    if op.rm() == IN_MEMORY {
                        self.set_rm::<BITS>(op, old)?;
                    }
                    self.set_reg::<BITS>(RAX, old);
                }
                self.cpu.flags = flags;
            }
        }
        Ok(())
    }

    /// Executes cmpxchg8b or cmpxchg16b.
    fn exchange_pair<const BITS: u32>(&mut self, op: PackedOp) -> Result<(), Halted> {
        let address = self.address(op);
        if BITS == 64 && !address.is_multiple_of(16) {
            return self.halt(Reason::Protection);
        }
        let old =
            if BITS == 64 { self.read_x(address)? } else { self.read_mem::<64>(address)?.into() };
        let pair = |machine: &Self, high, low| {
            u128::from(machine.reg::<BITS>(high)) << BITS | u128::from(machine.reg::<BITS>(low))
        };
        let equal = pair(self, RDX, RAX) == old;
        let new = if equal { pair(self, RCX, RBX) } else { old };
        if BITS == 64 {
            self.write_x(address, new)?;
        } else {
            self.write_mem::<64>(address, new as u64)?;
        }
        if !equal {
            self.set_reg::<BITS>(RAX, old as u64);
            self.set_reg::<BITS>(RDX, (old >> BITS) as u64);
        }
        self.cpu.flags = self.cpu.flags.with_zero(equal);
        Ok(())
    }

    /// Executes BMI1 and BMI2.
    fn manipulate_bits<const BITS: u32>(
        &mut self,
        other: Other,
        op: PackedOp,
    ) -> Result<(), Halted> {
        let value = self.rm::<BITS>(op)?;
        let second = self.reg::<BITS>(op.imm8() & 15);
        let flags = self.cpu.flags;
        // Counts are taken modulo the size.
        let count = second % u64::from(BITS);
        let (result, carry) = match other {
            Other::Shlx => (value << count, None),
            Other::Shrx => (value >> count, None),
            Other::Sarx => {
                ((sign_extend::<BITS>(value).cast_signed() >> count).cast_unsigned(), None)
            }
            Other::Rorx => {
                let count = op.imm.cast_unsigned() % BITS;
                (shift::<BITS>(Shift::Ror, value, count.into(), flags).0, None)
            }
            Other::Pdep => (deposit_bits(second, value), None),
            Other::Pext => (extract_bits(second, value), None),
            Other::Andn => (!second & value, Some(false)),
            Other::Bextr => {
                let (start, len) = (second as u8, (second >> 8) as u8);
                let from = value.checked_shr(start.into()).unwrap_or(0);
                let mask = u64::MAX.checked_shl(len.into()).unwrap_or(0);
                (from & !mask, Some(false))
            }
            Other::Bzhi => {
                let index = u32::from(second as u8);
                let mask = u64::MAX.checked_shl(index).unwrap_or(0);
                (value & !mask, Some(index >= BITS))
            }
            Other::Blsi => (value & value.wrapping_neg(), Some(value != 0)),
            Other::Blsr => (value & value.wrapping_sub(1), Some(value == 0)),
            _ => (value ^ value.wrapping_sub(1), Some(value == 0)),
        };
        if let Some(carry) = carry {
            self.cpu.flags = flags.after::<BITS>(result, 0).with_carry_overflow(carry, false);
        }
        self.set_reg::<BITS>(op.reg(), result);
        Ok(())
    }
}
