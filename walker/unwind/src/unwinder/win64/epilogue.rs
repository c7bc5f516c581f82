//! Epilogues: found by the code bytes at rip (version 1) or by EPILOG codes (version 2), and
//! executed forwards (contract §8.2 steps 3 and 4).

use super::super::UnwindError;
use super::effects::Effects;
use super::info::{CHAIN_LIMIT, Epilogs, RawCode, UnwindInfo};
use super::tail_jump::leaves_without_mark;
use super::undone::{MOST_UNUSUAL, Unusual, is_released_before, is_undone_before};
use super::{Site, UnwindInfoV3, WindingOperation, any_info_of, info_of, resolve_indirect};
use crate::code_map::CodeRegion;
use crate::compat::Rules;
use crate::image::RuntimeFunction;
use crate::registers::Gpr;
use core::ops::Range;

/// Maximum number of jumps inside a function that are followed in search of an epilogue.
const JUMP_LIMIT: u32 = 16;

impl Site<'_, '_> {
    /// Returns true if an epilogue that Windows would not recognise is accepted here: after the
    /// prologue, in a function that has something to undo.
    pub(super) fn may_be_unusual_epilogue(&self) -> bool {
        if self.rules.is_windows() {
            return false;
        }
        let (size, has_codes) = match self.version_3() {
            Some(payload) => (payload.prologue_size(), payload.prologue().count() > 0),
            None => (self.info.prologue_size().into(), self.info.slot_count() > 0),
        };
        self.offset() >= u32::from(size) && (has_codes || self.info.is_chained())
    }
}

/// A part of an epilogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// `add rsp, imm`.
    AddRsp(i32),
    /// `lea rsp, [register + disp]`.
    LeaRsp(Gpr, i32),
    /// `pop register`.
    Pop(Gpr),
}

/// The way in which an epilogue leaves its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    /// By a return, or by a jump that leaves the return address to another function.
    Return,
    /// By iretq, over a machine frame.
    InterruptReturn,
}

/// Executes the instructions at rip on `effects`, including the return, if they are (the rest of) an
/// epilogue. Returns the way in which it leaves.
pub(super) fn by_code<E: Effects>(
    site: &Site<'_, '_>,
    effects: &mut E,
) -> Result<Option<Leaving>, UnwindError> {
    // The first scan changes nothing: the stack may be unreadable if the code turns out to be no
    // epilogue.
    let leaving = match scan(site, |_| Ok(())) {
        Ok(Some(leaving)) => leaving,
        Ok(None) => return Ok(None),
        // Code that runs into unmapped memory does not return.
        Err(UnwindError::CodeUnmapped { .. }) if !site.rules.is_windows() => return Ok(None),
        Err(error) => return Err(error),
    };
    scan(site, |action| {
        match action {
            Action::AddRsp(bytes) => effects.add_rsp(i64::from(bytes)),
            Action::LeaRsp(register, disp) => {
                let register = effects.value(register);
                effects.set_rsp(E::offset(register, i64::from(disp)));
            }
            Action::Pop(register) => effects.pop(register)?,
        }
        Ok(())
    })?;
    match leaving {
        Leaving::Return => effects.pop_rip()?,
        Leaving::InterruptReturn => effects.pop_machine_frame(false)?,
    }
    Ok(Some(leaving))
}

/// The bytes of code from an RVA on.
struct Code<'a> {
    rva: u32,
    bytes: &'a [u8],
}

impl<'a> Code<'a> {
    fn at(region: &'a CodeRegion<'_>, rva: u32) -> Self {
        Self { rva, bytes: region.bytes_from(rva).unwrap_or_default() }
    }

    #[inline]
    fn byte(&self, index: usize) -> Result<u8, UnwindError> {
        self.bytes.get(index).copied().ok_or(UnwindError::CodeUnmapped {
            rva: self.rva.wrapping_add(self.bytes.len() as u32),
        })
    }

    fn i8(&self, index: usize) -> Result<i32, UnwindError> {
        self.byte(index).map(|byte| i32::from(byte.cast_signed()))
    }

    fn i32(&self, index: usize) -> Result<i32, UnwindError> {
        let mut bytes = [0; 4];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = self.byte(index + i)?;
        }
        Ok(i32::from_le_bytes(bytes))
    }

    fn starts_with(&self, bytes: &[u8]) -> bool {
        self.bytes.starts_with(bytes)
    }

    fn skip(&mut self, count: usize) {
        self.rva = self.rva.wrapping_add(count as u32);
        self.bytes = self.bytes.get(count..).unwrap_or_default();
    }
}

/// Reads the code at rip as an epilogue, part by part. The result, at the end, is `None` if the
/// code is no epilogue.
pub(super) fn scan(
    site: &Site<'_, '_>,
    mut act: impl FnMut(Action) -> Result<(), UnwindError>,
) -> Result<Option<Leaving>, UnwindError> {
    let mut code = Code::at(site.region, site.rva);
    if let Some(action) = leading_adjustment(site, &mut code)? {
        act(action)?;
    }
    let mut doubtful = false;
    let mut unusual = 0;
    for _ in 0..JUMP_LIMIT {
        loop {
            if let Some(register) = pop(&mut code)? {
                act(Action::Pop(register))?;
            } else if let Some(found) = Unusual::at(code.bytes)
                && unusual < MOST_UNUSUAL
                && site.may_be_unusual_epilogue()
            {
                unusual += 1;
                code.skip(found.len);
                doubtful |= found.is_doubtful;
                if let Some(register) = found.popped {
                    act(Action::Pop(register))?;
                }
            } else {
                break;
            }
        }
        let begin = code.rva;
        // A bnd or repne prefix changes nothing.
        let repne = code.byte(0)? == 0xF2;
        if repne {
            code.skip(1);
        }
        match ending(site, &code, repne)? {
            _ if doubtful && !is_undone_before(site, begin)? => return Ok(None),
            Ending::Leaves => return Ok(Some(Leaving::Return)),
            Ending::InterruptReturn { error_code } => {
                if error_code {
                    act(Action::AddRsp(8))?;
                }
                return Ok(Some(Leaving::InterruptReturn));
            }
            Ending::Other => return Ok(None),
            Ending::Continues(rva) => code = Code::at(site.region, rva),
        }
    }
    Ok(None)
}

/// Reads `add rsp, imm` or `lea rsp, [frame register + disp]`, the first instruction of an
/// epilogue.
fn leading_adjustment(
    site: &Site<'_, '_>,
    code: &mut Code<'_>,
) -> Result<Option<Action>, UnwindError> {
    let rex = code.byte(0)?;
    if rex & 0xFE != 0x48 {
        return Ok(None);
    }
    let (action, len) = match (rex, code.byte(1)?) {
        (0x48, 0x83) if code.byte(2)? == 0xC4 => (Action::AddRsp(code.i8(3)?), 4),
        (0x48, 0x81) if code.byte(2)? == 0xC4 => (Action::AddRsp(code.i32(3)?), 7),
        (_, 0x8D) => {
            let modrm = code.byte(2)?;
            let register = (rex & 1) << 3 | modrm & 7;
            if register == 0 || register != site.frame_register() {
                return Ok(None);
            }
            // Base r12 has a SIB byte before the displacement. Windows overlooks it and continues
            // in the middle of the instruction.
            let sib = usize::from(modrm & 7 == 4 && !site.rules.is_windows());
            if sib == 1 && code.byte(3)? != 0x24 {
                return Ok(None);
            }
            let register = Gpr::from_number(register);
            match modrm & 0xF8 {
                0x60 => (Action::LeaRsp(register, code.i8(3 + sib)?), 4 + sib),
                0xA0 => (Action::LeaRsp(register, code.i32(3 + sib)?), 7 + sib),
                _ => return Ok(None),
            }
        }
        _ => return Ok(None),
    };
    code.skip(len);
    Ok(Some(action))
}

/// Reads `pop register` with or without a REX prefix.
fn pop(code: &mut Code<'_>) -> Result<Option<Gpr>, UnwindError> {
    let first = code.byte(0)?;
    if first & 0xF8 == 0x58 {
        code.skip(1);
        return Ok(Some(Gpr::from_number(first & 7)));
    }
    if first & 0xF0 == 0x40 {
        let second = code.byte(1)?;
        if second & 0xF8 == 0x58 {
            code.skip(2);
            return Ok(Some(Gpr::from_number((first & 1) << 3 | second & 7)));
        }
    }
    Ok(None)
}

/// The code after the pops.
enum Ending {
    /// Control leaves the function: a return or a tail call.
    Leaves,
    /// Control returns over a machine frame, after the error code below it is dropped.
    InterruptReturn {
        /// True if there is an error code.
        error_code: bool,
    },
    /// A jump to this RVA of the same function.
    Continues(u32),
    /// Any other code: no epilogue.
    Other,
}

fn ending(site: &Site<'_, '_>, code: &Code<'_>, repne: bool) -> Result<Ending, UnwindError> {
    let leaves = |yes| if yes { Ending::Leaves } else { Ending::Other };
    let begin = code.rva.wrapping_sub(u32::from(repne));
    let without_mark = || leaves_without_mark(site, code.bytes, begin);
    let first = code.byte(0)?;
    Ok(match first {
        0xC3 | 0xC2 => Ending::Leaves,
        0xF3 => leaves(code.byte(1)? == 0xC3),
        0xEB => jump(site, begin..code.rva.wrapping_add(2), code.i8(1)?)?,
        0xE9 => jump(site, begin..code.rva.wrapping_add(5), code.i32(1)?)?,
        0xFF => leaves(code.byte(1)? == 0x25 || without_mark()?),
        // add rsp, 8 drops an error code.
        0x48 if code.starts_with(&[0x48, 0x83, 0xC4, 0x08, 0x48, 0xCF]) => {
            interrupt_return(site, repne, true)
        }
        0x48 if code.starts_with(&[0x48, 0xCF]) => interrupt_return(site, repne, false),
        0x40..=0x4F => {
            let second = code.byte(1)?;
            // REX.W before an indirect jump has no use but to mark a tail call.
            let tail_call = first & 8 != 0 && second == 0xFF && code.byte(2)? & 0x38 == 0x20;
            let rex_ret = second == 0xC3 && !repne && site.may_be_unusual_epilogue();
            leaves(tail_call || rex_ret || second == 0xFF && without_mark()?)
        }
        _ => Ending::Other,
    })
}

/// Classifies `iretq`, which Windows does not recognise as an ending. It is one in a function that
/// was entered over a machine frame.
#[cold]
fn interrupt_return(site: &Site<'_, '_>, repne: bool, error_code: bool) -> Ending {
    let over_machine_frame = || has_machine_frame(site).unwrap_or(false);
    if !site.rules.is_windows() && !repne && over_machine_frame() {
        Ending::InterruptReturn { error_code }
    } else {
        Ending::Other
    }
}

/// Returns true if the unwind data, or that of a parent in its chain, has UWOP_PUSH_MACHFRAME.
fn has_machine_frame(site: &Site<'_, '_>) -> Result<bool, UnwindError> {
    let mut info = site.info;
    for _ in 0..=CHAIN_LIMIT {
        if site.rules.has_version_3(info.version()) {
            for code in UnwindInfoV3::read(&info)?.prologue().codes() {
                if matches!(code?.operation, WindingOperation::PushCanonicalFrame(_)) {
                    return Ok(true);
                }
            }
        } else {
            for code in info.raw_codes() {
                if code?.op == RawCode::PUSH_MACHFRAME {
                    return Ok(true);
                }
            }
        }
        match info.parent()? {
            Some(parent) => info = any_info_of(site.region, parent, site.rules)?,
            None => return Ok(false),
        }
    }
    Err(UnwindError::ChainTooLong { rva: info.rva() })
}

/// Classifies the `jmp` at these RVAs, by `distance` from its end.
fn jump(site: &Site<'_, '_>, jmp: Range<u32>, distance: i32) -> Result<Ending, UnwindError> {
    let Site { rules, region, function, info, .. } = *site;
    let end = region.base().wrapping_add(u64::from(jmp.end));
    let address = end.wrapping_add_signed(i64::from(distance));
    let inside = region.rva(address).filter(|target| function.contains(*target));
    let to_start = inside == Some(function.begin) && !info.is_chained();
    let tail_call = if !rules.is_windows() {
        // A jump inside the function is a self tail call only if it goes to the very start.
        (inside.is_none() || to_start) && nothing_to_unwind_at(site, address)?
    } else if inside.is_some() {
        to_start
    } else {
        let target = address.wrapping_sub(region.base());
        same_function_begin(site, address)?.is_none_or(|begin| u64::from(begin) == target)
    };
    Ok(match inside {
        _ if tail_call => Ending::Leaves,
        // Following the jump is executing it, so any result found there is right.
        Some(target) if site.may_be_unusual_epilogue() => Ending::Continues(target),
        // Functions of V8's snapshot continue in others, behind what these begin with.
        None if site.may_be_unusual_epilogue() && is_released_before(site, jmp.start)? => {
            Ending::Leaves
        }
        _ => Ending::Other,
    })
}

/// Returns true if a call could enter at `address`, because no frame has been set up there. gcc's
/// cold parts have entries of their own, unchained, with all codes at offset 0: they cannot be
/// called, and neither can code whose unwind data is broken. An error if that depends on other
/// regions, and the site is looked at alone.
fn nothing_to_unwind_at(site: &Site<'_, '_>, address: u64) -> Result<bool, UnwindError> {
    let found = if let Some(map) = site.map {
        map.find(address)
    } else {
        let rva = site.region.rva(address).ok_or(UnwindError::UnknownCode { address })?;
        Some((site.region, rva))
    };
    let Some((region, rva)) = found else { return Ok(true) };
    let Some(function) = region.functions().find(rva) else { return Ok(true) };
    let nothing = resolve_indirect(region, function).and_then(|function| {
        let info = any_info_of(region, function, Rules::Precise)?;
        if info.is_chained() {
            return Ok(false);
        }
        let offset = rva.wrapping_sub(function.begin);
        if Rules::Precise.has_version_3(info.version()) {
            let payload = UnwindInfoV3::read(&info)?;
            let in_body = offset >= u32::from(payload.prologue_size());
            let mut codes = payload.prologue().codes();
            return Ok(codes.all(|c| c.is_ok_and(|code| !in_body && !code.is_before(offset))));
        }
        Ok(info.raw_codes().all(|code| {
            code.is_ok_and(|c| c.op == RawCode::EPILOG || u32::from(c.offset) > offset)
        }))
    });
    Ok(nothing.unwrap_or(false))
}

/// Returns the begin of the primary function of `site`, if `target` (VA) belongs to the same one.
/// As in Windows, only the begins are compared, even across images.
fn same_function_begin(site: &Site<'_, '_>, target: u64) -> Result<Option<u32>, UnwindError> {
    let map = site.map.ok_or(UnwindError::UnknownCode { address: target })?;
    let Some((region, function)) = map.find_function(target) else { return Ok(None) };
    let theirs = primary(region, resolve_indirect(region, function)?)?;
    let ours = primary(site.region, site.function)?;
    Ok((ours.begin == theirs.begin).then_some(ours.begin))
}

/// Returns the entry at the root of the chain.
fn primary(
    region: &CodeRegion<'_>,
    mut function: RuntimeFunction,
) -> Result<RuntimeFunction, UnwindError> {
    for _ in 0..=CHAIN_LIMIT {
        match UnwindInfo::read(region, function.unwind_info)?.parent()? {
            Some(parent) => function = parent,
            None => return Ok(function),
        }
    }
    Err(UnwindError::ChainTooLong { rva: function.unwind_info })
}

/// Undoes the rest of the epilogue, including the return, if rip is in one that the EPILOG codes
/// describe. Returns `None` if it is not, else true if there was a machine frame.
pub(super) fn by_codes<E: Effects>(
    site: &Site<'_, '_>,
    epilogs: &Epilogs<'_>,
    effects: &mut E,
) -> Result<Option<bool>, UnwindError> {
    let length = u32::from(epilogs.size());
    let start =
        epilogs.starts(site.function.end).find(|start| site.rva.wrapping_sub(*start) < length);
    match start {
        Some(start) => {
            let done = site.rva.wrapping_sub(start);
            undo_pushes(site, done, effects).map(Some)
        }
        None => Ok(None),
    }
}

/// Undoes the pushes that the first `done` bytes of the epilogue have not popped.
fn undo_pushes<E: Effects>(
    site: &Site<'_, '_>,
    done: u32,
    effects: &mut E,
) -> Result<bool, UnwindError> {
    let (info, mut index) = first_push(site)?;
    let count = info.slot_count();
    let mut at = 0;
    while index < count {
        let code = info.raw_code(index)?;
        if code.op != RawCode::PUSH_NONVOL {
            break;
        }
        if at >= done {
            // Here, unlike in prologues, a popped rsp is the value read.
            let top = effects.rsp();
            effects.add_rsp(8);
            effects.load(Gpr::from_number(code.info), top)?;
        }
        at += if code.info >= 8 { 2 } else { 1 };
        index += 1;
    }
    // pushfq is described as an allocation of 8 bytes, and popped into a volatile register.
    if index < count {
        let code = info.raw_code(index)?;
        if code.op == RawCode::ALLOC_SMALL && code.info == 0 {
            if at >= done {
                effects.add_rsp(8);
            }
            index += 1;
        }
    }
    if index < count && info.raw_code(index)?.op == RawCode::PUSH_MACHFRAME {
        // An error code is popped before the epilogue.
        effects.pop_machine_frame(false)?;
        return Ok(true);
    }
    effects.pop_rip()?;
    Ok(false)
}

/// Returns the nearest info of the chain that has a push or a machine frame, and the index of its
/// code.
fn first_push<'s>(site: &Site<'s, '_>) -> Result<(UnwindInfo<'s>, usize), UnwindError> {
    let mut info = site.info;
    for _ in 0..=CHAIN_LIMIT {
        let mut index = 0;
        while index < info.slot_count() {
            let code = info.raw_code(index)?;
            if matches!(code.op, RawCode::PUSH_NONVOL | RawCode::PUSH_MACHFRAME) {
                return Ok((info, index));
            }
            index += code.slots();
        }
        match info.parent()? {
            Some(parent) => info = info_of(site.region, parent, site.rules)?,
            None => return Ok((info, index)),
        }
    }
    Err(UnwindError::ChainTooLong { rva: info.rva() })
}
