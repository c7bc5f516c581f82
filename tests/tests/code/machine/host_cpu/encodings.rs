//! Instructions to test: every form in 64-bit mode, with registers, addresses and immediates of
//! many kinds.

use super::*;
use iced_x86::{
    Decoder, DecoderOptions, Encoder, EncodingKind, MemoryOperand, OpCodeOperandKind as Kind,
};

#[derive(Clone, Debug)]
pub(crate) struct Encoding {
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
    /// The instruction as decoded at `at`.
    pub(crate) instruction: Instruction,
}

impl Encoding {
    /// Decodes the instruction at `at`, if there is one.
    pub(crate) fn decode(at: u64, bytes: &[u8]) -> Option<Self> {
        let instruction = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
        let bytes = bytes.get(..instruction.len())?.to_vec();
        (!instruction.is_invalid()).then_some(Self { at, bytes, instruction })
    }
}

/// Numbers of the registers for the operands in order; further operands take numbers from 13 on.
/// Numbers from 16 on are the second bytes of registers for operands of 8 bits.
const REGISTERS: [[u32; 4]; 9] = [
    [1, 2, 6, 7],
    [0, 3, 5, 1],
    [9, 14, 11, 12],
    [4, 5, 6, 3],
    [3, 3, 3, 3],
    [0, 0, 1, 1],
    [16, 19, 17, 18],
    [2, 17, 2, 1],
    [12, 8, 8, 4],
];

const HIGH_BYTES: [Register; 4] = [Register::AH, Register::CH, Register::DH, Register::BH];

#[derive(Clone, Copy, Debug)]
struct Address {
    segment: Register,
    base: Register,
    index: Register,
    scale: u32,
    displacement: i64,
}

const fn address(base: Register, index: Register, scale: u32, displacement: i64) -> Address {
    Address { segment: Register::None, base, index, scale, displacement }
}

const ADDRESSES: [Address; 15] = [
    address(Register::RBX, Register::None, 1, 0),
    address(Register::RBP, Register::None, 1, -0x12),
    address(Register::RSP, Register::None, 1, 0x20),
    address(Register::R12, Register::None, 1, 0x12345),
    address(Register::R13, Register::R14, 8, 0x40),
    address(Register::RIP, Register::None, 1, WINDOW.cast_signed() + 0x80),
    address(Register::None, Register::RAX, 4, WINDOW.cast_signed() - 0x1000),
    address(Register::RDX, Register::RDX, 2, -1),
    Address { segment: Register::GS, ..address(Register::RSI, Register::None, 1, 0) },
    Address { segment: Register::FS, ..address(Register::None, Register::None, 1, 0x38) },
    address(Register::None, Register::None, 1, WINDOW.cast_signed() + 0x90),
    address(Register::RCX, Register::RAX, 1, 0x7FFF_FFFF),
    address(Register::RAX, Register::R9, 2, -0x8000_0000),
    address(Register::R8, Register::RBP, 4, 0),
    Address { segment: Register::FS, ..address(Register::None, Register::RCX, 8, -8) },
];

/// A choice of operands for a form.
#[derive(Clone, Copy, Debug)]
struct Shape {
    registers: [u32; 4],
    /// An address that replaces a register where the operand may be in memory.
    address: Option<Address>,
    immediate: u64,
    lock: bool,
    at: u64,
}

/// Addresses of instructions (VA): in the middle of the page, and one byte before its end.
const PLACES: [u64; 2] = [CODE + 0x800, CODE + 0xFFF];

pub(crate) fn encodings(code: Code) -> Vec<Encoding> {
    let info = code.op_code();
    if !info.is_instruction()
        || !info.mode64()
        // iretd goes to 32-bit code, which the machine does not support.
        || code == Code::Iretd
        // AMD's processors read 4 bytes of memory, Intel's 2.
        || code == Code::Movsxd_r16_rm16
        || !matches!(code.encoding(), EncodingKind::Legacy | EncodingKind::VEX)
    {
        return Vec::new();
    }
    let mut random = Random::new(code as u64);
    let immediates = immediates(info.op_kinds(), &mut random);
    let in_memory = info.op_kinds().iter().any(|kind| may_be_memory(*kind));
    let in_register = !info.op_kinds().iter().any(|kind| is_memory(*kind));
    let plain = Shape {
        registers: REGISTERS[0],
        address: None,
        immediate: immediates[0],
        lock: false,
        at: PLACES[0],
    };
    let mut shapes = Vec::new();
    let mut next = 0..;
    let mut vary = |shape: Shape| {
        let n: usize = next.next().unwrap_or(0);
        Shape { immediate: immediates[n % immediates.len()], at: PLACES[n / 2 % 2], ..shape }
    };
    if in_register {
        shapes.extend(REGISTERS.map(|registers| vary(Shape { registers, ..plain })));
    }
    if in_memory {
        for (n, address) in ADDRESSES.into_iter().enumerate() {
            let registers = REGISTERS[n % REGISTERS.len()];
            let shape = vary(Shape { registers, address: Some(address), ..plain });
            shapes.push(shape);
            if info.can_use_lock_prefix() && n < 3 {
                shapes.push(Shape { lock: true, ..shape });
            }
        }
    }
    let first = shapes[0];
    if immediates.len() > 1 {
        shapes.extend(immediates.iter().map(|&immediate| Shape { immediate, ..first }));
    }
    let mut encodings: Vec<Encoding> = Vec::new();
    for shape in shapes {
        for prefix in 0..3 {
            if let Some(encoding) = build(code, &shape, prefix)
                && !encodings.iter().any(|other| other.bytes == encoding.bytes)
            {
                encodings.push(encoding);
            }
        }
    }
    encodings
}

fn is_memory(kind: Kind) -> bool {
    matches!(kind, Kind::mem | Kind::mem_offs)
}

fn may_be_memory(kind: Kind) -> bool {
    let either = matches!(
        kind,
        Kind::r8_or_mem | Kind::r16_or_mem | Kind::r32_or_mem | Kind::r64_or_mem | Kind::xmm_or_mem
    );
    either || is_memory(kind)
}

/// Returns values for the immediate operand, or for the distance of a branch.
fn immediates(kinds: &[Kind], random: &mut Random) -> Vec<u64> {
    let bytes = [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 0x7F, 0x80, 0xFF];
    let wide = |edges: &[u64], random: &mut Random| {
        let mut values = edges.to_vec();
        values.push(random.next());
        values
    };
    for kind in kinds {
        return match kind {
            Kind::imm8 => {
                let mut values = bytes.to_vec();
                values.extend((0..8).map(|_| random.next()));
                values
            }
            Kind::imm8sex16 | Kind::imm8sex32 | Kind::imm8sex64 => {
                wide(&[0, 1, 0x7F, !0x7F, u64::MAX], random)
            }
            Kind::imm16 => wide(&[0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF], random),
            Kind::imm32 | Kind::imm32sex64 => {
                wide(&[0, 1, 0xFF80, 0x7FFF_FFFF, 0xFFFF_FFFF_8000_0000, u64::MAX], random)
            }
            Kind::imm64 => {
                wide(&[0, 1, 0x8000_0000, 0xFFFF_FFFF, 1 << 63, u64::MAX >> 1, u64::MAX], random)
            }
            Kind::br64_1 => vec![0x40, 0x10, 0xFFFF_FFFF_FFFF_FFD0],
            Kind::br64_4 => vec![0x340, 2, 0xFFFF_FFFF_FFFF_F990, 0x7000_0000],
            _ => continue,
        };
    }
    vec![0]
}

/// Returns a register of the given size in bits.
fn register(bits: u32, number: u32) -> Register {
    match bits {
        8 if number >= 16 => HIGH_BYTES[number as usize - 16],
        8 if number < 4 => Register::AL + number,
        8 => Register::SPL + (number % 16 - 4),
        16 => Register::AX + number % 16,
        32 => Register::EAX + number % 16,
        _ => Register::RAX + number % 16,
    }
}

/// Encodes the form with the chosen operands; `prefix` is 1 for rep and 2 for repne.
fn build(code: Code, shape: &Shape, prefix: u32) -> Option<Encoding> {
    let info = code.op_code();
    let mut instruction = Instruction::new();
    instruction.set_code(code);
    instruction.set_has_lock_prefix(shape.lock);
    match prefix {
        1 if info.can_use_rep_prefix() => instruction.set_has_rep_prefix(true),
        2 if info.can_use_repne_prefix() => instruction.set_has_repne_prefix(true),
        0 => {}
        _ => return None,
    }
    let mut registers = shape.registers.into_iter().chain(13..);
    for (operand, kind) in (0..).zip(info.op_kinds()) {
        set_operand(&mut instruction, operand, *kind, shape, &mut registers)?;
    }
    let mut encoder = Encoder::new(64);
    encoder.encode(&instruction, shape.at).ok()?;
    let encoding = Encoding::decode(shape.at, &encoder.take_buffer())?;
    let is_wanted = encoding.instruction.code() == code && !is_far(&encoding.instruction);
    is_wanted.then_some(encoding)
}

/// Returns true if the bit number in a register is part of the address as well, so that the bit is
/// far from the operand.
fn is_far(i: &Instruction) -> bool {
    let bit = i.op1_register();
    matches!(i.mnemonic(), Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc)
        && i.op0_kind() == OpKind::Memory
        && bit.is_gpr()
        && [i.memory_base(), i.memory_index()].contains(&bit.full_register())
}

fn set_operand(
    i: &mut Instruction,
    operand: u32,
    kind: Kind,
    shape: &Shape,
    registers: &mut impl Iterator<Item = u32>,
) -> Option<()> {
    let mut next = || registers.next().unwrap_or(0);
    if may_be_memory(kind)
        && let Some(address) = shape.address.or((is_memory(kind)).then_some(ADDRESSES[0]))
    {
        let address = if kind == Kind::mem_offs {
            Address { segment: address.segment, ..ADDRESSES[10] }
        } else {
            address
        };
        let size = if kind == Kind::mem_offs {
            8
        } else if address.displacement == 0 {
            0
        } else if address.base != Register::None && i8::try_from(address.displacement).is_ok() {
            1
        } else if address.base == Register::RIP {
            8
        } else {
            4
        };
        // A displacement from a segment's base.
        let displacement = if kind == Kind::mem_offs && address.segment != Register::None {
            0x28
        } else {
            address.displacement
        };
        let memory = MemoryOperand::new(
            address.base,
            address.index,
            address.scale,
            displacement,
            size,
            false,
            address.segment,
        );
        i.set_op_kind(operand, OpKind::Memory);
        i.set_memory_base(memory.base);
        i.set_memory_index(memory.index);
        i.set_memory_index_scale(memory.scale);
        i.set_memory_displacement64(memory.displacement.cast_unsigned());
        i.set_memory_displ_size(memory.displ_size);
        i.set_segment_prefix(memory.segment_prefix);
        return Some(());
    }
    let chosen = match kind {
        Kind::r8_reg | Kind::r8_opcode | Kind::r8_or_mem => register(8, next()),
        Kind::r16_reg | Kind::r16_rm | Kind::r16_opcode | Kind::r16_or_mem => register(16, next()),
        Kind::r32_reg | Kind::r32_rm | Kind::r32_opcode | Kind::r32_vvvv | Kind::r32_or_mem => {
            register(32, next())
        }
        Kind::r64_reg | Kind::r64_rm | Kind::r64_opcode | Kind::r64_vvvv | Kind::r64_or_mem => {
            register(64, next())
        }
        Kind::xmm_reg | Kind::xmm_rm | Kind::xmm_vvvv | Kind::xmm_or_mem => {
            Register::XMM0 + next() % 16
        }
        // Other selectors depend on the system.
        Kind::seg_reg if next() % 2 == 1 => Register::CS,
        Kind::seg_reg => Register::SS,
        Kind::al => Register::AL,
        Kind::cl => Register::CL,
        Kind::ax => Register::AX,
        Kind::dx => Register::DX,
        Kind::eax => Register::EAX,
        Kind::rax => Register::RAX,
        _ => return set_other(i, operand, kind, shape),
    };
    i.set_op_kind(operand, OpKind::Register);
    i.set_op_register(operand, chosen);
    Some(())
}

/// Sets operands that are neither registers nor general memory operands.
fn set_other(i: &mut Instruction, operand: u32, kind: Kind, shape: &Shape) -> Option<()> {
    let value = shape.immediate;
    let kind = match kind {
        Kind::imm8 | Kind::imm8_const_1 => {
            let value = if kind == Kind::imm8_const_1 { 1 } else { value as u8 };
            i.set_immediate8(value);
            OpKind::Immediate8
        }
        Kind::imm8sex16 => {
            i.set_immediate8to16((value as i8).into());
            OpKind::Immediate8to16
        }
        Kind::imm8sex32 => {
            i.set_immediate8to32((value as i8).into());
            OpKind::Immediate8to32
        }
        Kind::imm8sex64 => {
            i.set_immediate8to64((value as i8).into());
            OpKind::Immediate8to64
        }
        Kind::imm16 => {
            i.set_immediate16(value as u16);
            OpKind::Immediate16
        }
        Kind::imm32 => {
            i.set_immediate32(value as u32);
            OpKind::Immediate32
        }
        Kind::imm32sex64 => {
            i.set_immediate32to64((value as i32).into());
            OpKind::Immediate32to64
        }
        Kind::imm64 => {
            i.set_immediate64(value);
            OpKind::Immediate64
        }
        Kind::br64_1 | Kind::br64_4 => {
            i.set_near_branch64(shape.at.wrapping_add(value));
            OpKind::NearBranch64
        }
        Kind::seg_rSI => OpKind::MemorySegRSI,
        Kind::es_rDI => OpKind::MemoryESRDI,
        _ => return None,
    };
    i.set_op_kind(operand, kind);
    Some(())
}
