//! DWARF expressions of call frame information, evaluated on a machine of 64 values with a limit on
//! its steps.

use crate::cfi::{CfiProblem, Column};
use crate::memory::Memory;
use crate::registers::{RegisterSet, Registers};
use crate::unwinder::UnwindError;
use core::cell::Cell;
use gimli::{EndianSlice, Format, LittleEndian, Operation};

const STACK_SIZE: usize = 64;
const STEP_LIMIT: u32 = 1000;

const ENCODING: gimli::Encoding =
    gimli::Encoding { address_size: 8, format: Format::Dwarf32, version: 5 };

/// A failure to evaluate an expression.
pub(super) enum Failure {
    Expression(CfiProblem),
    Memory(UnwindError),
}

impl From<CfiProblem> for Failure {
    fn from(problem: CfiProblem) -> Self {
        Self::Expression(problem)
    }
}

/// A stack of values, the last one on top.
struct Stack {
    values: [u64; STACK_SIZE],
    len: usize,
}

impl Stack {
    fn push(&mut self, value: u64) -> Result<(), CfiProblem> {
        let slot = self.values.get_mut(self.len).ok_or(CfiProblem::ExpressionStack)?;
        *slot = value;
        self.len += 1;
        Ok(())
    }

    fn pop(&mut self) -> Result<u64, CfiProblem> {
        let value = self.pick(0)?;
        self.len -= 1;
        Ok(value)
    }

    /// Returns the value `depth` below the top.
    fn pick(&self, depth: usize) -> Result<u64, CfiProblem> {
        let at = self.len.checked_sub(depth + 1);
        at.and_then(|at| self.values.get(at)).copied().ok_or(CfiProblem::ExpressionStack)
    }
}

/// The machine that an expression is evaluated on.
pub(super) struct Machine<'m, M: ?Sized> {
    registers: &'m Registers,
    pub(super) memory: &'m M,
    /// Distance of the image from its preferred base.
    slide: u64,
    needed: Cell<RegisterSet>,
}

impl<'m, M: Memory + ?Sized> Machine<'m, M> {
    pub(super) const fn new(registers: &'m Registers, memory: &'m M, slide: u64) -> Self {
        Self { registers, memory, slide, needed: Cell::new(RegisterSet::EMPTY) }
    }

    /// Returns the integer registers that were read.
    pub(super) const fn needed(&self) -> RegisterSet {
        self.needed.get()
    }

    /// Returns the frame's value of a register.
    #[inline]
    pub(super) fn register(&self, column: Column) -> Result<u64, CfiProblem> {
        match column.gpr() {
            Some(register) => {
                self.needed.set(self.needed.get().with(register));
                Ok(self.registers.get(register))
            }
            None if column == Column::RIP => Ok(self.registers.rip),
            None => Err(CfiProblem::Register(column.0)),
        }
    }

    /// Evaluates an expression that begins with `cfa` on the stack, or with an empty stack.
    pub(super) fn evaluate(&self, code: &[u8], cfa: Option<u64>) -> Result<u64, Failure> {
        let mut stack = Stack { values: [0; STACK_SIZE], len: 0 };
        if let Some(cfa) = cfa {
            stack.push(cfa)?;
        }
        let mut rest = EndianSlice::new(code, LittleEndian);
        for _ in 0..STEP_LIMIT {
            if rest.is_empty() {
                return Ok(stack.pop()?);
            }
            let operation = Operation::parse(&mut rest, ENCODING);
            let operation = operation.map_err(|_| CfiProblem::Operation)?;
            if let Some(distance) = self.execute(operation, &mut stack, cfa)? {
                let at = code.len() - rest.len();
                let target = at.checked_add_signed(isize::from(distance));
                let target = target.and_then(|target| code.get(target..));
                rest = EndianSlice::new(target.ok_or(CfiProblem::Branch)?, LittleEndian);
            }
        }
        Err(CfiProblem::ExpressionTooLong.into())
    }

    /// Executes one operation, and returns the distance of its jump if it jumps.
    fn execute(
        &self,
        operation: Operation<EndianSlice<'_, LittleEndian>>,
        stack: &mut Stack,
        cfa: Option<u64>,
    ) -> Result<Option<i16>, Failure> {
        use Operation as Op;
        match operation {
            Op::UnsignedConstant { value } => stack.push(value)?,
            Op::SignedConstant { value } => stack.push(value.cast_unsigned())?,
            Op::Address { address } => stack.push(address.wrapping_add(self.slide))?,
            Op::RegisterOffset { register, offset, base_type } if base_type.0 == 0 => {
                stack.push(self.register(Column(register.0))?.wrapping_add_signed(offset))?;
            }
            Op::CallFrameCFA => stack.push(cfa.ok_or(CfiProblem::Operation)?)?,
            Op::Deref { base_type, size, space: false } if base_type.0 == 0 => {
                let address = stack.pop()?;
                stack.push(self.load(address, size)?)?;
            }
            Op::Drop => drop(stack.pop()?),
            Op::Pick { index } => stack.push(stack.pick(index.into())?)?,
            Op::Swap => {
                let (top, second) = (stack.pop()?, stack.pop()?);
                stack.push(top)?;
                stack.push(second)?;
            }
            Op::Rot => {
                let (top, second, third) = (stack.pop()?, stack.pop()?, stack.pop()?);
                for value in [top, third, second] {
                    stack.push(value)?;
                }
            }
            Op::Abs | Op::Neg | Op::Not | Op::PlusConstant { .. } => {
                let value = stack.pop()?;
                stack.push(match operation {
                    Op::Abs => value.cast_signed().unsigned_abs(),
                    Op::Neg => value.wrapping_neg(),
                    Op::PlusConstant { value: constant } => value.wrapping_add(constant),
                    _ => !value,
                })?;
            }
            Op::Skip { target } => return Ok(Some(target)),
            Op::Bra { target } => return Ok((stack.pop()? != 0).then_some(target)),
            Op::Nop => {}
            Op::And
            | Op::Or
            | Op::Xor
            | Op::Plus
            | Op::Minus
            | Op::Mul
            | Op::Div
            | Op::Mod
            | Op::Shl
            | Op::Shr
            | Op::Shra
            | Op::Eq
            | Op::Ne
            | Op::Ge
            | Op::Gt
            | Op::Le
            | Op::Lt => {
                let (right, left) = (stack.pop()?, stack.pop()?);
                stack.push(binary(&operation, left, right)?)?;
            }
            _ => return Err(CfiProblem::Operation.into()),
        }
        Ok(None)
    }

    /// Reads the little-endian number of `size` bytes at `address`.
    fn load(&self, address: u64, size: u8) -> Result<u64, Failure> {
        let mut bytes = [0; 8];
        let len = usize::from(size);
        let read = bytes.get_mut(..len).filter(|_| len > 0).ok_or(CfiProblem::Operation)?;
        let read = self.memory.read(address, read);
        read.map_err(|unreadable| Failure::Memory(unreadable.into()))?;
        Ok(u64::from_le_bytes(bytes))
    }
}

fn binary<R: gimli::Reader>(
    operation: &Operation<R>,
    left: u64,
    right: u64,
) -> Result<u64, CfiProblem> {
    use Operation as Op;
    // Comparison and division are signed; modulo and shr are not (DWARF 5, §2.5.1.4).
    let (signed_left, signed_right) = (left.cast_signed(), right.cast_signed());
    let shift = u32::try_from(right).unwrap_or(u32::MAX);
    Ok(match operation {
        Op::And => left & right,
        Op::Or => left | right,
        Op::Xor => left ^ right,
        Op::Plus => left.wrapping_add(right),
        Op::Minus => left.wrapping_sub(right),
        Op::Mul => left.wrapping_mul(right),
        Op::Div if right == 0 => return Err(CfiProblem::DivisionByZero),
        Op::Div => signed_left.wrapping_div(signed_right).cast_unsigned(),
        Op::Mod => left.checked_rem(right).ok_or(CfiProblem::DivisionByZero)?,
        Op::Shl => left.checked_shl(shift).unwrap_or(0),
        Op::Shr => left.checked_shr(shift).unwrap_or(0),
        Op::Shra => (signed_left >> shift.min(63)).cast_unsigned(),
        Op::Eq => u64::from(left == right),
        Op::Ne => u64::from(left != right),
        Op::Ge => u64::from(signed_left >= signed_right),
        Op::Gt => u64::from(signed_left > signed_right),
        Op::Le => u64::from(signed_left <= signed_right),
        Op::Lt => u64::from(signed_left < signed_right),
        _ => return Err(CfiProblem::Operation),
    })
}
