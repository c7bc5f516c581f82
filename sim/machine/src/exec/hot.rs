//! All operations; the frequent ones are inlined into the loop.

use super::alu::{alu, compare, shift};
use super::{Flow, Halted, Reason};
use crate::Machine;
use crate::flags::{low, sign_extend};
use crate::observer::Observer;
use crate::op::{Alu, Compare, Kind, PackedOp, Shift};
use clr_unwind::Gpr;

impl Machine {
    /// Executes the operation of the instruction at `rip`, with the next one at `next`. Functions
    /// that are not inlined look up the operation again by `index`, so that its fields can stay in registers here. All
    /// kinds are in one `match`, so that it takes one jump to get to an operation's code.
    #[expect(clippy::too_many_lines, reason = "a line for each operation")]
    #[inline(always)]
    pub(super) fn operation<O: Observer>(
        &mut self,
        observer: &mut O,
        rip: u64,
        next: u64,
        op: PackedOp,
        index: u32,
    ) -> Result<Flow, Halted> {
        match op.kind {
            Kind::Undecoded => return Ok(Flow::Decode),
            Kind::Breakpoint => return self.halt(Reason::Breakpoint),
            Kind::Trap => return self.halt(Reason::Trap(op.imm.cast_unsigned())),
            Kind::Nop => {}

            Kind::Call => {
                let target = next.wrapping_add(op.imm());
                self.call(observer, rip, next, target)?;
                return Ok(Flow::Direct(target));
            }
            Kind::CallR => {
                let target = self.reg::<64>(op.rm());
                self.call(observer, rip, next, target)?;
                return Ok(Flow::To(target));
            }
            Kind::CallM => {
                let target = self.read_mem::<64>(self.address(op))?;
                self.call(observer, rip, next, target)?;
                return Ok(Flow::To(target));
            }
            Kind::Ret => return self.ret(observer, rip, op).map(Flow::To),
            Kind::Jmp => {
                let target = next.wrapping_add(op.imm());
                self.jump(observer, rip, target);
                return Ok(Flow::Direct(target));
            }
            Kind::JmpR => {
                let target = self.reg::<64>(op.rm());
                self.jump(observer, rip, target);
                return Ok(Flow::To(target));
            }
            Kind::JmpM => {
                let target = self.read_mem::<64>(self.address(op))?;
                self.jump(observer, rip, target);
                return Ok(Flow::To(target));
            }
            Kind::Jcc(condition) => return Ok(self.branch(observer, rip, next, op, condition)),
            Kind::Iretq => {
                let target = self.interrupt_return()?;
                self.cpu.set_rip(target);
                observer.on_interrupt_return(&self.cpu, rip);
                return Ok(Flow::To(target));
            }
            Kind::System(system) => return self.system(system, index, next).map(Flow::To),
            Kind::String8(string) => {
                return self.string::<8>(string, index, rip, next).map(Flow::To);
            }
            Kind::String16(string) => {
                return self.string::<16>(string, index, rip, next).map(Flow::To);
            }
            Kind::String32(string) => {
                return self.string::<32>(string, index, rip, next).map(Flow::To);
            }
            Kind::String64(string) => {
                return self.string::<64>(string, index, rip, next).map(Flow::To);
            }
            Kind::Jb => return Ok(self.branch(observer, rip, next, op, 2)),
            Kind::Jae => return Ok(self.branch(observer, rip, next, op, 3)),
            Kind::Je => return Ok(self.branch(observer, rip, next, op, 4)),
            Kind::Jne => return Ok(self.branch(observer, rip, next, op, 5)),
            Kind::Jbe => return Ok(self.branch(observer, rip, next, op, 6)),
            Kind::Ja => return Ok(self.branch(observer, rip, next, op, 7)),
            Kind::Js => return Ok(self.branch(observer, rip, next, op, 8)),
            Kind::Jns => return Ok(self.branch(observer, rip, next, op, 9)),
            Kind::Jl => return Ok(self.branch(observer, rip, next, op, 12)),
            Kind::Jge => return Ok(self.branch(observer, rip, next, op, 13)),
            Kind::Jle => return Ok(self.branch(observer, rip, next, op, 14)),
            Kind::Jg => return Ok(self.branch(observer, rip, next, op, 15)),

            Kind::MovRR64 => self.set_reg::<64>(op.reg(), self.reg::<64>(op.rm())),
            Kind::MovRR32 => self.set_reg::<32>(op.reg(), self.reg::<32>(op.rm())),
            Kind::MovRI => self.set_reg::<64>(op.reg(), op.wide_imm()),
            Kind::MovRM64 => self.load::<64, 64>(op)?,
            Kind::MovRM32 => self.load::<32, 32>(op)?,
            Kind::MovRM8 => self.load::<8, 8>(op)?,
            Kind::MovMR64 => self.write_mem::<64>(self.address(op), self.reg::<64>(op.reg()))?,
            Kind::MovMR32 => self.write_mem::<32>(self.address(op), self.reg::<32>(op.reg()))?,
            Kind::MovMR8 => self.write_mem::<8>(self.address(op), self.reg::<8>(op.reg()))?,
            Kind::MovMI64 => self.write_mem::<64>(self.address(op), op.imm())?,
            Kind::MovMI32 => self.write_mem::<32>(self.address(op), op.imm())?,
            Kind::MovMI8 => self.write_mem::<8>(self.address(op), op.imm())?,
            Kind::Lea64 => self.set_reg::<64>(op.reg(), self.address(op)),
            Kind::Lea32 => self.set_reg::<32>(op.reg(), self.address(op)),
            Kind::ZeroRR8 => self.set_reg::<64>(op.reg(), self.reg::<8>(op.rm())),
            Kind::ZeroRM8 => self.load::<8, 64>(op)?,
            Kind::ZeroRR16 => self.set_reg::<64>(op.reg(), self.reg::<16>(op.rm())),
            Kind::ZeroRM16 => self.load::<16, 64>(op)?,
            Kind::SignRR32 => {
                self.set_reg::<64>(op.reg(), sign_extend::<32>(self.reg::<32>(op.rm())));
            }
            Kind::SignRM32 => {
                let value = self.read_mem::<32>(self.address(op))?;
                self.set_reg::<64>(op.reg(), sign_extend::<32>(value));
            }
            Kind::PushR => self.push::<64>(self.reg::<64>(op.reg()))?,
            Kind::PushI => self.push::<64>(op.imm())?,
            Kind::PopR => {
                let value = self.pop::<64>()?;
                self.set_reg::<64>(op.reg(), value);
            }
            Kind::Leave => {
                let frame = self.cpu.get(Gpr::Rbp);
                let value = self.read_mem::<64>(frame)?;
                self.cpu.set(Gpr::Rsp, frame.wrapping_add(8));
                self.cpu.set(Gpr::Rbp, value);
            }
            Kind::SetR(condition) => {
                self.set_reg::<8>(op.reg(), self.cpu.flags.condition(condition).into());
            }
            Kind::CmovRR64(condition) => self.cmov::<64>(condition, op),
            Kind::CmovRR32(condition) => self.cmov::<32>(condition, op),

            Kind::AluRR8(alu) => self.alu_rr::<8>(alu, op),
            Kind::AluRR16(alu) => self.alu_rr::<16>(alu, op),
            Kind::AluRR32(alu) => self.alu_rr::<32>(alu, op),
            Kind::AluRR64(alu) => self.alu_rr::<64>(alu, op),
            Kind::AluRI8(alu) => self.alu_ri::<8>(alu, op),
            Kind::AluRI16(alu) => self.alu_ri::<16>(alu, op),
            Kind::AluRI32(alu) => self.alu_ri::<32>(alu, op),
            Kind::AluRI64(alu) => self.alu_ri::<64>(alu, op),
            Kind::AluRM8(alu) => self.alu_rm::<8>(alu, op)?,
            Kind::AluRM16(alu) => self.alu_rm::<16>(alu, op)?,
            Kind::AluRM32(alu) => self.alu_rm::<32>(alu, op)?,
            Kind::AluRM64(alu) => self.alu_rm::<64>(alu, op)?,
            Kind::AluMR8(alu) => self.alu_mr::<8>(alu, op)?,
            Kind::AluMR16(alu) => self.alu_mr::<16>(alu, op)?,
            Kind::AluMR32(alu) => self.alu_mr::<32>(alu, op)?,
            Kind::AluMR64(alu) => self.alu_mr::<64>(alu, op)?,
            Kind::AluMI8(alu) => self.alu_mi::<8>(alu, op)?,
            Kind::AluMI16(alu) => self.alu_mi::<16>(alu, op)?,
            Kind::AluMI32(alu) => self.alu_mi::<32>(alu, op)?,
            Kind::AluMI64(alu) => self.alu_mi::<64>(alu, op)?,

            Kind::CompareRR8(kind) => self.compare_rr::<8>(kind, op),
            Kind::CompareRR16(kind) => self.compare_rr::<16>(kind, op),
            Kind::CompareRR32(kind) => self.compare_rr::<32>(kind, op),
            Kind::CompareRR64(kind) => self.compare_rr::<64>(kind, op),
            Kind::CompareRI8(kind) => self.compare_ri::<8>(kind, op),
            Kind::CompareRI16(kind) => self.compare_ri::<16>(kind, op),
            Kind::CompareRI32(kind) => self.compare_ri::<32>(kind, op),
            Kind::CompareRI64(kind) => self.compare_ri::<64>(kind, op),
            Kind::CompareRM8(kind) => self.compare_rm::<8>(kind, op)?,
            Kind::CompareRM16(kind) => self.compare_rm::<16>(kind, op)?,
            Kind::CompareRM32(kind) => self.compare_rm::<32>(kind, op)?,
            Kind::CompareRM64(kind) => self.compare_rm::<64>(kind, op)?,
            Kind::CompareMR8(kind) => self.compare_mr::<8>(kind, op)?,
            Kind::CompareMR16(kind) => self.compare_mr::<16>(kind, op)?,
            Kind::CompareMR32(kind) => self.compare_mr::<32>(kind, op)?,
            Kind::CompareMR64(kind) => self.compare_mr::<64>(kind, op)?,
            Kind::CompareMI8(kind) => self.compare_mi::<8>(kind, op)?,
            Kind::CompareMI16(kind) => self.compare_mi::<16>(kind, op)?,
            Kind::CompareMI32(kind) => self.compare_mi::<32>(kind, op)?,
            Kind::CompareMI64(kind) => self.compare_mi::<64>(kind, op)?,

            Kind::ShiftRI32(shift) => self.shift_ri::<32>(shift, op),
            Kind::ShiftRI64(shift) => self.shift_ri::<64>(shift, op),
            Kind::Shift8(shift) => self.shift_rm::<8>(shift, index)?,
            Kind::Shift16(shift) => self.shift_rm::<16>(shift, index)?,
            Kind::Shift32(shift) => self.shift_rm::<32>(shift, index)?,
            Kind::Shift64(shift) => self.shift_rm::<64>(shift, index)?,
            Kind::ImulRR32 => self.imul::<32>(op),
            Kind::ImulRR64 => self.imul::<64>(op),
            Kind::Other8(other) => self.other::<8>(other, index)?,
            Kind::Other16(other) => self.other::<16>(other, index)?,
            Kind::Other32(other) => self.other::<32>(other, index)?,
            Kind::Other64(other) => self.other::<64>(other, index)?,

            Kind::MovXX => self.cpu.set_xmm(op.reg(), self.cpu.xmm(op.rm())),
            Kind::MovXM8 => {
                let value = self.read_mem::<64>(self.address(op))?;
                self.cpu.set_xmm(op.reg(), value.into());
            }
            Kind::MovXM16 => {
                let value = self.read_x(self.address(op))?;
                self.cpu.set_xmm(op.reg(), value);
            }
            Kind::MovXM16Aligned => {
                let address = self.aligned(op)?;
                let value = self.read_x(address)?;
                self.cpu.set_xmm(op.reg(), value);
            }
            Kind::MovMX8 => {
                self.write_mem::<64>(self.address(op), self.cpu.xmm(op.reg()) as u64)?;
            }
            Kind::MovMX16 => self.write_x(self.address(op), self.cpu.xmm(op.reg()))?,
            Kind::MovMX16Aligned => {
                let address = self.aligned(op)?;
                self.write_x(address, self.cpu.xmm(op.reg()))?;
            }
            Kind::Simd(simd) => self.simd(simd, index)?,
            Kind::Extract32(extract) => self.extract::<32>(extract, index)?,
            Kind::Extract64(extract) => self.extract::<64>(extract, index)?,
            Kind::AddRR64 => self.alu_rr::<64>(Alu::Add, op),
            Kind::SubRR64 => self.alu_rr::<64>(Alu::Sub, op),
            Kind::AndRR64 => self.alu_rr::<64>(Alu::And, op),
            Kind::OrRR64 => self.alu_rr::<64>(Alu::Or, op),
            Kind::XorRR64 => self.alu_rr::<64>(Alu::Xor, op),
            Kind::AddRI64 => self.alu_ri::<64>(Alu::Add, op),
            Kind::SubRI64 => self.alu_ri::<64>(Alu::Sub, op),
            Kind::AndRI64 => self.alu_ri::<64>(Alu::And, op),
            Kind::CmpRR64 => self.compare_rr::<64>(Compare::Cmp, op),
            Kind::CmpRI64 => self.compare_ri::<64>(Compare::Cmp, op),
            Kind::TestRR64 => self.compare_rr::<64>(Compare::Test, op),
            Kind::TestRI64 => self.compare_ri::<64>(Compare::Test, op),
            Kind::ShlRI64 => self.shift_ri::<64>(Shift::Shl, op),
            Kind::ShrRI64 => self.shift_ri::<64>(Shift::Shr, op),
            Kind::AddRR32 => self.alu_rr::<32>(Alu::Add, op),
            Kind::SubRR32 => self.alu_rr::<32>(Alu::Sub, op),
            Kind::AndRR32 => self.alu_rr::<32>(Alu::And, op),
            Kind::OrRR32 => self.alu_rr::<32>(Alu::Or, op),
            Kind::XorRR32 => self.alu_rr::<32>(Alu::Xor, op),
            Kind::AddRI32 => self.alu_ri::<32>(Alu::Add, op),
            Kind::SubRI32 => self.alu_ri::<32>(Alu::Sub, op),
            Kind::AndRI32 => self.alu_ri::<32>(Alu::And, op),
            Kind::CmpRR32 => self.compare_rr::<32>(Compare::Cmp, op),
            Kind::CmpRI32 => self.compare_ri::<32>(Compare::Cmp, op),
            Kind::TestRR32 => self.compare_rr::<32>(Compare::Test, op),
            Kind::TestRI32 => self.compare_ri::<32>(Compare::Test, op),
            Kind::ShlRI32 => self.shift_ri::<32>(Shift::Shl, op),
            Kind::ShrRI32 => self.shift_ri::<32>(Shift::Shr, op),
            Kind::AddRM64 => self.alu_rm::<64>(Alu::Add, op)?,
        }
        Ok(Flow::Next)
    }

    /// Loads `FROM` bits of memory into a register of `TO` bits.
    #[inline(always)]
    fn load<const FROM: u32, const TO: u32>(&mut self, op: PackedOp) -> Result<(), Halted> {
        let value = self.read_mem::<FROM>(self.address(op))?;
        self.set_reg::<TO>(op.reg(), value);
        Ok(())
    }

    #[inline(always)]
    fn cmov<const BITS: u32>(&mut self, condition: u8, op: PackedOp) {
        let moved = self.cpu.flags.condition(condition);
        // A 32-bit destination loses its upper half in either case.
        let value = self.reg::<BITS>(if moved { op.rm() } else { op.reg() });
        self.set_reg::<BITS>(op.reg(), value);
    }

    #[inline(always)]
    fn alu_rr<const BITS: u32>(&mut self, kind: Alu, op: PackedOp) {
        self.alu_r::<BITS>(kind, op, self.reg::<BITS>(op.rm()));
    }

    #[inline(always)]
    fn alu_ri<const BITS: u32>(&mut self, kind: Alu, op: PackedOp) {
        self.alu_r::<BITS>(kind, op, low::<BITS>(op.imm()));
    }

    #[inline(always)]
    fn alu_rm<const BITS: u32>(&mut self, kind: Alu, op: PackedOp) -> Result<(), Halted> {
        let b = self.read_mem::<BITS>(self.address(op))?;
        self.alu_r::<BITS>(kind, op, b);
        Ok(())
    }

    #[inline(always)]
    fn alu_mr<const BITS: u32>(&mut self, kind: Alu, op: PackedOp) -> Result<(), Halted> {
        self.alu_m::<BITS>(kind, op, self.reg::<BITS>(op.reg()))
    }

    #[inline(always)]
    fn alu_mi<const BITS: u32>(&mut self, kind: Alu, op: PackedOp) -> Result<(), Halted> {
        self.alu_m::<BITS>(kind, op, low::<BITS>(op.imm()))
    }

    /// Applies an operation to a register.
    #[inline(always)]
    fn alu_r<const BITS: u32>(&mut self, kind: Alu, op: PackedOp, b: u64) {
        let a = self.reg::<BITS>(op.reg());
        let (result, flags) = alu::<BITS>(kind, a, b, self.cpu.flags);
        self.set_reg::<BITS>(op.reg(), result);
        self.cpu.flags = flags;
    }

    /// Applies an operation to memory.
    #[inline(always)]
    fn alu_m<const BITS: u32>(&mut self, kind: Alu, op: PackedOp, b: u64) -> Result<(), Halted> {
        let address = self.address(op);
        let a = self.read_mem::<BITS>(address)?;
        let (result, flags) = alu::<BITS>(kind, a, b, self.cpu.flags);
        self.write_mem::<BITS>(address, result)?;
        self.cpu.flags = flags;
        Ok(())
    }

    #[inline(always)]
    fn compare_rr<const BITS: u32>(&mut self, kind: Compare, op: PackedOp) {
        self.compare::<BITS>(kind, self.reg::<BITS>(op.reg()), self.reg::<BITS>(op.rm()));
    }

    #[inline(always)]
    fn compare_ri<const BITS: u32>(&mut self, kind: Compare, op: PackedOp) {
        self.compare::<BITS>(kind, self.reg::<BITS>(op.reg()), low::<BITS>(op.imm()));
    }

    #[inline(always)]
    fn compare_rm<const BITS: u32>(&mut self, kind: Compare, op: PackedOp) -> Result<(), Halted> {
        let b = self.read_mem::<BITS>(self.address(op))?;
        self.compare::<BITS>(kind, self.reg::<BITS>(op.reg()), b);
        Ok(())
    }

    #[inline(always)]
    fn compare_mr<const BITS: u32>(&mut self, kind: Compare, op: PackedOp) -> Result<(), Halted> {
        let a = self.read_mem::<BITS>(self.address(op))?;
        self.compare::<BITS>(kind, a, self.reg::<BITS>(op.reg()));
        Ok(())
    }

    #[inline(always)]
    fn compare_mi<const BITS: u32>(&mut self, kind: Compare, op: PackedOp) -> Result<(), Halted> {
        let a = self.read_mem::<BITS>(self.address(op))?;
        self.compare::<BITS>(kind, a, low::<BITS>(op.imm()));
        Ok(())
    }

    #[inline(always)]
    fn compare<const BITS: u32>(&mut self, kind: Compare, a: u64, b: u64) {
        self.cpu.flags = compare::<BITS>(kind, a, b, self.cpu.flags);
    }

    #[inline(always)]
    fn shift_ri<const BITS: u32>(&mut self, kind: Shift, op: PackedOp) {
        let a = self.reg::<BITS>(op.rm());
        let (result, flags) = shift::<BITS>(kind, a, op.imm(), self.cpu.flags);
        self.set_reg::<BITS>(op.rm(), result);
        self.cpu.flags = flags;
    }

    /// Multiplies. The flags that the manuals leave undefined do not change.
    #[inline(always)]
    fn imul<const BITS: u32>(&mut self, op: PackedOp) {
        let a = sign_extend::<BITS>(self.reg::<BITS>(op.reg())).cast_signed();
        let b = sign_extend::<BITS>(self.reg::<BITS>(op.rm())).cast_signed();
        let (result, mut lost) = a.overflowing_mul(b);
        lost |= sign_extend::<BITS>(result.cast_unsigned()) != result.cast_unsigned();
        self.set_reg::<BITS>(op.reg(), result.cast_unsigned());
        self.cpu.flags = self.cpu.flags.with_carry_overflow(lost, lost);
    }
}
