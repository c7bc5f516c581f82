//! Indirect jumps without REX.W, the mark of a tail call: the end of an epilogue, or a jump table.
//!
//! Recorded steps of the image `asm_raw` leave by such a jump, and Intel's compiler emits them.

use super::Site;
use super::undone::is_undone_before;
use crate::unwinder::UnwindError;

/// Returns true if `code` is an indirect `jmp`, and the code before the RVA `begin` undoes the whole
/// frame. Only precise rules recognise that.
#[cold]
pub(super) fn leaves_without_mark(
    site: &Site<'_, '_>,
    code: &[u8],
    begin: u32,
) -> Result<bool, UnwindError> {
    let is_jump = match *code {
        [0xFF, modrm, ..] | [0x40..=0x47, 0xFF, modrm, ..] => modrm & 0x38 == 0x20,
        _ => false,
    };
    Ok(is_jump && site.may_be_unusual_epilogue() && is_undone_before(site, begin)?)
}
