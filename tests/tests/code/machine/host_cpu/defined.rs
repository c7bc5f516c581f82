//! The results of an instruction that the manuals define; only these are compared.

use super::*;
use iced_x86::RflagsBits;

/// Converts iced's flags to those of [`FLAGS`].
pub(crate) fn flags_of(bits: u32) -> u64 {
    let flags = [
        (RflagsBits::CF, CF),
        (RflagsBits::PF, PF),
        (RflagsBits::AF, AF),
        (RflagsBits::ZF, ZF),
        (RflagsBits::SF, SF),
        (RflagsBits::DF, DF),
        (RflagsBits::OF, OF),
    ];
    flags.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, flag)| flag).sum()
}

/// Returns the size of the first operand in bits.
fn bits(i: &Instruction) -> u64 {
    let size = match i.op0_kind() {
        OpKind::Register => i.op0_register().size(),
        _ => i.memory_size().size(),
    };
    8 * size as u64
}

/// Returns the number of bits of a shift or rotation.
fn count(i: &Instruction, before: &State) -> u64 {
    let last = i.op_count() - 1;
    let count = match i.op_kind(last) {
        OpKind::Register => before.gpr[1],
        _ => i.immediate8().into(),
    };
    count & if bits(i) == 64 { 63 } else { 31 }
}

/// Returns the flags that are undefined after the instruction.
pub(crate) fn undefined_flags(i: &Instruction, before: &State) -> u64 {
    let unless = |holds: bool, flag| if holds { 0 } else { flag };
    match i.mnemonic() {
        // iced does not know the value of cl.
        Mnemonic::Shl | Mnemonic::Sal | Mnemonic::Shr | Mnemonic::Sar => match count(i, before) {
            0 => 0,
            count => {
                let carry = i.mnemonic() == Mnemonic::Sar || count < bits(i);
                AF | unless(count == 1, OF) | unless(carry, CF)
            }
        },
        Mnemonic::Rol | Mnemonic::Ror | Mnemonic::Rcl | Mnemonic::Rcr => match count(i, before) {
            0 | 1 => 0,
            _ => OF,
        },
        Mnemonic::Shld | Mnemonic::Shrd => match count(i, before) {
            0 => 0,
            count if count > bits(i) => FLAGS & !DF,
            count => AF | unless(count == 1, OF),
        },
        _ => flags_of(i.rflags_undefined()),
    }
}

/// Returns the flags that are undefined after a step, if the processor has to stay at the instruction: between the
/// comparisons of a repeated one some processors have those of the last comparison, others those from before
/// the instruction, which a page fault brings back on all (Intel's manual, volume 2, REP).
pub(crate) fn undefined_between(i: &Instruction, before: &State, after: &State) -> u64 {
    let repeats = i.has_repe_prefix() || i.has_repne_prefix();
    let compares = matches!(
        i.mnemonic(),
        Mnemonic::Cmpsb
            | Mnemonic::Cmpsw
            | Mnemonic::Cmpsd
            | Mnemonic::Cmpsq
            | Mnemonic::Scasb
            | Mnemonic::Scasw
            | Mnemonic::Scasd
            | Mnemonic::Scasq
    );
    if repeats && compares && after.rip == before.rip { FLAGS & !DF } else { 0 }
}

/// Returns true if the whole result is undefined: double shifts by more than the size of the
/// operand; and bsf and bsr of 0 into 32 bits, where some processors clear the upper half of the
/// register.
pub(crate) fn is_undefined(i: &Instruction, before: &State, after: &State) -> bool {
    match i.code() {
        Code::Bsf_r32_rm32 | Code::Bsr_r32_rm32 => after.flags & ZF != 0,
        _ if matches!(i.mnemonic(), Mnemonic::Shld | Mnemonic::Shrd) => count(i, before) > bits(i),
        _ => false,
    }
}
