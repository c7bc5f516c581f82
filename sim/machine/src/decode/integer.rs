//! Decoder of integer instructions.

use super::{bits, branch, gpr, memory, sized, with_memory};
use crate::op::{Alu, BY_REGISTER, Compare, Kind, Op, Other, Shift, StringOp, repeat};
use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};

pub(super) fn decode(i: &Instruction) -> Option<Op> {
    moves(i)
        .or_else(|| control(i))
        .or_else(|| arithmetic(i))
        .or_else(|| bit_operations(i))
        .or_else(|| string(i))
}

fn moves(i: &Instruction) -> Option<Op> {
    match i.mnemonic() {
        Mnemonic::Mov => mov(i),
        Mnemonic::Lea => {
            let op = Op { reg: gpr(i.op0_register())?, ..Op::new(Kind::Nop) };
            let size = bits(i, 0)?;
            let kinds = [Kind::Nop, Kind::Other16(Other::Lea), Kind::Lea32, Kind::Lea64];
            // lea does not add the base of a segment.
            let mut i = *i;
            i.set_segment_prefix(Register::None);
            memory(Op { kind: sized(size, kinds)?, ..op }, &i)
        }
        Mnemonic::Movzx => {
            let source = bits(i, 1)?;
            if i.op0_register().size() == 2 {
                return reg_rm(if source == 8 { Other::Zero8 } else { Other::Load }, i);
            }
            let kind = match (source, i.op1_kind()) {
                (8, OpKind::Register) => Kind::ZeroRR8,
                (8, _) => Kind::ZeroRM8,
                (16, OpKind::Register) => Kind::ZeroRR16,
                _ => Kind::ZeroRM16,
            };
            rm(Op { reg: gpr(i.op0_register())?, ..Op::new(kind) }, i, 1)
        }
        Mnemonic::Movsx | Mnemonic::Movsxd => match (i.code(), bits(i, 1)?) {
            (Code::Movsxd_r64_rm32, _) => {
                let register = i.op1_kind() == OpKind::Register;
                let kind = if register { Kind::SignRR32 } else { Kind::SignRM32 };
                rm(Op { reg: gpr(i.op0_register())?, ..Op::new(kind) }, i, 1)
            }
            (_, 8) => reg_rm(Other::Sign8, i),
            (_, 16) => reg_rm(Other::Sign16, i),
            _ => reg_rm(Other::Sign32, i),
        },
        Mnemonic::Push => push(i),
        Mnemonic::Pop => match (i.op0_kind(), bits(i, 0)?) {
            (OpKind::Register, 64) if i.op0_register().is_gpr() => {
                Some(Op { reg: gpr(i.op0_register())?, ..Op::new(Kind::PopR) })
            }
            (_, size @ (16 | 64)) => other_rm(Other::Pop, i, size, 0),
            _ => None,
        },
        Mnemonic::Cbw => Some(Op::new(Kind::Other16(Other::ExtendA))),
        Mnemonic::Cwde => Some(Op::new(Kind::Other32(Other::ExtendA))),
        Mnemonic::Cdqe => Some(Op::new(Kind::Other64(Other::ExtendA))),
        Mnemonic::Cwd => Some(Op::new(Kind::Other16(Other::ExtendIntoD))),
        Mnemonic::Cdq => Some(Op::new(Kind::Other32(Other::ExtendIntoD))),
        Mnemonic::Cqo => Some(Op::new(Kind::Other64(Other::ExtendIntoD))),
        Mnemonic::Movnti => rm_reg(Other::Store, i),
        _ => None,
    }
}

fn mov(i: &Instruction) -> Option<Op> {
    if i.op1_kind() == OpKind::Register && i.op1_register().is_segment_register() {
        let size = bits(i, 0)?;
        let op = other_rm(Other::StoreImm, i, size, 0)?;
        return Some(Op { imm: selector(i.op1_register())?, ..op });
    }
    let size = bits(i, 0)?;
    match (i.op0_kind(), i.op1_kind()) {
        (OpKind::Register, OpKind::Register) => {
            let op = Op { reg: gpr(i.op0_register())?, ..Op::new(Kind::Nop) };
            let other = Other::Load;
            let kinds = [Kind::Other8(other), Kind::Other16(other), Kind::MovRR32, Kind::MovRR64];
            rm(Op { kind: sized(size, kinds)?, ..op }, i, 1)
        }
        (OpKind::Register, OpKind::Memory) => {
            let op = Op { reg: gpr(i.op0_register())?, ..Op::new(Kind::Nop) };
            let kinds = [Kind::MovRM8, Kind::Other16(Other::Load), Kind::MovRM32, Kind::MovRM64];
            memory(Op { kind: sized(size, kinds)?, ..op }, i)
        }
        (OpKind::Memory, OpKind::Register) => {
            let op = Op { reg: gpr(i.op1_register())?, ..Op::new(Kind::Nop) };
            let kinds = [Kind::MovMR8, Kind::Other16(Other::Store), Kind::MovMR32, Kind::MovMR64];
            memory(Op { kind: sized(size, kinds)?, ..op }, i)
        }
        (OpKind::Register, _) if size >= 32 => {
            let value = i.try_immediate(1).ok()?;
            // iced sign-extends a 32-bit immediate; drop the upper half.
            let value = if size == 32 { value & u64::from(u32::MAX) } else { value };
            Some(Op {
                reg: gpr(i.op0_register())?,
                disp: ((value >> 32) as u32).cast_signed(),
                imm: (value as u32).cast_signed(),
                ..Op::new(Kind::MovRI)
            })
        }
        (OpKind::Memory, _) => {
            let kinds =
                [Kind::MovMI8, Kind::Other16(Other::StoreImm), Kind::MovMI32, Kind::MovMI64];
            memory(Op { imm: immediate(i, 1)?, ..Op::new(sized(size, kinds)?) }, i)
        }
        (OpKind::Register, _) => {
            let op = other_rm(Other::StoreImm, i, size, 0)?;
            Some(Op { imm: immediate(i, 1)?, ..op })
        }
        _ => None,
    }
}

/// Returns the selectors of a 64-bit Windows thread (Linux has 0 in ds and es).
fn selector(register: Register) -> Option<i32> {
    match register {
        Register::CS => Some(0x33),
        Register::SS | Register::DS | Register::ES | Register::GS => Some(0x2B),
        Register::FS => Some(0x53),
        _ => None,
    }
}

fn push(i: &Instruction) -> Option<Op> {
    match i.op0_kind() {
        OpKind::Register | OpKind::Memory => match bits(i, 0)? {
            64 if i.op0_kind() == OpKind::Register && i.op0_register().is_gpr() => {
                Some(Op { reg: gpr(i.op0_register())?, ..Op::new(Kind::PushR) })
            }
            size @ (16 | 64) => other_rm(Other::Push, i, size, 0),
            _ => None,
        },
        OpKind::Immediate8to64 | OpKind::Immediate32to64 => {
            Some(Op { imm: immediate(i, 0)?, ..Op::new(Kind::PushI) })
        }
        _ => None,
    }
}

fn control(i: &Instruction) -> Option<Op> {
    let near = |register, in_memory| {
        let register_operand = i.op0_kind() == OpKind::Register;
        let kind = if register_operand { register } else { in_memory };
        if bits(i, 0)? == 64 { rm(Op::new(kind), i, 0) } else { None }
    };
    match i.code() {
        Code::Call_rel32_64 => branch(Kind::Call, i),
        Code::Call_rm64 => near(Kind::CallR, Kind::CallM),
        Code::Jmp_rel8_64 | Code::Jmp_rel32_64 => branch(Kind::Jmp, i),
        Code::Jmp_rm64 => near(Kind::JmpR, Kind::JmpM),
        Code::Retnq => Some(Op { imm: 0, ..Op::new(Kind::Ret) }),
        Code::Retnq_imm16 => Some(Op { imm: immediate(i, 0)?, ..Op::new(Kind::Ret) }),
        _ => {
            // ConditionCode counts from 1 in the order of the encoding.
            let condition = (i.condition_code() as u8).checked_sub(1)?;
            if i.is_jcc_short_or_near() {
                branch(Kind::Jcc(condition), i)
            } else if i.op_count() == 1 {
                match i.op0_kind() {
                    OpKind::Register => {
                        Some(Op { reg: gpr(i.op0_register())?, ..Op::new(Kind::SetR(condition)) })
                    }
                    _ => Some(Op {
                        imm: condition.into(),
                        ..with_memory(Kind::Other8(Other::Set), i)?
                    }),
                }
            } else if i.op_count() == 2 {
                let register = i.op1_kind() == OpKind::Register;
                let op = reg_rm(Other::Cmov, i)?;
                let kind = match op.kind {
                    Kind::Other32(_) if register => Kind::CmovRR32(condition),
                    Kind::Other64(_) if register => Kind::CmovRR64(condition),
                    kind => kind,
                };
                Some(Op { kind, imm: condition.into(), ..op })
            } else {
                None
            }
        }
    }
}

fn arithmetic(i: &Instruction) -> Option<Op> {
    match i.mnemonic() {
        Mnemonic::Add => alu(Alu::Add, i),
        Mnemonic::Or => alu(Alu::Or, i),
        Mnemonic::Adc => alu(Alu::Adc, i),
        Mnemonic::Sbb => alu(Alu::Sbb, i),
        Mnemonic::And => alu(Alu::And, i),
        Mnemonic::Sub => alu(Alu::Sub, i),
        Mnemonic::Xor => alu(Alu::Xor, i),
        Mnemonic::Cmp => compare(Compare::Cmp, i),
        Mnemonic::Test => compare(Compare::Test, i),
        Mnemonic::Inc => other_rm(Other::Inc, i, bits(i, 0)?, 0),
        Mnemonic::Dec => other_rm(Other::Dec, i, bits(i, 0)?, 0),
        Mnemonic::Neg => other_rm(Other::Neg, i, bits(i, 0)?, 0),
        Mnemonic::Not => other_rm(Other::Not, i, bits(i, 0)?, 0),
        Mnemonic::Mul => other_rm(Other::Mul, i, bits(i, 0)?, 0),
        Mnemonic::Div => other_rm(Other::Div, i, bits(i, 0)?, 0),
        Mnemonic::Idiv => other_rm(Other::Idiv, i, bits(i, 0)?, 0),
        Mnemonic::Imul => match i.op_count() {
            1 => other_rm(Other::Imul, i, bits(i, 0)?, 0),
            2 => {
                let op = reg_rm(Other::ImulReg, i)?;
                let kind = match op.kind {
                    Kind::Other32(_) if i.op1_kind() == OpKind::Register => Kind::ImulRR32,
                    Kind::Other64(_) if i.op1_kind() == OpKind::Register => Kind::ImulRR64,
                    kind => kind,
                };
                Some(Op { kind, ..op })
            }
            _ => Some(Op { imm: immediate(i, 2)?, ..reg_rm(Other::ImulImm, i)? }),
        },
        Mnemonic::Rol => shift(Shift::Rol, i),
        Mnemonic::Ror => shift(Shift::Ror, i),
        Mnemonic::Rcl => shift(Shift::Rcl, i),
        Mnemonic::Rcr => shift(Shift::Rcr, i),
        Mnemonic::Shl | Mnemonic::Sal => shift(Shift::Shl, i),
        Mnemonic::Shr => shift(Shift::Shr, i),
        Mnemonic::Sar => shift(Shift::Sar, i),
        Mnemonic::Shld => double_shift(Other::Shld, i),
        Mnemonic::Shrd => double_shift(Other::Shrd, i),
        _ => None,
    }
}

fn bit_operations(i: &Instruction) -> Option<Op> {
    match i.mnemonic() {
        Mnemonic::Bt => bit_test(Other::Bt, i),
        Mnemonic::Bts => bit_test(Other::Bts, i),
        Mnemonic::Btr => bit_test(Other::Btr, i),
        Mnemonic::Btc => bit_test(Other::Btc, i),
        Mnemonic::Bsf => reg_rm(Other::Bsf, i),
        Mnemonic::Bsr => reg_rm(Other::Bsr, i),
        Mnemonic::Tzcnt => reg_rm(Other::Tzcnt, i),
        Mnemonic::Lzcnt => reg_rm(Other::Lzcnt, i),
        Mnemonic::Popcnt => reg_rm(Other::Popcnt, i),
        // bswap of 16 bits has an undefined result.
        Mnemonic::Bswap if bits(i, 0)? > 16 => other_rm(Other::Bswap, i, bits(i, 0)?, 0),
        Mnemonic::Xchg => rm_reg(Other::Xchg, i),
        Mnemonic::Xadd => rm_reg(Other::Xadd, i),
        Mnemonic::Cmpxchg => rm_reg(Other::Cmpxchg, i),
        Mnemonic::Cmpxchg8b => with_memory(Kind::Other32(Other::CmpxchgPair), i),
        Mnemonic::Cmpxchg16b => with_memory(Kind::Other64(Other::CmpxchgPair), i),
        _ => None,
    }
}

/// Decodes BMI1 and BMI2.
pub(super) fn decode_vex(i: &Instruction) -> Option<Op> {
    // The source registers are the second and third operands, in either order.
    let second = |other, first: u32, last: u32| {
        let second = gpr(i.op_register(first))?;
        let op = Op { reg: gpr(i.op0_register())?, ..Op::new(other_kind(other, bits(i, 0)?)?) };
        Some(Op { imm: second.into(), ..rm(op, i, last)? })
    };
    let of_rm = |other| {
        let op = other_rm(other, i, bits(i, 0)?, 1)?;
        Some(Op { reg: gpr(i.op0_register())?, ..op })
    };
    match i.mnemonic() {
        Mnemonic::Andn => second(Other::Andn, 1, 2),
        Mnemonic::Mulx => second(Other::Mulx, 1, 2),
        Mnemonic::Pdep => second(Other::Pdep, 1, 2),
        Mnemonic::Pext => second(Other::Pext, 1, 2),
        Mnemonic::Bextr => second(Other::Bextr, 2, 1),
        Mnemonic::Bzhi => second(Other::Bzhi, 2, 1),
        Mnemonic::Shlx => second(Other::Shlx, 2, 1),
        Mnemonic::Shrx => second(Other::Shrx, 2, 1),
        Mnemonic::Sarx => second(Other::Sarx, 2, 1),
        Mnemonic::Rorx => Some(Op { imm: immediate(i, 2)?, ..of_rm(Other::Rorx)? }),
        Mnemonic::Blsi => of_rm(Other::Blsi),
        Mnemonic::Blsr => of_rm(Other::Blsr),
        Mnemonic::Blsmsk => of_rm(Other::Blsmsk),
        _ => None,
    }
}

fn string(i: &Instruction) -> Option<Op> {
    let (string, size) = match i.mnemonic() {
        Mnemonic::Movsb => (StringOp::Movs, 8),
        Mnemonic::Movsw => (StringOp::Movs, 16),
        Mnemonic::Movsd if !i.op0_register().is_xmm() && !i.op1_register().is_xmm() => {
            (StringOp::Movs, 32)
        }
        Mnemonic::Movsq => (StringOp::Movs, 64),
        Mnemonic::Stosb => (StringOp::Stos, 8),
        Mnemonic::Stosw => (StringOp::Stos, 16),
        Mnemonic::Stosd => (StringOp::Stos, 32),
        Mnemonic::Stosq => (StringOp::Stos, 64),
        Mnemonic::Lodsb => (StringOp::Lods, 8),
        Mnemonic::Lodsw => (StringOp::Lods, 16),
        Mnemonic::Lodsd => (StringOp::Lods, 32),
        Mnemonic::Lodsq => (StringOp::Lods, 64),
        Mnemonic::Scasb => (StringOp::Scas, 8),
        Mnemonic::Scasw => (StringOp::Scas, 16),
        Mnemonic::Scasd => (StringOp::Scas, 32),
        Mnemonic::Scasq => (StringOp::Scas, 64),
        Mnemonic::Cmpsb => (StringOp::Cmps, 8),
        Mnemonic::Cmpsw => (StringOp::Cmps, 16),
        Mnemonic::Cmpsd if !i.op0_register().is_xmm() => (StringOp::Cmps, 32),
        Mnemonic::Cmpsq => (StringOp::Cmps, 64),
        _ => return None,
    };
    let plain = (0..i.op_count()).all(|n| {
        matches!(i.op_kind(n), OpKind::MemorySegRSI | OpKind::MemoryESRDI | OpKind::Register)
    });
    // 32-bit addresses and other segments are not implemented.
    if !plain || matches!(i.segment_prefix(), Register::FS | Register::GS) {
        return None;
    }
    let kinds = [
        Kind::String8(string),
        Kind::String16(string),
        Kind::String32(string),
        Kind::String64(string),
    ];
    let imm = if i.has_repne_prefix() {
        repeat::NOT_EQUAL
    } else if i.has_rep_prefix() {
        repeat::EQUAL
    } else {
        repeat::NONE
    };
    Some(Op { imm, ..Op::new(sized(size, kinds)?) })
}

fn immediate(i: &Instruction, operand: u32) -> Option<i32> {
    Some((i.try_immediate(operand).ok()? as u32).cast_signed())
}

/// Sets the second register or the memory operand from an operand of the instruction.
fn rm(op: Op, i: &Instruction, operand: u32) -> Option<Op> {
    match i.op_kind(operand) {
        OpKind::Register => Some(Op { rm: gpr(i.op_register(operand))?, ..op }),
        OpKind::Memory => memory(op, i),
        _ => None,
    }
}

fn other_kind(other: Other, size: u32) -> Option<Kind> {
    let kinds =
        [Kind::Other8(other), Kind::Other16(other), Kind::Other32(other), Kind::Other64(other)];
    sized(size, kinds)
}

fn other_rm(other: Other, i: &Instruction, size: u32, operand: u32) -> Option<Op> {
    rm(Op::new(other_kind(other, size)?), i, operand)
}

/// Decodes the operands reg, rm; the size is that of the register.
fn reg_rm(other: Other, i: &Instruction) -> Option<Op> {
    let op = Op::new(other_kind(other, bits(i, 0)?)?);
    rm(Op { reg: gpr(i.op0_register())?, ..op }, i, 1)
}

/// Decodes the operands rm, reg.
fn rm_reg(other: Other, i: &Instruction) -> Option<Op> {
    let op = Op::new(other_kind(other, bits(i, 0)?)?);
    rm(Op { reg: gpr(i.op1_register())?, ..op }, i, 0)
}

fn alu(alu: Alu, i: &Instruction) -> Option<Op> {
    use Kind::{
        AluMI8, AluMI16, AluMI32, AluMI64, AluMR8, AluMR16, AluMR32, AluMR64, AluRI8, AluRI16,
        AluRI32, AluRI64, AluRM8, AluRM16, AluRM32, AluRM64, AluRR8, AluRR16, AluRR32, AluRR64,
    };
    let kinds: Forms<fn(Alu) -> Kind> = [
        [AluRR8, AluRR16, AluRR32, AluRR64],
        [AluRM8, AluRM16, AluRM32, AluRM64],
        [AluMR8, AluMR16, AluMR32, AluMR64],
        [AluRI8, AluRI16, AluRI32, AluRI64],
        [AluMI8, AluMI16, AluMI32, AluMI64],
    ];
    two_operands(kinds.map(|sizes| sizes.map(|kind| kind(alu))), i)
}

fn compare(compare: Compare, i: &Instruction) -> Option<Op> {
    use Kind::{
        CompareMI8, CompareMI16, CompareMI32, CompareMI64, CompareMR8, CompareMR16, CompareMR32,
        CompareMR64, CompareRI8, CompareRI16, CompareRI32, CompareRI64, CompareRM8, CompareRM16,
        CompareRM32, CompareRM64, CompareRR8, CompareRR16, CompareRR32, CompareRR64,
    };
    let kinds: Forms<fn(Compare) -> Kind> = [
        [CompareRR8, CompareRR16, CompareRR32, CompareRR64],
        [CompareRM8, CompareRM16, CompareRM32, CompareRM64],
        [CompareMR8, CompareMR16, CompareMR32, CompareMR64],
        [CompareRI8, CompareRI16, CompareRI32, CompareRI64],
        [CompareMI8, CompareMI16, CompareMI32, CompareMI64],
    ];
    two_operands(kinds.map(|sizes| sizes.map(|kind| kind(compare))), i)
}

/// Indexed by form (RR, RM, MR, RI, MI) and size.
type Forms<T> = [[T; 4]; 5];

fn two_operands(kinds: Forms<Kind>, i: &Instruction) -> Option<Op> {
    let size = bits(i, 0)?;
    let [rr, from_memory, to_memory, ri, mi] = kinds.map(|kinds| sized(size, kinds));
    match (i.op0_kind(), i.op1_kind()) {
        (OpKind::Register, OpKind::Register) => {
            Some(Op { reg: gpr(i.op0_register())?, rm: gpr(i.op1_register())?, ..Op::new(rr?) })
        }
        (OpKind::Register, OpKind::Memory) => {
            memory(Op { reg: gpr(i.op0_register())?, ..Op::new(from_memory?) }, i)
        }
        (OpKind::Memory, OpKind::Register) => {
            memory(Op { reg: gpr(i.op1_register())?, ..Op::new(to_memory?) }, i)
        }
        (OpKind::Register, _) => {
            Some(Op { reg: gpr(i.op0_register())?, imm: immediate(i, 1)?, ..Op::new(ri?) })
        }
        (OpKind::Memory, _) => memory(Op { imm: immediate(i, 1)?, ..Op::new(mi?) }, i),
        _ => None,
    }
}

fn shift(shift: Shift, i: &Instruction) -> Option<Op> {
    let size = bits(i, 0)?;
    let count = match i.op1_kind() {
        OpKind::Register => BY_REGISTER,
        // Only the low bits of the count matter, and the value must not equal `BY_REGISTER`.
        _ => immediate(i, 1)? & 0x3F,
    };
    let fixed = count != BY_REGISTER && i.op0_kind() == OpKind::Register;
    let kinds = if fixed {
        [Kind::Shift8(shift), Kind::Shift16(shift), Kind::ShiftRI32(shift), Kind::ShiftRI64(shift)]
    } else {
        [Kind::Shift8(shift), Kind::Shift16(shift), Kind::Shift32(shift), Kind::Shift64(shift)]
    };
    rm(Op { imm: count, ..Op::new(sized(size, kinds)?) }, i, 0)
}

fn double_shift(other: Other, i: &Instruction) -> Option<Op> {
    let count = match i.op2_kind() {
        OpKind::Register => BY_REGISTER,
        _ => immediate(i, 2)? & 0x3F,
    };
    Some(Op { imm: count, ..rm_reg(other, i)? })
}

fn bit_test(other: Other, i: &Instruction) -> Option<Op> {
    if i.op1_kind() == OpKind::Register {
        return Some(Op { imm: BY_REGISTER, ..rm_reg(other, i)? });
    }
    let op = other_rm(other, i, bits(i, 0)?, 0)?;
    Some(Op { imm: immediate(i, 1)? & 0x3F, ..op })
}
