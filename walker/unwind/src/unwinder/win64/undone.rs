//! Epilogues read backwards: code that undoes the whole frame as the unwind codes describe it, so
//! that what follows can only leave the function.

use super::info::{CHAIN_LIMIT, Operation};
use super::{Site, any_info_of};
use crate::registers::Gpr;
use crate::unwinder::UnwindError;

/// Maximum number of pushes of a frame that is recognised.
const MOST_PUSHES: usize = 16;

/// Maximum number of instructions that change nothing, or that Windows does not know: in an epilogue
/// executed forwards, and in a row before an instruction. Padding in the middle of a function may be
/// long, and a signal handler must not read it all.
pub(super) const MOST_UNUSUAL: usize = 32;

/// Instructions that change nothing which an epilogue restores: the forms of `nop` that assemblers use,
/// longer ones first, and `vzeroupper`, which clang and rustc put before the return of functions with
/// AVX code.
static INERT: [&[u8]; 8] = [
    &[0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0],
    &[0x0F, 0x1F, 0x80, 0, 0, 0, 0],
    &[0x0F, 0x1F, 0x44, 0, 0],
    &[0x0F, 0x1F, 0x40, 0],
    &[0x0F, 0x1F, 0x00],
    &[0x66, 0x90],
    &[0x90],
    &[0xC5, 0xF8, 0x77],
];

/// An instruction that may be among the pops of an epilogue, though Windows does not know it.
pub(super) struct Unusual {
    /// Length in bytes.
    pub(super) len: usize,
    /// The register that it pops.
    pub(super) popped: Option<Gpr>,
    /// True if the instruction proves nothing: the code is an epilogue only if all of it undoes the
    /// frame. Artificial records of wine and CoreCLR have such instructions before a return that the
    /// frame of their codes does not reach.
    pub(super) is_doubtful: bool,
}

impl Unusual {
    /// Returns the instruction that `code` begins with: `vzeroupper`, `nop`, or the long form of
    /// `pop`.
    pub(super) fn at(code: &[u8]) -> Option<Self> {
        let pop = |rex: u8, modrm: u8| Self {
            len: 2 + usize::from(rex != 0),
            popped: Some(Gpr::from_number((rex & 1) << 3 | modrm & 7)),
            is_doubtful: true,
        };
        match *code {
            [0x8F, modrm @ 0xC0..=0xC7, ..] => Some(pop(0, modrm)),
            [rex @ 0x40..=0x4F, 0x8F, modrm @ 0xC0..=0xC7, ..] => Some(pop(rex, modrm)),
            [0xC5, 0xF8, 0x77, ..] => Some(Self { len: 3, popped: None, is_doubtful: false }),
            [0x0F | 0x66 | 0x90, ..] => {
                let nop = INERT.iter().find(|nop| code.starts_with(nop))?;
                Some(Self { len: nop.len(), popped: None, is_doubtful: true })
            }
            _ => None,
        }
    }
}

/// Returns true if the code of the function up to the RVA `end` ends in the instructions that undo
/// the whole frame: the allocation's release, then all pops.
pub(super) fn is_undone_before(site: &Site<'_, '_>, end: u32) -> Result<bool, UnwindError> {
    undone_before(site, end, Evidence::Pops)
}

/// Returns the same with [`Evidence::Release`].
pub(super) fn is_released_before(site: &Site<'_, '_>, end: u32) -> Result<bool, UnwindError> {
    undone_before(site, end, Evidence::Release)
}

/// The instructions that have to come before a jump.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// The pops, and the release of an allocation if there is one.
    Pops,
    /// A release of the stack in any case: the byte of a pop may be another instruction's end.
    Release,
}

#[cold]
#[inline(never)]
fn undone_before(site: &Site<'_, '_>, end: u32, evidence: Evidence) -> Result<bool, UnwindError> {
    let Some(frame) = Frame::described(site)? else { return Ok(false) };
    let Some(code) = site.region.bytes_from(site.function.begin) else { return Ok(false) };
    let before_end = end.wrapping_sub(site.function.begin) as usize;
    Ok(code.get(..before_end).is_some_and(|code| frame.is_undone_by(code, evidence)))
}

/// The frame that an epilogue has to undo.
struct Frame {
    /// The pushed registers, the last one first.
    pushed: [Gpr; MOST_PUSHES],
    pushes: usize,
    /// Bytes allocated after the pushes.
    allocated: u64,
    /// The frame register, with the distance from it to the last pushed register, in bytes.
    register: Option<(Gpr, i64)>,
}

impl Frame {
    /// Returns the frame that the codes of the site's infos, up the chain, describe; `None` if an
    /// epilogue is not recognised by it.
    #[inline(never)]
    fn described(site: &Site<'_, '_>) -> Result<Option<Self>, UnwindError> {
        let pushed = [Gpr::Rax; MOST_PUSHES];
        let mut frame = Self { pushed, pushes: 0, allocated: 0, register: None };
        let mut info = site.info;
        for _ in 0..=CHAIN_LIMIT {
            if site.rules.has_version_3(info.version()) {
                return Ok(None);
            }
            let mut index = 0;
            while index < info.slot_count() {
                let code = info.raw_code(index)?;
                match info.operation(index, code)? {
                    Operation::Alloc(bytes) if frame.pushes == 0 => {
                        frame.allocated += u64::from(bytes);
                        if let Some((_, distance)) = &mut frame.register {
                            *distance += i64::from(bytes);
                        }
                    }
                    Operation::SetFpreg if frame.register.is_some() => {}
                    Operation::SetFpreg => {
                        let below = i64::try_from(8 * frame.pushes).unwrap_or_default();
                        let above = i64::from(info.frame_offset()) + below;
                        let register = Gpr::from_number(info.frame_register());
                        frame.register = Some((register, -above));
                    }
                    Operation::PushNonvol(register) => {
                        let Some(place) = frame.pushed.get_mut(frame.pushes) else {
                            return Ok(None);
                        };
                        *place = register;
                        frame.pushes += 1;
                    }
                    Operation::SaveNonvol(..) | Operation::SaveXmm128(..) => {}
                    _ => return Ok(None),
                }
                index += code.slots();
            }
            match info.parent()? {
                Some(parent) => info = any_info_of(site.region, parent, site.rules)?,
                None => return Ok(frame.gives_up(site.frame_register()).then_some(frame)),
            }
        }
        Err(UnwindError::ChainTooLong { rva: info.rva() })
    }

    /// Returns true if the function has no frame register (0), or pops it: in between, it could still
    /// use the frame.
    fn gives_up(&self, frame_register: u8) -> bool {
        let pushed = self.pushed.get(..self.pushes).unwrap_or_default();
        match self.register {
            None => frame_register == 0,
            Some((register, _)) => pushed.contains(&register),
        }
    }

    /// Returns true if `code` ends in the instructions that undo the frame.
    #[inline(never)]
    fn is_undone_by(&self, code: &[u8], evidence: Evidence) -> bool {
        let pushed = self.pushed.get(..self.pushes).unwrap_or_default();
        let mut code = code;
        for (left, register) in pushed.iter().enumerate().rev() {
            code = match without_pop(without_inert(code), *register) {
                Some(before) => before,
                // Without pops behind it, the byte of `leave` may be another instruction's end.
                None => {
                    return left == 0
                        && pushed.len() > 1
                        && self.register == Some((Gpr::Rbp, 0))
                        && *register == Gpr::Rbp
                        && without_inert(code).ends_with(&[0xC9]);
                }
            };
        }
        if self.allocated == 0 && evidence == Evidence::Pops {
            return self.pushes > 0;
        }
        // The end of a displacement may look like an instruction that changes nothing.
        for _ in 0..=MOST_UNUSUAL {
            if self.is_released_by(code) {
                return true;
            }
            let Some(before) = without_one_inert(code) else { break };
            code = before;
        }
        false
    }

    /// Returns true if `code` ends in an instruction that releases the allocation.
    fn is_released_by(&self, code: &[u8]) -> bool {
        let added = match *code {
            [.., 0x48, 0x81, 0xC4, a, b, c, d] => i32::from_le_bytes([a, b, c, d]),
            [.., 0x48, 0x83, 0xC4, bytes] => bytes.cast_signed().into(),
            _ => 0,
        };
        if added > 0 && u64::try_from(added) == Ok(self.allocated) {
            return true;
        }
        let Some((register, distance)) = self.register else { return false };
        let (low, high) = (register.number() & 7, register.number() >> 3);
        if distance == 0 {
            // mov rsp, register in its two encodings.
            let to = [0x48 | high << 2, 0x89, 0xC4 | low << 3];
            let from = [0x48 | high, 0x8B, 0xE0 | low];
            if code.ends_with(&to) || code.ends_with(&from) {
                return true;
            }
        }
        let is_lea = |code: &[u8], mode: u8| {
            // Base r12 has a SIB byte.
            let code = if low == 4 { code.strip_suffix(&[0x24]) } else { Some(code) };
            code.is_some_and(|code| code.ends_with(&[0x48 | high, 0x8D, mode | 4 << 3 | low]))
        };
        let short = i8::try_from(distance).ok().map(i8::to_le_bytes);
        let long = i32::try_from(distance).ok().map(i32::to_le_bytes);
        let short = short.and_then(|distance| code.strip_suffix(&distance));
        let long = long.and_then(|distance| code.strip_suffix(&distance));
        short.is_some_and(|code| is_lea(code, 0x40)) || long.is_some_and(|code| is_lea(code, 0x80))
    }
}

/// Returns `code` without the instructions at its end that change nothing.
fn without_inert(mut code: &[u8]) -> &[u8] {
    for _ in 0..MOST_UNUSUAL {
        let Some(before) = without_one_inert(code) else { break };
        code = before;
    }
    code
}

#[inline(never)]
fn without_one_inert(code: &[u8]) -> Option<&[u8]> {
    INERT.iter().find_map(|one| code.strip_suffix(*one))
}

/// Returns `code` without the pop of `register` at its end, in the short or the long form.
fn without_pop(code: &[u8], register: Gpr) -> Option<&[u8]> {
    let low = register.number() & 7;
    let before = match code {
        [before @ .., 0x8F, last] if *last == 0xC0 | low => before,
        [before @ .., last] if *last == 0x58 | low => before,
        _ => return None,
    };
    if register.number() < 8 {
        // A prefix would make it another register.
        before.last().is_none_or(|last| last & 0xF1 != 0x41).then_some(before)
    } else {
        before.strip_suffix(&[0x41])
    }
}
