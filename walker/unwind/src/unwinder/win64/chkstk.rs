//! libgcc's `___chkstk_ms`, which pushes two registers without unwind info, so that the leaf rule
//! is wrong in nearly all of it. It is in every image that gcc links, and is recognised by its
//! code.

use super::super::UnwindError;
use super::effects::{Draft, Effects as _};
use crate::code_map::CodeRegion;
use crate::memory::Memory;
use crate::registers::Gpr;

/// The instructions, and the number of registers on the stack before each: first rcx, then rax.
const INSTRUCTIONS: [(&[u8], u8); 15] = [
    (&[0x51], 0),                                     // push rcx
    (&[0x50], 1),                                     // push rax
    (&[0x48, 0x3D, 0x00, 0x10, 0x00, 0x00], 2),       // cmp rax, 1000h
    (&[0x48, 0x8D, 0x4C, 0x24, 0x18], 2),             // lea rcx, [rsp+18h]
    (&[0x72, 0x19], 2),                               // jb last probe
    (&[0x48, 0x81, 0xE9, 0x00, 0x10, 0x00, 0x00], 2), // sub rcx, 1000h
    (&[0x48, 0x83, 0x09, 0x00], 2),                   // or qword [rcx], 0
    (&[0x48, 0x2D, 0x00, 0x10, 0x00, 0x00], 2),       // sub rax, 1000h
    (&[0x48, 0x3D, 0x00, 0x10, 0x00, 0x00], 2),       // cmp rax, 1000h
    (&[0x77, 0xE7], 2),                               // ja next page
    (&[0x48, 0x29, 0xC1], 2),                         // sub rcx, rax
    (&[0x48, 0x83, 0x09, 0x00], 2),                   // or qword [rcx], 0
    (&[0x58], 2),                                     // pop rax
    (&[0x59], 1),                                     // pop rcx
    (&[0xC3], 0),                                     // ret
];

/// Undoes the pushes and the call of a `___chkstk_ms`. Returns false if `rva` is not at one of its
/// instructions.
pub(super) fn unwind<M: Memory + ?Sized>(
    region: &CodeRegion<'_>,
    rva: u32,
    draft: &mut Draft<'_, M>,
) -> Result<bool, UnwindError> {
    let Some(pushed) = pushed_registers(region, rva) else { return Ok(false) };
    if pushed == 2 {
        draft.pop(Gpr::Rax)?;
    }
    if pushed >= 1 {
        draft.pop(Gpr::Rcx)?;
    }
    draft.pop_rip()?;
    Ok(true)
}

/// Returns the number of registers on the stack at `rva`, if that is at an instruction of a
/// `___chkstk_ms`.
pub(super) fn pushed_registers(region: &CodeRegion<'_>, rva: u32) -> Option<u8> {
    let mut before = 0;
    for (instruction, pushed) in INSTRUCTIONS {
        if rva.checked_sub(before).is_some_and(|start| is_chkstk(region, start)) {
            return Some(pushed);
        }
        before += instruction.len() as u32;
    }
    None
}

/// Returns true if the whole function is at `start`.
fn is_chkstk(region: &CodeRegion<'_>, start: u32) -> bool {
    let mut code = region.bytes_from(start).unwrap_or_default();
    INSTRUCTIONS.iter().all(|(instruction, _)| match code.strip_prefix(*instruction) {
        Some(rest) => {
            code = rest;
            true
        }
        None => false,
    })
}
