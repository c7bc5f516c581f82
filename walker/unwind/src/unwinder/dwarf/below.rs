//! Slots below the stack pointer: registers that an epilogue has restored, and the red zone.
//!
//! Compilers leave a register's rule in place after its `pop`, so in an epilogue the row names a slot
//! below rsp. The same row, in a function that makes no call, can mean the opposite: gcc saves
//! registers in the red zone without moving rsp, and then the slot alone has the caller's value.
//!
//! * Nothing below the red zone survives a signal, and nothing below rsp survives a call. There, the
//!   register has been restored, and a slot that can be read may hold anything.
//! * In the red zone of interrupted code the slot is read: signal handlers leave it alone (System V
//!   psABI, section 3.2.2), so it has the caller's value, whether the register has been restored or not.
//! * If it cannot be read, as in a copy of the stack that begins at rsp, instructions decide. Where
//!   only pops and the end of the function follow, no load can restore the register any more, so
//!   it holds the caller's value. Elsewhere the step fails: of the rows with such slots in libc.so.6
//!   of glibc 2.36, libstdc++ 12 and libLLVM 15, at 3 %, 3 % and 0.2 % of the starts.

use super::{Place, fallback};
use crate::cfi::{Found, Rule};
use crate::memory::{Memory, Unreadable};
use crate::registers::Gpr;

/// Size of the red zone below rsp in bytes (System V psABI, section 3.2.2).
const RED_ZONE: u64 = 128;

/// Maximum number of instructions of an epilogue that are followed.
const LIMIT: u32 = 16;

/// Returns the saved word at `address`, which is below `rsp`; `None` if the register holds the
/// caller's value itself. `interrupted` is the place of interrupted code, and `None` at a return
/// address.
#[cold]
pub(super) fn saved<M: Memory + ?Sized>(
    address: u64,
    rsp: u64,
    interrupted: Option<Place<'_, '_>>,
    memory: &M,
) -> Result<Option<u64>, Unreadable> {
    let Some(place) = interrupted else { return Ok(None) };
    if rsp.wrapping_sub(address) > RED_ZONE {
        return Ok(None);
    }
    match memory.read_u64(address) {
        Err(_) if leaves(place) => Ok(None),
        read => read.map(Some),
    }
}

/// Returns true if from `place` on only pops, `vzeroupper` and the end of the function follow: a
/// return, a jump after a pop, or a jump to another function.
fn leaves(place: Place<'_, '_>) -> bool {
    let Some(mut code) = place.region.bytes_from(place.rva) else { return false };
    let len = code.len();
    let mut has_popped = false;
    for _ in 0..LIMIT {
        match code {
            // `pop rsp` would move the stack elsewhere.
            [0x41, 0x58..=0x5F, rest @ ..] | [0x58..=0x5B | 0x5D..=0x5F, rest @ ..] => {
                (code, has_popped) = (rest, true);
            }
            // vzeroupper
            [0xC5, 0xF8, 0x77, rest @ ..] => code = rest,
            [0xC3 | 0xC2, ..] | [0xF2 | 0xF3, 0xC3, ..] => return true,
            _ if has_popped => return is_jump(code),
            [0xE9, b0, b1, b2, b3, rest @ ..] => {
                let distance = i32::from_le_bytes([*b0, *b1, *b2, *b3]);
                return is_function(place, len - rest.len(), distance);
            }
            [0xEB, distance, rest @ ..] => {
                return is_function(place, len - rest.len(), distance.cast_signed().into());
            }
            _ => return false,
        }
    }
    false
}

/// Returns true if `code` begins with an unconditional jump.
fn is_jump(code: &[u8]) -> bool {
    // bnd, notrack, REX
    let is_prefix = |byte: &u8| matches!(byte, 0xF2 | 0x3E | 0x40..=0x4F);
    let prefixes = code.iter().take_while(|byte| is_prefix(byte)).count();
    match code.get(prefixes..) {
        Some([0xE9 | 0xEB, ..]) => true,
        // The near and the far indirect jump.
        Some([0xFF, operand, ..]) => matches!(operand >> 3 & 7, 4 | 5),
        _ => false,
    }
}

/// Returns true if the jump that ends `passed` bytes after `place` goes to a PLT entry or to another function.
fn is_function(place: Place<'_, '_>, passed: usize, distance: i32) -> bool {
    let target = place.rva.wrapping_add(passed as u32).wrapping_add_signed(distance);
    is_entry(place, target)
}

/// Returns true if `target` (RVA) is a PLT entry, or the start of another function than that of `place`, where by
/// its own row no register has been saved yet. The outlined part of a function is none: its first row
/// has the registers that the function has saved.
pub(super) fn is_entry(place: Place<'_, '_>, target: u32) -> bool {
    let Place { region, table, rva, .. } = place;
    if region.bytes_from(target).is_some_and(|code| fallback::stub(&[], code) == Some(0)) {
        return true;
    }
    let starts = |rva| table.function(rva).is_some_and(|function| function.start == target);
    let is_entry = |rule: &Rule| {
        rule.count == 0 && rule.cfa_register & 15 == Gpr::Rsp.number() && rule.cfa_offset == 8
    };
    starts(target)
        && !starts(rva)
        && matches!(table.find(target), Found::Simple(rule) if is_entry(&rule))
}
