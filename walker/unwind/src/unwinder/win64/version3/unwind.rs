//! Undoing the prologues and finishing the epilogues of version 3, through chained infos of any
//! version.

use super::winding::{MACHINE_FRAME, MACHINE_FRAME_WITH_ERROR};
use super::{ExtendedGpr, UnwindInfoV3, Winding, WindingCode, WindingOperation};
use crate::image::RuntimeFunction;
use crate::unwinder::win64::effects::Effects;
use crate::unwinder::win64::info::{CHAIN_LIMIT, UnwindInfo};
use crate::unwinder::win64::{Site, Unwound, any_info_of, prologue};
use crate::unwinder::{Position, Trust, UnwindError};

/// Undoes the part of the prologue that ran before rip.
pub(in crate::unwinder::win64) fn unwind<E: Effects>(
    site: &Site<'_, '_>,
    effects: &mut E,
) -> Result<Unwound<E::Address>, UnwindError> {
    let rsp = effects.rsp();
    unwind_chain(site, (site.function, site.info), (None, rsp), effects)
}

/// Undoes what ran before rip in the chain that begins with the function. `frame` is the frame base,
/// if a frame register was met before, and `rsp` that of the frame.
fn unwind_chain<'a, E: Effects>(
    site: &Site<'_, 'a>,
    (mut function, mut info): (RuntimeFunction, UnwindInfo<'a>),
    (mut frame, rsp): (Option<E::Address>, E::Address),
    effects: &mut E,
) -> Result<Unwound<E::Address>, UnwindError> {
    let mut machine_frame = false;
    for _ in 0..=CHAIN_LIMIT {
        let offset = site.rva.wrapping_sub(function.begin);
        let in_body;
        if site.rules.has_version_3(info.version()) {
            let payload = UnwindInfoV3::read(&info)?;
            in_body = offset >= u32::from(payload.prologue_size());
            let has_run = |code: &WindingCode| in_body || code.is_before(offset);
            let undone = undo(&payload.prologue(), has_run, effects)?;
            frame = frame.or(undone.frame);
            machine_frame |= undone.machine_frame;
        } else {
            in_body = offset >= u32::from(info.prologue_size());
            if frame.is_none() && info.frame_register() != 0 {
                frame = Some(prologue::frame_base(&Site { function, info, ..*site }, effects)?);
            }
            let base = frame.unwrap_or_else(|| effects.rsp());
            machine_frame |= prologue::undo_codes(site, &info, offset, base, effects)?;
        }
        let Some(parent) = info.parent()? else {
            if !machine_frame {
                effects.pop_rip()?;
            }
            let handler = if in_body { info.handler()? } else { None };
            return Ok(Unwound {
                trust: if in_body { Trust::Body } else { Trust::Prologue },
                establisher_frame: frame.unwrap_or(rsp),
                handler_rva: handler.map(|handler| handler.rva),
                handler_data_rva: handler.map_or(0, |handler| handler.data_rva),
                caller: Position::below(machine_frame),
            });
        };
        function = parent;
        info = any_info_of(site.region, parent, site.rules)?;
    }
    Err(UnwindError::ChainTooLong { rva: info.rva() })
}

/// Finishes the epilogue that rip is in, if a descriptor covers it.
pub(in crate::unwinder::win64) fn epilogue_at<E: Effects>(
    site: &Site<'_, '_>,
    effects: &mut E,
) -> Result<Option<Unwound<E::Address>>, UnwindError> {
    let payload = UnwindInfoV3::read(&site.info)?;
    for epilogue in payload.epilogues(site.function) {
        let epilogue = epilogue?;
        let done = site.rva.wrapping_sub(epilogue.start);
        if done > u32::from(epilogue.last) {
            continue;
        }
        let rsp = effects.rsp();
        let is_pending = |code: &WindingCode| u32::from(code.ip_offset) >= done;
        let Undone { frame, machine_frame } = undo(&epilogue.winding, is_pending, effects)?;
        if epilogue.is_transfer {
            // Only a fragment with a parent can return to it.
            let invalid = UnwindError::InvalidEpilogue { rva: epilogue.winding.rva };
            let parent = site.info.parent()?.ok_or(invalid)?;
            let info = any_info_of(site.region, parent, site.rules)?;
            let unwound = unwind_chain(site, (parent, info), (frame, rsp), effects)?;
            let trust = Trust::EpilogueCodes;
            return Ok(Some(Unwound { trust, handler_rva: None, handler_data_rva: 0, ..unwound }));
        }
        if !machine_frame {
            effects.pop_rip()?;
        }
        return Ok(Some(Unwound {
            trust: Trust::EpilogueCodes,
            establisher_frame: frame.unwrap_or(rsp),
            handler_rva: None,
            handler_data_rva: 0,
            caller: Position::below(machine_frame),
        }));
    }
    Ok(None)
}

/// The result of undoing operations.
struct Undone<A> {
    /// The frame base, if a frame register was set.
    frame: Option<A>,
    machine_frame: bool,
}

/// Undoes the operations that `applies` accepts.
fn undo<E: Effects>(
    winding: &Winding<'_>,
    applies: impl Fn(&WindingCode) -> bool,
    effects: &mut E,
) -> Result<Undone<E::Address>, UnwindError> {
    let to_undo = || winding.codes().filter(|code| code.as_ref().map_or(true, &applies));
    let mut frame = None;
    // rsp may have moved since the frame register was set, but not within the prologue.
    let mut after = 0_i64;
    for code in to_undo() {
        match code?.operation {
            WindingOperation::SetFpreg(register, offset) if frame.is_none() => {
                let base = E::offset(effects.value(register), -i64::from(offset));
                effects.set_rsp(E::offset(base, -after));
                frame = Some(base);
            }
            operation => after += i64::from(operation.size()),
        }
    }
    let mut machine_frame = false;
    for code in to_undo() {
        let WindingCode { operation, rva, .. } = code?;
        match operation {
            WindingOperation::Push(register) => pop(register, effects)?,
            WindingOperation::Push2(first, second) => {
                pop(second, effects)?;
                pop(first, effects)?;
            }
            WindingOperation::Alloc(bytes) => effects.add_rsp(i64::from(bytes)),
            WindingOperation::SetFpreg(register, offset) => {
                let base = E::offset(effects.value(register), -i64::from(offset));
                effects.set_rsp(base);
            }
            WindingOperation::SaveNonvol(register, at) => {
                if let Some(register) = register.gpr() {
                    let rsp = effects.rsp();
                    effects.load(register, E::offset(rsp, i64::from(at)))?;
                }
            }
            WindingOperation::SaveXmm128(n, at) => {
                let rsp = effects.rsp();
                effects.load_xmm(n, E::offset(rsp, i64::from(at)))?;
            }
            WindingOperation::PushCanonicalFrame(frame_type) => {
                let error_code = match frame_type {
                    MACHINE_FRAME => false,
                    MACHINE_FRAME_WITH_ERROR => true,
                    _ => return Err(UnwindError::UnknownFrameType { frame_type, rva }),
                };
                effects.pop_machine_frame(error_code)?;
                machine_frame = true;
            }
        }
    }
    Ok(Undone { frame, machine_frame })
}

/// Undoes a push. The walker has no r16 to r31, whose values are lost.
fn pop<E: Effects>(register: ExtendedGpr, effects: &mut E) -> Result<(), UnwindError> {
    let Some(register) = register.gpr() else {
        effects.add_rsp(8);
        return Ok(());
    };
    effects.pop(register)
}
