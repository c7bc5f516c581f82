//! Undoing a prologue by its unwind codes, through chained infos (contract §8.2 steps 2, 5 and 6).
#![expect(
    clippy::inline_always,
    reason = "measured: calls, with their operands in memory, cost a third"
)]

use super::super::{Position, Trust, UnwindError};
use super::effects::Effects;
use super::info::{CHAIN_LIMIT, Operation, RawCode, UnwindInfo};
use super::{Site, Unwound, info_of};
use crate::registers::Gpr;

/// Returns the frame base that offsets of saved registers count from, also known as the establisher
/// frame: the frame register less its offset if it has been set, else rsp.
#[inline(always)]
pub(super) fn frame_base<E: Effects>(
    site: &Site<'_, '_>,
    effects: &mut E,
) -> Result<E::Address, UnwindError> {
    let Site { rules, info, .. } = site;
    if info.frame_register() == 0 {
        return Ok(effects.rsp());
    }
    let offset = site.offset();
    let in_prologue = offset < u32::from(info.prologue_size()) && !info.is_chained();
    // Only in a prologue can the frame register be unset, and only 240 can stand for a large
    // offset.
    let mut frame_offset = info.frame_offset();
    if in_prologue || (frame_offset == 240 && site.has_set_fpreg_large()) {
        let mut index = 0;
        let mut set_at = None;
        while index < info.slot_count() {
            let code = info.raw_code(index)?;
            match code.op {
                RawCode::SET_FPREG if in_prologue => {
                    set_at = Some(code.offset);
                    break;
                }
                RawCode::SET_FPREG_LARGE if site.has_set_fpreg_large() => {
                    if let Operation::SetFpregLarge(large) = info.operation(index, code)? {
                        frame_offset = large;
                    }
                    set_at = Some(code.offset);
                    break;
                }
                _ => index += code.slots(),
            }
        }
        if in_prologue {
            let set_at = match set_at {
                Some(set_at) => set_at,
                // Windows then compares with the bytes after the codes.
                None if rules.is_windows() => info.raw_code(index)?.offset,
                // Without a code that sets it here, it was set before.
                None => 0,
            };
            if offset < u32::from(set_at) {
                return Ok(effects.rsp());
            }
        }
    }
    let frame = effects.value(Gpr::from_number(info.frame_register()));
    Ok(E::offset(frame, -i64::from(frame_offset)))
}

/// Undoes the part of the prologue that ran before rip, and loads the return address. `base` is the
/// [`frame_base`].
#[inline(always)]
pub(super) fn unwind<E: Effects>(
    site: &Site<'_, '_>,
    mut base: E::Address,
    effects: &mut E,
) -> Result<Unwound<E::Address>, UnwindError> {
    let Site { rva, function, mut info, .. } = *site;
    let establisher_frame = base;
    let mut begin = function.begin;
    let mut machine_frame = false;
    let mut has_frame_register = info.frame_register() != 0;
    for _ in 0..=CHAIN_LIMIT {
        let offset = rva.wrapping_sub(begin);
        machine_frame |= undo_codes(site, &info, offset, base, effects)?;
        let Some(parent) = info.parent()? else {
            if !machine_frame {
                effects.pop_rip()?;
            }
            // The root of the chain is the function as the programmer knows it.
            let in_body = offset >= u32::from(info.prologue_size());
            let handler = if in_body { info.handler()? } else { None };
            return Ok(Unwound {
                trust: if in_body { Trust::Body } else { Trust::Prologue },
                establisher_frame,
                handler_rva: handler.map(|handler| handler.rva),
                handler_data_rva: handler.map_or(0, |handler| handler.data_rva),
                caller: Position::below(machine_frame),
            });
        };
        begin = parent.begin;
        info = info_of(site.region, parent, site.rules)?;
        if site.rules.is_windows() {
            // Windows forgets the machine frame here, and keeps the first info's frame base.
            machine_frame = false;
        } else if !has_frame_register && info.frame_register() != 0 {
            has_frame_register = true;
            base = frame_base(&Site { function: parent, info, ..*site }, effects)?;
        }
    }
    Err(UnwindError::ChainTooLong { rva: info.rva() })
}

/// Undoes one info's codes, with rip `offset` bytes after its function's begin. Returns true if one
/// of them was a machine frame.
#[inline(always)]
pub(super) fn undo_codes<E: Effects>(
    site: &Site<'_, '_>,
    info: &UnwindInfo<'_>,
    offset: u32,
    base: E::Address,
    effects: &mut E,
) -> Result<bool, UnwindError> {
    let mut machine_frame = false;
    let mut index = 0;
    while index < info.slot_count() {
        let code = info.raw_code(index)?;
        if code.op > RawCode::PUSH_MACHFRAME
            && (code.op > RawCode::SET_FPREG_LARGE || !site.has_set_fpreg_large())
        {
            return Err(info.invalid_operation(index, code.op));
        }
        if offset >= u32::from(code.offset) {
            match info.operation(index, code)? {
                Operation::PushNonvol(register) => effects.pop(register)?,
                Operation::Alloc(bytes) => effects.add_rsp(i64::from(bytes)),
                Operation::SetFpreg => {
                    if info.frame_register() == 0 && !site.rules.is_windows() {
                        return Err(UnwindError::NoFrameRegister { rva: info.slot_rva(index) });
                    }
                    set_rsp_from_frame_register(info, info.frame_offset(), effects);
                }
                Operation::SetFpregLarge(large) => {
                    set_rsp_from_frame_register(info, large, effects);
                }
                Operation::SaveNonvol(register, at) => {
                    effects.load(register, E::offset(base, i64::from(at)))?;
                }
                Operation::SaveXmm128(n, at) => {
                    effects.load_xmm(n, E::offset(base, i64::from(at)))?;
                }
                Operation::PushMachframe(error_code) => {
                    effects.pop_machine_frame(error_code)?;
                    machine_frame = true;
                }
                Operation::Epilog | Operation::Spare => {}
            }
        }
        index += code.slots();
    }
    Ok(machine_frame)
}

#[inline(always)]
fn set_rsp_from_frame_register<E: Effects>(info: &UnwindInfo<'_>, offset: u32, effects: &mut E) {
    let frame = effects.value(Gpr::from_number(info.frame_register()));
    effects.set_rsp(E::offset(frame, -i64::from(offset)));
}
