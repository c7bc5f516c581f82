//! Conversion of iced-x86 instructions to operations.

mod integer;
mod simd;

use super::cpu::slot;
use super::op::{IN_MEMORY, Kind, Op, System};
use iced_x86::{EncodingKind, Instruction, Mnemonic, OpKind, Register};

/// Returns the operation for an instruction, or `None` if it is not implemented.
pub(super) fn decode(instruction: &Instruction) -> Option<Op> {
    let legacy = match instruction.code().encoding() {
        EncodingKind::Legacy => true,
        EncodingKind::VEX => false,
        _ => return None,
    };
    let op = if legacy {
        system(instruction)
            .or_else(|| integer::decode(instruction))
            .or_else(|| simd::decode(instruction))
    } else {
        integer::decode_vex(instruction).or_else(|| simd::decode_vex(instruction))
    }?;
    Some(Op { len: instruction.len() as u8, ..op })
}

/// Decodes instructions without relevant operands, and some similar ones.
fn system(i: &Instruction) -> Option<Op> {
    let simple = |kind| Some(Op::new(Kind::System(kind)));
    match i.mnemonic() {
        // The operand of a nop does not matter.
        Mnemonic::Nop
        | Mnemonic::Endbr64
        | Mnemonic::Endbr32
        | Mnemonic::Pause
        | Mnemonic::Lfence
        | Mnemonic::Mfence
        | Mnemonic::Sfence
        | Mnemonic::Prefetchnta
        | Mnemonic::Prefetcht0
        | Mnemonic::Prefetcht1
        | Mnemonic::Prefetcht2
        | Mnemonic::Prefetchw => Some(Op::new(Kind::Nop)),
        Mnemonic::Iretq => Some(Op::new(Kind::Iretq)),
        Mnemonic::Leave if i.code() == iced_x86::Code::Leaveq => Some(Op::new(Kind::Leave)),
        Mnemonic::Pushfq => simple(System::Pushfq),
        Mnemonic::Popfq => simple(System::Popfq),
        Mnemonic::Lahf => simple(System::Lahf),
        Mnemonic::Sahf => simple(System::Sahf),
        Mnemonic::Clc => simple(System::Clc),
        Mnemonic::Stc => simple(System::Stc),
        Mnemonic::Cmc => simple(System::Cmc),
        Mnemonic::Cld => simple(System::Cld),
        Mnemonic::Std => simple(System::Std),
        Mnemonic::Int3 => simple(System::Int3),
        Mnemonic::Int | Mnemonic::Syscall => simple(System::Interrupt),
        Mnemonic::Ud0 | Mnemonic::Ud1 | Mnemonic::Ud2 => simple(System::Invalid),
        Mnemonic::Hlt
        | Mnemonic::Cli
        | Mnemonic::Sti
        | Mnemonic::In
        | Mnemonic::Out
        | Mnemonic::Insb
        | Mnemonic::Insw
        | Mnemonic::Insd
        | Mnemonic::Outsb
        | Mnemonic::Outsw
        | Mnemonic::Iretd
        | Mnemonic::Outsd => simple(System::Privileged),
        Mnemonic::Ldmxcsr => with_memory(Kind::System(System::Ldmxcsr), i),
        Mnemonic::Stmxcsr => with_memory(Kind::System(System::Stmxcsr), i),
        Mnemonic::Jrcxz => branch(Kind::System(System::JumpZero64), i),
        Mnemonic::Jecxz => branch(Kind::System(System::JumpZero32), i),
        Mnemonic::Loop => counted(System::Loop, i),
        Mnemonic::Loope => counted(System::LoopEqual, i),
        Mnemonic::Loopne => counted(System::LoopNotEqual, i),
        _ => None,
    }
}

/// Decodes loop and similar instructions. With an address-size prefix they count with ecx, which is
/// not implemented.
fn counted(kind: System, i: &Instruction) -> Option<Op> {
    use iced_x86::Code;
    let wide = matches!(
        i.code(),
        Code::Loop_rel8_64_RCX | Code::Loope_rel8_64_RCX | Code::Loopne_rel8_64_RCX
    );
    if wide { branch(Kind::System(kind), i) } else { None }
}

/// Decodes a jump or call to an address in the instruction.
fn branch(kind: Kind, i: &Instruction) -> Option<Op> {
    // The 16-bit forms truncate rip.
    if i.op0_kind() != OpKind::NearBranch64 {
        return None;
    }
    let distance = i.near_branch64().wrapping_sub(i.next_ip()).cast_signed();
    Some(Op { imm: i32::try_from(distance).ok()?, ..Op::new(kind) })
}

/// Returns the number of an integer register as used in operations.
fn gpr(register: Register) -> Option<u8> {
    match register {
        Register::AH => Some(slot::HIGH),
        Register::CH => Some(slot::HIGH | 1),
        Register::DH => Some(slot::HIGH | 2),
        Register::BH => Some(slot::HIGH | 3),
        _ if register.is_gpr() => Some(register.full_register().number() as u8),
        _ => None,
    }
}

/// Returns the number of an xmm register.
fn xmm(register: Register) -> Option<u8> {
    register.is_xmm().then(|| register.number() as u8)
}

/// Creates an operation of the given kind with the memory operand of the instruction.
fn with_memory(kind: Kind, i: &Instruction) -> Option<Op> {
    memory(Op::new(kind), i)
}

/// Adds the memory operand of the instruction to an operation.
fn memory(op: Op, i: &Instruction) -> Option<Op> {
    let mut base = match i.memory_base() {
        Register::None => slot::ZERO,
        Register::RIP => slot::RIP,
        register if register.is_gpr64() => register.number() as u8,
        // 32-bit addresses are not implemented.
        _ => return None,
    };
    let mut scale = i.memory_index_scale().trailing_zeros() as u8;
    let mut index = match i.memory_index() {
        Register::None => slot::ZERO,
        register if register.is_gpr64() => register.number() as u8,
        _ => return None,
    };
    let segment = match i.memory_segment() {
        Register::FS => Some(slot::FS),
        Register::GS => Some(slot::GS),
        _ => None,
    };
    if let Some(segment) = segment {
        // The base of the segment takes the place of an unused base or index.
        if base == slot::ZERO {
            base = segment;
        } else if index == slot::ZERO {
            (index, scale) = (segment, 0);
        } else {
            return None;
        }
    }
    let mut disp = i.memory_displacement64();
    if base == slot::RIP {
        disp = disp.wrapping_sub(i.next_ip());
    }
    let disp = i32::try_from(disp.cast_signed()).ok()?;
    // With an address-size prefix and neither base nor index, the address has 32 bits too.
    if base == slot::ZERO && index == slot::ZERO && i.memory_displ_size() == 4 {
        return None;
    }
    Some(Op { rm: IN_MEMORY, base, index, scale, disp, ..op })
}

/// Returns the size in bits of an operand in a register or in memory.
fn bits(i: &Instruction, operand: u32) -> Option<u32> {
    let bytes = match i.op_kind(operand) {
        OpKind::Register => i.op_register(operand).size(),
        OpKind::Memory => i.memory_size().size(),
        _ => return None,
    };
    Some(bytes as u32 * 8)
}

/// Returns the element for a size in bits.
fn sized<T: Copy>(bits: u32, kinds: [T; 4]) -> Option<T> {
    match bits {
        8 => Some(kinds[0]),
        16 => Some(kinds[1]),
        32 => Some(kinds[2]),
        64 => Some(kinds[3]),
        _ => None,
    }
}
