//! Execution of a possible epilogue on the frame that the unwind codes describe.

use super::data::{
    ALLOC_LARGE, ALLOC_SMALL, CHAIN_LIMIT, Function, PUSH_NONVOL, SAVE_NONVOL, SAVE_NONVOL_FAR,
    SAVE_XMM128, SAVE_XMM128_FAR, SET_FPREG,
};
use super::epilogue::MOST_UNUSUAL;
use clr_unwind::Gpr;

/// Longest code that is tried.
const LONGEST: u32 = 256;

/// An instruction of an epilogue, in the encodings of compilers.
enum Instruction {
    Nothing,
    Pop(Gpr),
    /// rsp becomes rsp, or the frame register, plus a displacement.
    Release(Option<Gpr>, i64),
    Leave,
}

/// Returns the instruction that `code` begins with, and its length.
fn decode(code: &[u8]) -> Option<(Instruction, u32)> {
    use Instruction::{Leave, Nothing, Pop, Release};
    let long = |bytes: [u8; 4]| i64::from(i32::from_le_bytes(bytes));
    let (rex, rest) = match code {
        [rex @ (0x41 | 0x48 | 0x49 | 0x4C), rest @ ..] => (*rex, rest),
        _ => (0, code),
    };
    let base = |low: u8| Gpr::from_number((rex & 1) << 3 | low & 7);
    let (instruction, len) = match (rex, rest) {
        (0, [0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0, ..]) => (Nothing, 8),
        (0, [0x0F, 0x1F, 0x80, 0, 0, 0, 0, ..]) => (Nothing, 7),
        (0, [0x0F, 0x1F, 0x44, 0, 0, ..]) => (Nothing, 5),
        (0, [0x0F, 0x1F, 0x40, 0, ..]) => (Nothing, 4),
        (0, [0x0F, 0x1F, 0x00, ..] | [0xC5, 0xF8, 0x77, ..]) => (Nothing, 3),
        (0, [0x66, 0x90, ..]) => (Nothing, 2),
        (0, [0x90, ..]) => (Nothing, 1),
        (0 | 0x41, [pop @ 0x58..=0x5F, ..]) => (Pop(base(*pop)), 1),
        (0 | 0x41, [0x8F, modrm @ 0xC0..=0xC7, ..]) => (Pop(base(*modrm)), 2),
        (0, [0xC9, ..]) => (Leave, 1),
        (0x48, [0x83, 0xC4, imm, ..]) => (Release(None, i64::from(imm.cast_signed())), 3),
        (0x48, [0x81, 0xC4, a, b, c, d, ..]) => (Release(None, long([*a, *b, *c, *d])), 6),
        (0x48 | 0x49, [0x8B, modrm @ 0xE0..=0xE7, ..]) => (Release(Some(base(*modrm)), 0), 2),
        (0x48 | 0x4C, [0x89, modrm, ..]) if modrm & 0xC7 == 0xC4 => {
            let from = Gpr::from_number((rex & 4) << 1 | modrm >> 3 & 7);
            (Release(Some(from), 0), 2)
        }
        (0x48 | 0x49, [0x8D, modrm @ 0x60..=0x67, rest @ ..]) if modrm & 7 != 4 => {
            (Release(Some(base(*modrm)), i64::from(rest.first()?.cast_signed())), 3)
        }
        (0x49, [0x8D, 0x64, 0x24, disp, ..]) => {
            (Release(Some(Gpr::R12), i64::from(disp.cast_signed())), 4)
        }
        (0x48 | 0x49, [0x8D, modrm @ 0xA0..=0xA7, rest @ ..]) if modrm & 7 != 4 => {
            (Release(Some(base(*modrm)), long(*rest.first_chunk()?)), 6)
        }
        (0x49, [0x8D, 0xA4, 0x24, rest @ ..]) => {
            (Release(Some(Gpr::R12), long(*rest.first_chunk()?)), 7)
        }
        _ => return None,
    };
    Some((instruction, len + u32::from(rex != 0)))
}

/// The stack that the codes describe, by distances from the return address.
struct Layout {
    /// Distance of rsp in the body.
    bottom: i64,
    /// The pushed registers with their distances, in order.
    pushes: Vec<(Gpr, i64)>,
    /// The frame register and the distance of what it points to.
    frame: Option<(Gpr, i64)>,
}

impl Layout {
    fn of(function: &Function<'_, '_>) -> Option<Self> {
        let mut codes = Vec::new();
        let mut one = *function;
        for depth in 0.. {
            let own = one.codes().ok()?;
            codes.extend(own.into_iter().map(|code| (one, code)));
            match one.parent().ok()? {
                Some(parent) if depth < CHAIN_LIMIT => one = parent,
                Some(_) => return None,
                None => break,
            }
        }
        let mut layout = Self { bottom: 0, pushes: Vec::new(), frame: None };
        let mut allocated = false;
        for (one, code) in codes.into_iter().rev() {
            match code.op {
                // What is allocated below a push is not at the bottom.
                PUSH_NONVOL if allocated => return None,
                PUSH_NONVOL => {
                    layout.bottom -= 8;
                    layout.pushes.push((Gpr::from_number(code.info), layout.bottom));
                }
                ALLOC_SMALL | ALLOC_LARGE => {
                    layout.bottom -= i64::try_from(one.allocated(code).ok()?).ok()?;
                    allocated = true;
                }
                SET_FPREG => {
                    let above = i64::from(one.frame_offset);
                    layout.frame = Some((one.frame_register(), layout.bottom + above));
                }
                SAVE_NONVOL | SAVE_NONVOL_FAR | SAVE_XMM128 | SAVE_XMM128_FAR => {}
                _ => return None,
            }
        }
        // A frame register that is kept could still be used.
        match layout.frame {
            None if function.frame_register != 0 => None,
            Some((frame, _)) if layout.pushes.iter().all(|(push, _)| *push != frame) => None,
            _ => Some(layout),
        }
    }

    /// Executes the code. Returns true if it pops all that was pushed, and nothing else, with a release of the stack before it if
    /// `releases`.
    fn is_undone_by(&self, mut code: &[u8], releases: bool) -> bool {
        let mut left = self.pushes.clone();
        let mut rsp = self.bottom;
        let mut first = true;
        let mut has_left = false;
        let mut pops = 0;
        let mut in_row = 0;
        while !code.is_empty() {
            let Some((instruction, len)) = decode(code) else { return false };
            let Some(rest) = code.get(len as usize..) else { return false };
            code = rest;
            in_row = if matches!(instruction, Instruction::Nothing) { in_row + 1 } else { 0 };
            let popped = match instruction {
                Instruction::Nothing if in_row > MOST_UNUSUAL => return false,
                Instruction::Nothing | Instruction::Pop(_) if first && releases => return false,
                Instruction::Nothing if first => return false,
                Instruction::Nothing => None,
                Instruction::Release(None, bytes) if first => {
                    rsp += bytes;
                    None
                }
                Instruction::Release(Some(from), bytes) if first => match self.frame {
                    Some((frame, at)) if frame == from => {
                        rsp = at + bytes;
                        None
                    }
                    _ => return false,
                },
                Instruction::Leave if first => match self.frame {
                    Some((Gpr::Rbp, at)) => {
                        has_left = true;
                        rsp = at;
                        Some(Gpr::Rbp)
                    }
                    _ => return false,
                },
                Instruction::Pop(register) => Some(register),
                Instruction::Release(..) | Instruction::Leave => return false,
            };
            first = false;
            if let Some(register) = popped {
                if left.pop() != Some((register, rsp)) {
                    return false;
                }
                rsp += 8;
                pops += 1;
            }
        }
        // The byte of `leave` may end another instruction, unless pops are behind it.
        !first && left.is_empty() && rsp == 0 && (!has_left || pops > 1)
    }
}

/// Returns true if the code somewhere before `end` up to `end` undoes all that the codes describe.
pub(super) fn has_undone_all(function: &Function<'_, '_>, end: u32) -> bool {
    has_undone(function, end, false)
}

/// Returns true if the code somewhere before `end` up to `end` undoes all that the codes describe, beginning with a release of
/// the stack: the byte of a pop may be another instruction's end.
pub(super) fn has_released(function: &Function<'_, '_>, end: u32) -> bool {
    has_undone(function, end, true)
}

fn has_undone(function: &Function<'_, '_>, end: u32, releases: bool) -> bool {
    let begin = function.range.begin;
    let Some(layout) = Layout::of(function) else { return false };
    let Some(size) = end.checked_sub(begin) else { return false };
    let code = function.region.bytes_from(begin).and_then(|code| code.get(..size as usize));
    let Some(code) = code else { return false };
    let last = size as usize;
    (last.saturating_sub(LONGEST as usize)..last).any(|start| {
        let (before, rest) = code.split_at(start);
        // With the prefix before it, the instruction is another one.
        let is_short = matches!(rest, [0x58..=0x5F | 0x8F, ..]);
        let prefixed = before.last().is_some_and(|byte| byte & 0xF1 == 0x41);
        !(is_short && prefixed) && layout.is_undone_by(rest, releases)
    })
}
