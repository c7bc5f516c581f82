//! Functions that are entered by a return, not by a call.
//!
//! `OnHijackTripThread` of CoreCLR 3.1 to .NET 11 is one: the runtime stops a thread by a return address that leads
//! there. The return has taken its address off the stack, so `push rax` makes room for another, the address to which
//! the method should have returned, and the function's `ret` goes there. Its call frame information, however, describes
//! a function that was called, and names the word above.
//!
//! That word may be an old return address, so whether a call returns to it shows nothing. The code is a proof: from the
//! function's start to its only `ret`, it pushes one word more than it pops.

use super::Place;
use crate::registers::Gpr;
use crate::unwinder::code::{Effect, Instruction, decode};
use crate::x64::Base;

/// Maximum number of instructions. `OnHijackTripThread` has up to 40.
const LIMIT: u32 = 64;

/// Returns true if the function at `place` takes its return address from the word that it pushes first.
#[cold]
#[inline(never)]
pub(super) fn is_entered_by_return(place: Place<'_, '_>) -> bool {
    let Some(function) = place.table.function(place.rva) else { return false };
    let mut rva = function.start;
    // Bytes from the stack pointer at the start down to the one here.
    let mut pushed = 0_i32;
    for _ in 0..LIMIT {
        let code = place.region.bytes_from(rva);
        let Some(Instruction { len, effect }) = code.and_then(decode) else { return false };
        let change = match effect {
            Effect::Return => return pushed == 8 && rva + 1 == function.end,
            Effect::Push(_) => Some(8),
            Effect::Pop(_) => Some(-8),
            Effect::AddRsp(by) | Effect::Lea(Gpr::Rsp, Base::Rsp, by) => by.checked_neg(),
            Effect::Lea(Gpr::Rsp, Base::Rbp, _)
            | Effect::Load(Gpr::Rsp, ..)
            | Effect::Write(Gpr::Rsp)
            | Effect::AndRsp(_)
            | Effect::Leave
            | Effect::Jump(_)
            | Effect::Branch(_)
            | Effect::JumpOut
            | Effect::JumpAnywhere
            | Effect::DeadEnd
            | Effect::Unknown => None,
            Effect::None
            | Effect::Lea(..)
            | Effect::LeaRip(..)
            | Effect::Load(..)
            | Effect::Store(..)
            | Effect::Write(_)
            | Effect::Call => Some(0),
        };
        let Some(sum) = change.and_then(|change| pushed.checked_add(change)) else { return false };
        (pushed, rva) = (sum, rva.wrapping_add(len.into()));
    }
    false
}
