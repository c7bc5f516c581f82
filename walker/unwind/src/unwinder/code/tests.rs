//! The decoder against iced-x86, which is written from the manuals of Intel and AMD: lengths, and the effects
//! that [`Effect`] names.
//!
//! Only instructions are compared that iced-x86 knows. Effects are not claimed for operands with 32-bit
//! addresses, which no compiler makes for frames.

use super::instruction::{Effect, decode};
use super::state::PRESERVED;
use crate::registers::Gpr;
use crate::x64::Base;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use iced_x86::{
    Code, Decoder, DecoderOptions, EncodingKind, FlowControl, Instruction, InstructionInfoFactory,
    Mnemonic, OpAccess, OpKind, Register,
};

/// Address of the instructions, far from 0: jumps lead anywhere.
const AT: u64 = 0x7000_0000_0000;

fn gpr(register: Register) -> Option<Gpr> {
    register.is_gpr().then(|| Gpr::from_number(register.full_register().number() as u8))
}

/// Returns the register and the displacement, if an operand's address is rsp or rbp and a displacement.
fn in_frame(instruction: &Instruction) -> Option<(Base, i32)> {
    let base = match instruction.memory_base() {
        Register::RSP => Base::Rsp,
        Register::RBP => Base::Rbp,
        _ => return None,
    };
    let displacement = instruction.memory_displacement64() as i32;
    (instruction.memory_index() == Register::None).then_some((base, displacement))
}

/// Returns the effect of an instruction that leaves the straight way.
fn flow(instruction: &Instruction) -> Option<Effect> {
    let distance = || instruction.near_branch_target().wrapping_sub(instruction.next_ip()) as i32;
    Some(match instruction.flow_control() {
        FlowControl::Return if instruction.code() == Code::Retnq => Effect::Return,
        FlowControl::Return => Effect::Unknown,
        FlowControl::UnconditionalBranch => Effect::Jump(distance()),
        FlowControl::ConditionalBranch => Effect::Branch(distance()),
        FlowControl::Call if instruction.code() == Code::Call_rel32_64 => Effect::Call,
        FlowControl::IndirectCall => Effect::Call,
        FlowControl::IndirectBranch if instruction.is_jmp_far_indirect() => Effect::Unknown,
        FlowControl::IndirectBranch => {
            let is_method = instruction.op0_kind() == OpKind::Memory
                && instruction.memory_displ_size() > 0
                && !matches!(
                    instruction.memory_base(),
                    Register::None | Register::RSP | Register::RBP
                )
                && instruction.memory_index() == Register::None;
            if is_method { Effect::JumpOut } else { Effect::JumpAnywhere }
        }
        FlowControl::Exception => Effect::DeadEnd,
        _ => return None,
    })
}

/// Returns the effect of an instruction that moves the stack pointer or names a frame's register.
fn stack(instruction: &Instruction) -> Option<Effect> {
    let register =
        gpr(instruction.op0_register()).filter(|_| instruction.op0_kind() == OpKind::Register);
    let source =
        gpr(instruction.op1_register()).filter(|_| instruction.op1_kind() == OpKind::Register);
    let is_wide = instruction.op0_register().is_gpr64() || instruction.op1_register().is_gpr64();
    let address = in_frame(instruction);
    let is_number =
        matches!(instruction.op1_kind(), OpKind::Immediate8to64 | OpKind::Immediate32to64);
    let number = (register == Some(Gpr::Rsp) && is_number).then(|| instruction.immediate(1) as i32);
    Some(match instruction.mnemonic() {
        Mnemonic::Leave if instruction.code() == Code::Leaveq => Effect::Leave,
        Mnemonic::Enter | Mnemonic::Leave => Effect::Unknown,
        Mnemonic::Int3 | Mnemonic::Hlt => Effect::DeadEnd,
        Mnemonic::Add if let Some(by) = number => Effect::AddRsp(by),
        Mnemonic::Sub if let Some(by) = number => Effect::AddRsp(by.checked_neg()?),
        Mnemonic::And if let Some(mask) = number => Effect::AndRsp(mask),
        Mnemonic::Mov if is_wide && instruction.op0_kind() == OpKind::Register => {
            match (source, address) {
                (Some(Gpr::Rsp), _) => Effect::Lea(register?, Base::Rsp, 0),
                (Some(Gpr::Rbp), _) => Effect::Lea(register?, Base::Rbp, 0),
                (None, Some((base, by))) => Effect::Load(register?, base, by),
                _ => return None,
            }
        }
        Mnemonic::Mov if is_wide => {
            let (base, by) = address?;
            Effect::Store(source?, base, by)
        }
        Mnemonic::Lea if is_wide && instruction.memory_base() == Register::RIP => {
            let to = instruction.memory_displacement64().wrapping_sub(instruction.next_ip());
            Effect::LeaRip(register?, to as i32)
        }
        Mnemonic::Lea if is_wide => {
            let (base, by) = address?;
            Effect::Lea(register?, base, by)
        }
        _ => match instruction.stack_pointer_increment() {
            0 => return None,
            -8 => Effect::Push(register),
            8 => Effect::Pop(register),
            _ => Effect::Unknown,
        },
    })
}

/// Returns true for instructions that no compiler makes from code of its language: system code, transactions,
/// and what only one maker's processors had.
fn is_unusual(instruction: &Instruction) -> bool {
    instruction.is_privileged()
        || instruction.flow_control() == FlowControl::XbeginXabortXend
        || matches!(instruction.encoding(), EncodingKind::XOP | EncodingKind::D3NOW)
        || matches!(
            instruction.mnemonic(),
            Mnemonic::Vmread
                | Mnemonic::Sldt
                | Mnemonic::Str
                | Mnemonic::Smsw
                | Mnemonic::Rdfsbase
                | Mnemonic::Rdgsbase
                | Mnemonic::Rdsspd
                | Mnemonic::Rdsspq
                | Mnemonic::Uiret
                | Mnemonic::Senduipi
                | Mnemonic::Sysenter
                | Mnemonic::Xabort
                | Mnemonic::Extrq
                | Mnemonic::Insertq
                | Mnemonic::Encodekey128
                | Mnemonic::Encodekey256
        )
        // With REX.B this is `pause` to some processors, and `xchg` to others.
        || instruction.mnemonic() == Mnemonic::Pause
}

/// Compares the decoder with iced-x86 for the instruction that `bytes` begin with. Returns the difference.
fn difference(bytes: &[u8], info: &mut InstructionInfoFactory) -> Option<String> {
    let known = Decoder::with_ip(64, bytes, AT, DecoderOptions::NONE).decode();
    if known.is_invalid() || is_unusual(&known) {
        return None;
    }
    let says = |decoded: &dyn core::fmt::Debug, expected: &dyn core::fmt::Debug| {
        let bytes = &bytes[..known.len()];
        Some(format!("{:?} {bytes:02X?}: {decoded:?}, not {expected:?}", known.code()))
    };
    let Some(decoded) = decode(bytes) else { return says(&"no instruction", &known.len()) };
    if usize::from(decoded.len) != known.len() {
        return says(&decoded.len, &known.len());
    }
    if known.memory_base().is_gpr32() {
        return None;
    }
    if let Some(expected) = flow(&known).or_else(|| stack(&known)) {
        return if decoded.effect == expected { None } else { says(&decoded.effect, &expected) };
    }
    let written = info.info(&known).used_registers().iter().filter(|used| {
        !matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess)
    });
    let written: Vec<Gpr> = written.filter_map(|used| gpr(used.register())).collect();
    let matters = |register: &&Gpr| PRESERVED.contains(register) || **register == Gpr::Rsp;
    let is_right = match decoded.effect {
        Effect::None => written.iter().find(matters).is_none(),
        Effect::Write(register) => {
            written.contains(&register) && written.iter().filter(matters).all(|it| *it == register)
        }
        Effect::Unknown => written.iter().filter(matters).count() > 1,
        _ => false,
    };
    if is_right { None } else { says(&decoded.effect, &written) }
}

/// Compares many instructions, and shows the first differences.
fn compare(instructions: impl Iterator<Item = Vec<u8>>) {
    // A displacement or an immediate, whose bytes differ and whose signs vary with the length.
    let rest = [0xF1, 0x62, 0x73, 0x84, 0x85, 0x16, 0x27, 0x38, 0x49, 0x5A];
    let mut info = InstructionInfoFactory::new();
    let differences = instructions.filter_map(|mut bytes| {
        bytes.extend_from_slice(&rest);
        difference(&bytes, &mut info)
    });
    let differences: Vec<String> = differences.take(20).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// ModRM bytes with all modes and fields `reg`, whose operand or base is rbx, rsp or rbp.
fn operands() -> impl Iterator<Item = u8> + Clone {
    (0..=255_u8).filter(|modrm| matches!(modrm & 7, 3..=5))
}

/// SIB bytes: rsp or rbp and no index, rsp and an index, no base.
const SIBS: [u8; 4] = [0x24, 0x65, 0x0C, 0x25];

#[test]
fn instructions_without_vectors_are_those_that_iced_x86_decodes() {
    let maps: [&[u8]; 4] = [b"", b"\x0F", b"\x0F\x38", b"\x0F\x3A"];
    let prefixes: [&[u8]; 20] = [
        b"",
        b"\x48",
        b"\x66",
        b"\x4D",
        b"\x40",
        b"\x41",
        b"\x42",
        b"\x44",
        b"\x4A",
        b"\xF2",
        b"\xF3",
        b"\xF0",
        b"\x2E",
        b"\x64",
        b"\x67",
        b"\x66\x48",
        b"\x66\x41",
        b"\xF3\x48",
        b"\xF2\x4D",
        b"\x67\x66",
    ];
    let opcodes = maps.iter().flat_map(|map| (0..=255_u8).map(move |opcode| (*map, opcode)));
    compare(opcodes.flat_map(|(map, opcode)| {
        prefixes.iter().enumerate().flat_map(move |(n, prefix)| {
            // REX is ignored unless the opcode follows.
            let is_rex = |byte: &u8| byte & 0xF0 == 0x40;
            let is_prefix =
                matches!(opcode, 0x26 | 0x2E | 0x36 | 0x3E | 0x64..=0x67 | 0xF0 | 0xF2 | 0xF3);
            let is_ignored = map.is_empty()
                && (is_rex(&opcode) || is_prefix && prefix.last().is_some_and(is_rex));
            let sibs =
                if matches!(opcode, 0x89 | 0x8B | 0x8D | 0xFF) { &SIBS[..] } else { &SIBS[..1] };
            // The longer maps have no groups of opcodes.
            let operands = operands().filter(move |modrm| match (n, map.len()) {
                (0 | 1, 0 | 1) => true,
                _ if sibs.len() > 1 => true,
                (_, 0 | 1) => matches!(modrm & 0xC7, 0xC3 | 0x44),
                _ => matches!(modrm, 0xDB | 0xE3 | 0x5C | 0x64),
            });
            let operands = operands.filter(move |_| !is_ignored);
            operands.flat_map(move |modrm| {
                sibs.iter().map(move |sib| [prefix, map, &[opcode, modrm, *sib][..]].concat())
            })
        })
    }));
}

#[test]
fn vector_instructions_are_those_that_iced_x86_decodes() {
    let mut prefixes = Vec::new();
    for last in [0x78, 0x79, 0x7A, 0x7B, 0x7D, 0xF8, 0xFB, 0x63, 0xE0, 0x60, 0x20] {
        prefixes.push(vec![0xC5, last]);
        for map in 1..=6 {
            for high in [0xE0, 0x00, 0x60, 0xC0] {
                if map <= 3 {
                    prefixes.push(vec![0xC4, high | map, last]);
                }
                prefixes.push(vec![0x62, high | 0x10 | map, last | 4, 0x08]);
                prefixes.push(vec![0x62, high | 0x10 | map, last | 4, 0x48]);
            }
        }
    }
    compare(prefixes.into_iter().flat_map(|prefix| {
        (0..=255_u8).flat_map(move |opcode| {
            let prefix = prefix.clone();
            [0x03, 0x4C, 0x85, 0xC3, 0xDD, 0xE3, 0xCD, 0xD6]
                .map(|modrm| [&prefix[..], &[opcode, modrm, 0x24]].concat())
        })
    }));
}

/// Intel's manual, appendix A, leaves these opcodes free or gives them to other modes; AMD's has XOP where
/// `pop` to memory would have another field `reg`.
#[test]
fn opcodes_without_meaning_are_refused() {
    let one_byte = [
        0x06, 0x07, 0x0E, 0x16, 0x17, 0x1E, 0x1F, 0x27, 0x2F, 0x37, 0x3F, 0x60, 0x9A, 0xCE, 0xD4,
        0xD6, 0xEA,
    ];
    for opcode in one_byte {
        assert_eq!(decode(&[opcode, 0, 0, 0, 0, 0, 0, 0]), None, "{opcode:02X}");
    }
    let two_bytes = [0x04, 0x0A, 0x0C, 0x24, 0x27, 0x36, 0x39, 0x3B, 0x3F, 0x7A, 0x7B];
    for opcode in two_bytes {
        assert_eq!(decode(&[0x0F, opcode, 0, 0, 0, 0, 0, 0]), None, "0F {opcode:02X}");
    }
    for field in 0..8_u8 {
        let popped = decode(&[0x8F, 0xC0 | field << 3, 0, 0, 0, 0, 0, 0]).map(|it| it.effect);
        assert_eq!(popped, (field == 0).then_some(Effect::Pop(Some(Gpr::Rax))), "8F /{field}");
    }
}

#[test]
fn returns_to_a_user_are_not_followed() {
    // sysret, sysexit; syscall goes on.
    assert_eq!(decode(&[0x0F, 0x07]).unwrap().effect, Effect::Unknown);
    assert_eq!(decode(&[0x0F, 0x35]).unwrap().effect, Effect::Unknown);
    assert_eq!(decode(&[0x0F, 0x05]).unwrap().effect, Effect::None);
}
