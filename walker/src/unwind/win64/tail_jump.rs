//! Jumps through a register without REX.W: the end of an epilogue, or a jump table.
//!
//! Recorded steps of the image `asm_raw` leave by such a jump, and Intel's compiler emits them.

use super::Site;
use super::info::Operation;
use crate::unwind::UnwindError;

/// Returns true if `code` is `jmp register`, and the code before the RVA `begin` undoes the whole
/// frame as the unwind codes describe it: `add rsp` by the allocation, then all pops. Only frames
/// without chain and frame register are recognised, and by precise rules alone.
#[cold]
pub(super) fn leaves_by_register(
    site: &Site<'_, '_>,
    code: &[u8],
    begin: u32,
) -> Result<bool, UnwindError> {
    let jump = code.strip_prefix(&[0x41]).unwrap_or(code);
    let is_jump = matches!(jump, [0xFF, 0xE0..=0xE7, ..]);
    let info = site.info;
    if !is_jump
        || !site.may_be_unusual_epilogue()
        || site.rules.has_version_3(&info)
        || info.is_chained()
        || info.frame_register() != 0
    {
        return Ok(false);
    }
    let (mut index, mut allocated, mut pops) = (0, 0_u64, 0_usize);
    // Enough for eight pops with a prefix each.
    let mut popped = [0_u8; 16];
    while index < info.slot_count() {
        let code = info.raw_code(index)?;
        match info.operation(index, code)? {
            Operation::Alloc(bytes) if pops == 0 => allocated += u64::from(bytes),
            Operation::PushNonvol(register) => {
                let bytes = [0x41, 0x58 | register.number() & 7];
                let bytes = &bytes[usize::from(register.number() < 8)..];
                let Some(place) = popped.get_mut(pops..pops + bytes.len()) else {
                    return Ok(false);
                };
                place.copy_from_slice(bytes);
                pops += bytes.len();
            }
            Operation::SaveNonvol(..) | Operation::SaveXmm128(..) => {}
            _ => return Ok(false),
        }
        index += code.slots();
    }
    let Some(start) = site.region.bytes_from(site.function.begin) else { return Ok(false) };
    let offset = begin.wrapping_sub(site.function.begin) as usize;
    let before = start.get(..offset).unwrap_or_default();
    let Some(before) = before.strip_suffix(popped.get(..pops).unwrap_or_default()) else {
        return Ok(false);
    };
    Ok(match (before, allocated) {
        (_, 0) => pops > 0,
        ([.., 0x48, 0x83, 0xC4, bytes], _) if u64::from(*bytes) == allocated => *bytes < 0x80,
        ([.., 0x48, 0x81, 0xC4, a, b, c, d], _) => {
            u64::from(u32::from_le_bytes([*a, *b, *c, *d])) == allocated
        }
        _ => false,
    })
}
