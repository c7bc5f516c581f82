//! Lowering of the stubs that a runtime assembles for one target each.

use super::super::primitive::StubCode;
use super::super::shape::CallingConvention;
use super::Lowering;
use super::stream::{Place, r64};
use clr_unwind::Gpr;
use iced_x86::{Code, IcedError, Register};

/// Number in place of the type for which a dispatch stub was made.
const TYPE: u64 = 0x7FF8_1234_5678;
/// Number in place of the address of the cache in which resolve stubs look.
const CACHE: u64 = 0x7FF8_0ABC_D000;
/// Number in place of the token of an interface method.
const TOKEN: u64 = 0x0001_0002;
/// Mask of a hash in the cache.
const MASK: i32 = 0x7FF8;

impl Lowering<'_> {
    /// Writes the instructions before a stub's jump.
    pub(super) fn stub(&mut self, code: StubCode) -> Result<(), IcedError> {
        let (first, second) = match self.program.convention {
            CallingConvention::WindowsX64 => (Gpr::Rcx, Gpr::Rdx),
            CallingConvention::SystemV => (Gpr::Rdi, Gpr::Rsi),
        };
        let stream = &mut self.stream;
        match code {
            StubCode::Dispatch => {
                stream.mov_imm64(Gpr::Rax, TYPE)?;
                stream.compare(Place::At(first, 0), Gpr::Rax)?;
                let same = stream.label();
                stream.branch(Code::Jne_rel32_64, same)?;
                stream.bind(same);
                Ok(())
            }
            StubCode::Resolve => {
                stream.push(Gpr::Rdx)?;
                stream.mov_imm64(Gpr::R10, CACHE)?;
                stream.load(Gpr::Rax, Place::At(first, 0))?;
                stream.mov(Gpr::Rdx, Gpr::Rax)?;
                stream.immediate(Code::Shr_rm64_imm8, Register::RAX, 12)?;
                stream.registers(Code::Add_r64_rm64, Register::RAX, Register::RDX)?;
                stream.immediate(Code::Xor_RAX_imm32, Register::RAX, MASK)?;
                stream.immediate(Code::And_RAX_imm32, Register::RAX, MASK)?;
                stream.mov_imm64(Gpr::R10, TOKEN)?;
                stream.registers(Code::Cmp_r64_rm64, Register::RDX, Register::RAX)?;
                let other = stream.label();
                stream.branch(Code::Jne_rel32_64, other)?;
                stream.bind(other);
                stream.pop(Gpr::Rdx)
            }
            StubCode::Unbox => stream.immediate(Code::Add_rm64_imm8, r64(first), 8),
            StubCode::CountCall => {
                stream.compare(Place::At(Gpr::Rax, 0), Gpr::Rax)?;
                let reached = stream.label();
                stream.branch(Code::Je_rel32_64, reached)?;
                stream.bind(reached);
                Ok(())
            }
            StubCode::Shuffle => {
                stream.mov(Gpr::Rax, Gpr::Rsp)?;
                stream.mov(Gpr::R11, first)?;
                stream.mov(first, second)
            }
        }
    }
}
