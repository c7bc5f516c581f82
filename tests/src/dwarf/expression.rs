//! DWARF expressions.

use super::reader::Reader;
use super::{Bug, Error, Frame};
use clr_unwind::Memory;

impl<M: Memory + ?Sized> Frame<'_, M> {
    /// Evaluates an expression and returns the top of its stack. The stack initially holds `first`,
    /// if any.
    pub(super) fn evaluate(
        &self,
        mut expression: Reader<'_>,
        first: Option<u64>,
    ) -> Result<u64, Error> {
        let mut stack: Vec<u64> = first.into_iter().collect();
        while !expression.is_empty() {
            let opcode = expression.u8()?;
            let mut pop = || stack.pop().ok_or(Error::BadTable);
            let value = match opcode {
                // DW_OP_deref
                0x06 => {
                    let address = pop()?;
                    if self.bug == Some(Bug::DerefMissing) {
                        address
                    } else {
                        self.memory.read_u64(address)?
                    }
                }
                // DW_OP_const1u, const1s, const2s, const4s, constu, consts
                0x08 => expression.u8()?.into(),
                0x09 => i64::from(expression.u8()?.cast_signed()).cast_unsigned(),
                0x0B => i64::from(expression.u16()?.cast_signed()).cast_unsigned(),
                0x0D => i64::from(expression.u32()?.cast_signed()).cast_unsigned(),
                0x10 => expression.unsigned()?,
                0x11 => expression.signed()?.cast_unsigned(),
                // DW_OP_and, minus, plus, plus_uconst, shl
                0x1A => pop()? & pop()?,
                0x1C => {
                    let right = pop()?;
                    pop()?.wrapping_sub(right)
                }
                0x22 => pop()?.wrapping_add(pop()?),
                0x23 => pop()?.wrapping_add(expression.unsigned()?),
                0x24 => {
                    let bits = u32::try_from(pop()?).unwrap_or(u32::MAX);
                    pop()?.checked_shl(bits).unwrap_or(0)
                }
                // DW_OP_ge
                0x2A => {
                    let right = pop()?.cast_signed();
                    u64::from(pop()?.cast_signed() >= right)
                }
                // DW_OP_lit0 …
                0x30..=0x4F => u64::from(opcode - 0x30),
                // DW_OP_breg0 …
                0x70..=0x8F => {
                    let register = self.register(u64::from(opcode - 0x70))?;
                    register.wrapping_add(expression.signed()?.cast_unsigned())
                }
                _ => return Err(Error::BadTable),
            };
            stack.push(value);
        }
        stack.pop().ok_or(Error::BadTable)
    }
}
