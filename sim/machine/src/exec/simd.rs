//! Execution of instructions on xmm registers: reads operands, writes results.

use super::{Halted, Reason};
use crate::Machine;
use crate::op::{Extract, PackedOp, Simd, SimdImm, Source};
use crate::vector::{self, float};

impl Machine {
    fn source(&mut self, op: PackedOp) -> Result<u128, Halted> {
        let imm = SimdImm::unpack(op.imm);
        Ok(match imm.source {
            Source::Xmm => self.cpu.xmm(op.rm()),
            Source::Gpr32 => self.reg::<32>(op.rm()).into(),
            Source::Gpr64 => self.reg::<64>(op.rm()).into(),
            Source::M2 => self.read_mem::<16>(self.address(op))?.into(),
            Source::M4 => self.read_mem::<32>(self.address(op))?.into(),
            Source::M8 => self.read_mem::<64>(self.address(op))?.into(),
            Source::M16 => self.read_x(self.address(op))?,
            Source::M16Aligned => {
                let address = self.aligned(op)?;
                self.read_x(address)?
            }
            Source::Imm => imm.imm8.into(),
        })
    }

    /// Returns the address of a 16-byte operand, which must be aligned.
    #[inline(always)]
    pub(super) fn aligned(&mut self, op: PackedOp) -> Result<u64, Halted> {
        let address = self.address(op);
        if address.is_multiple_of(16) { Ok(address) } else { self.halt(Reason::Protection) }
    }

    /// Executes the operation with the given index.
    #[inline(never)]
    pub(super) fn simd(&mut self, simd: Simd, index: u32) -> Result<(), Halted> {
        let op = self.code.op(index);
        let source = self.source(op)?;
        let SimdImm { imm8, first, .. } = SimdImm::unpack(op.imm);
        let (old, first) = (self.cpu.xmm(op.reg()), self.cpu.xmm(first));
        let result = vector::integer::apply(simd, first, source, imm8)
            .unwrap_or_else(|| float::apply(simd, old, first, source, imm8));
        self.cpu.set_xmm(op.reg(), result);
        Ok(())
    }

    /// Executes the operation with the given index.
    #[inline(never)]
    pub(super) fn extract<const BITS: u32>(
        &mut self,
        extract: Extract,
        index: u32,
    ) -> Result<(), Halted> {
        let op = self.code.op(index);
        let source = self.source(op)?;
        let low = source as u64;
        let single = || f32::from_bits(low as u32).into();
        let value = match extract {
            Extract::Low => low,
            Extract::RoundD => float::to_integer::<BITS>(f64::from_bits(low).round_ties_even()),
            Extract::TruncateD => float::to_integer::<BITS>(f64::from_bits(low)),
            Extract::RoundS => float::to_integer::<BITS>(f64::round_ties_even(single())),
            Extract::TruncateS => float::to_integer::<BITS>(single()),
            Extract::Signs8 => signs(source, 8),
            Extract::SignsPs => signs(source, 32),
            Extract::SignsPd => signs(source, 64),
            Extract::Word => {
                let word = SimdImm::unpack(op.imm).imm8 & 7;
                u64::from((source >> (16 * word)) as u16)
            }
            Extract::FlagsD => {
                let first = f64::from_bits(self.cpu.xmm(op.reg()) as u64);
                self.compare_floats(first, f64::from_bits(low));
                return Ok(());
            }
            Extract::FlagsS => {
                let first = f32::from_bits(self.cpu.xmm(op.reg()) as u32);
                self.compare_floats(first.into(), single());
                return Ok(());
            }
        };
        self.set_reg::<BITS>(op.reg(), value);
        Ok(())
    }

    /// Compares as comisd and ucomisd do. They differ only in exceptions, which are not recorded.
    fn compare_floats(&mut self, a: f64, b: f64) {
        match a.partial_cmp(&b) {
            None => self.set_comparison(true, true, true),
            Some(order) => self.set_comparison(order.is_eq(), false, order.is_lt()),
        }
    }
}

/// Returns the top bits of the elements.
fn signs(value: u128, bits: u32) -> u64 {
    let mut result = 0;
    for n in 0..128 / bits {
        let top = value >> (bits * (n + 1) - 1) & 1;
        result |= (top as u64) << n;
    }
    result
}
