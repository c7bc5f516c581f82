//! The code that a call leads to.

use super::stub;
use clr_unwind::x64::{Fields, Map, operand_len};
use clr_unwind::{CodeRegion, Memory, Registers};
use core::ops::Range;

/// Maximum distance in bytes between the start of a stub or helper in unknown code and an instruction of it.
const NEAR: u64 = 0x100;
/// Maximum number of stubs that a call goes through.
const MOST_JUMPS: usize = 4;

/// Returns true if the call before `return_address` (VA) leads to the code at `rip`, or can: what a register
/// held at the call is not known any more, and what is in a cell may have been replaced since. `stays`
/// says whether an address is in a function that jumps nowhere else (`None` in no function): it makes no tail call of a stub.
pub(super) fn may_lead<M: Memory + ?Sized>(
    return_address: u64,
    rip: u64,
    stays: impl Fn(u64) -> Option<bool>,
    memory: &M,
) -> bool {
    let mut bytes = [0; 7];
    if memory.read(return_address.wrapping_sub(7), &mut bytes).is_err() {
        return true;
    }
    let [.., b3, b4, b5, b6] = bytes;
    let distance = i64::from(i32::from_le_bytes([b3, b4, b5, b6]));
    let relative = return_address.wrapping_add_signed(distance);
    if bytes[2] == 0xE8 && leads(relative, rip, &stays, memory) {
        return true;
    }
    if bytes[1..3] == [0xFF, 0x15] {
        let Ok(target) = memory.read_u64(relative) else { return true };
        return stays(target).is_none() || leads(target, rip, &stays, memory);
    }
    // Any other call is by a register, or by memory that a register leads to.
    let forms = bytes.windows(2).enumerate();
    forms.into_iter().any(|(at, pair)| {
        let [0xFF, modrm] = *pair else { return false };
        modrm >> 3 & 7 == 2 && operand_len(modrm, bytes.get(at + 2).copied()) == Some(6 - at)
    })
}

/// Returns true if code entered at `target` (VA) is at `rip` after few bytes, or jumps there.
fn leads<M: Memory + ?Sized>(
    mut target: u64,
    rip: u64,
    stays: &impl Fn(u64) -> Option<bool>,
    memory: &M,
) -> bool {
    for _ in 0..=MOST_JUMPS {
        if rip.checked_sub(target).is_some_and(|passed| passed < NEAR) {
            return true;
        }
        let entered = Registers { rip: target, ..Registers::default() };
        let Some(next) = stub::target(&entered, memory) else {
            return stays(target) == Some(false);
        };
        target = next;
    }
    false
}

/// Maximum size of a function that is looked through, in bytes.
const MOST: usize = 4096;

/// Returns true if no jump leaves the function of these RVAs, as far as its instructions can be read.
pub(super) fn stays(region: &CodeRegion<'_>, function: &Range<u32>) -> bool {
    let mut code = region.bytes_from(function.start).unwrap_or_default();
    let len = code.len().min(function.len());
    code = code.get(..len).unwrap_or_default();
    if code.len() < function.len() || code.len() > MOST {
        return false;
    }
    let mut rva = function.start;
    while !code.is_empty() {
        let Some(it) = Fields::read(code) else { return false };
        rva = rva.wrapping_add(it.len.into());
        let is_one = it.map == Map::One && !it.vector;
        let to = rva.wrapping_add_signed(it.immediate);
        match it.opcode {
            0xFF if is_one && it.extension() == 4 => return false,
            0xE9 | 0xEB if is_one && !function.contains(&to) => return false,
            _ => {}
        }
        code = code.get(usize::from(it.len)..).unwrap_or_default();
    }
    true
}
