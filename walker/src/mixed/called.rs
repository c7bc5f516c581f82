//! The code that a call leads to.

use super::stub;
use clr_unwind::x64::operand_len;
use clr_unwind::{Memory, Registers};

/// Maximum distance in bytes between the start of a stub or helper in unknown code and an instruction of it.
const NEAR: u64 = 0x100;
/// Maximum number of stubs that a call goes through.
const MOST_JUMPS: usize = 4;

/// Returns true if the call before `return_address` (VA) leads to the code at `rip`, or can: what a register
/// held at the call is not known any more, and what is in a cell may have been replaced since. `describes`
/// says whether an address is in a function with unwind data: such code does not go on in a stub.
pub(super) fn may_lead<M: Memory + ?Sized>(
    return_address: u64,
    rip: u64,
    describes: impl Fn(u64) -> bool,
    memory: &M,
) -> bool {
    let mut bytes = [0; 7];
    if memory.read(return_address.wrapping_sub(7), &mut bytes).is_err() {
        return true;
    }
    let [.., b3, b4, b5, b6] = bytes;
    let distance = i64::from(i32::from_le_bytes([b3, b4, b5, b6]));
    let relative = return_address.wrapping_add_signed(distance);
    if bytes[2] == 0xE8 && leads(relative, rip, memory) {
        return true;
    }
    if bytes[1..3] == [0xFF, 0x15] {
        let Ok(target) = memory.read_u64(relative) else { return true };
        return !describes(target) || leads(target, rip, memory);
    }
    // Any other call is by a register, or by memory that a register leads to.
    let forms = bytes.windows(2).enumerate();
    forms.into_iter().any(|(at, pair)| {
        let [0xFF, modrm] = *pair else { return false };
        modrm >> 3 & 7 == 2 && operand_len(modrm, bytes.get(at + 2).copied()) == Some(6 - at)
    })
}

/// Returns true if code entered at `target` (VA) is at `rip` after few bytes, or jumps there.
fn leads<M: Memory + ?Sized>(mut target: u64, rip: u64, memory: &M) -> bool {
    for _ in 0..=MOST_JUMPS {
        if rip.checked_sub(target).is_some_and(|passed| passed < NEAR) {
            return true;
        }
        let entered = Registers { rip: target, ..Registers::default() };
        let Some(next) = stub::target(&entered, memory) else { return false };
        target = next;
    }
    false
}
