//! The Frames of a thread, and where each leads: what kind it is says its memory, where it leads to
//! the truth.

use super::rows::{Code, Row};
use clr_runtime::frame::FrameShape;
use clr_runtime::frame::layout;
use clr_runtime::generation::Generation;
use clr_runtime::{FRAME_TOP, FrameIdentities, FrameKind, MethodKind};
use clr_walker::memory::Memory;
use clr_walker::unwind::Position;

/// A Frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its address (VA).
    pub at: u64,
    /// What it is.
    pub kind: FrameKind,
    /// It has a method, so that a walk stops at it.
    pub has_method: bool,
    /// Where it leads.
    pub lead: Lead,
}

/// Where a Frame leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lead {
    /// Nowhere, or to unmanaged code.
    Nowhere,
    /// To a row of managed code.
    To {
        /// The row, by its index.
        row: usize,
        /// Its rip as the Frame has it (VA).
        ip: u64,
        /// What else it tells of the row.
        sets: Sets,
    },
    /// These rules do not say.
    Beyond,
}

/// Registers that a Frame tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sets {
    /// rsp and rbp (C-070, C-098).
    FramePointer,
    /// rsp and all callee-saved integer registers (C-072, C-073).
    CalleeSaved,
    /// All of them, with ContextFlags: of what was interrupted (C-076).
    Interrupted,
    /// The same of what has faulted (C-160).
    Faulted,
}

/// The Frames from `top` on. `None` if something on the chain is no Frame.
pub(super) fn chain<M: Memory>(
    generation: Generation,
    identities: &FrameIdentities,
    memory: &M,
    top: u64,
    rows: &[Row],
) -> Option<Vec<Frame>> {
    let mut frames = Vec::new();
    let mut at = top;
    while at != FRAME_TOP {
        let word = |offset: u64| memory.read_u64(at.wrapping_add(offset)).ok();
        let kind = identities.kind(word(0)?)?;
        // The activation in whose frame it lies.
        let host = rows.iter().position(|row| at < row.caller_sp)?;
        let (has_method, lead) = match kind.shape() {
            FrameShape::InlinedCall => {
                let recorded = word(generation.inlined_call_frame().return_address)?;
                inlined_call(rows, host, recorded)
            }
            FrameShape::FramedMethod => (word(layout::METHOD)? != 0, transition(rows, host)),
            FrameShape::Transition | FrameShape::TailCall | FrameShape::Software => {
                (false, transition(rows, host))
            }
            // Between it and who the hijacked function would have returned to lies what saves the
            // registers (C-074).
            FrameShape::Hijack => (false, to(rows, Some(host + 2))),
            FrameShape::HelperMethod => {
                let method = word(layout::HELPER_METHOD)? | word(layout::FCALL_ENTRY)?;
                let lead = rows.iter().skip(host).position(Row::is_managed);
                (method != 0, to(rows, lead.map(|row| host + row)))
            }
            FrameShape::Resumable => (false, interrupted(rows, host, Sets::Interrupted)),
            FrameShape::Faulting => (false, interrupted(rows, host, Sets::Faulted)),
            // The caller of COM is unmanaged.
            FrameShape::Mark | FrameShape::UnmanagedToManaged => (false, Lead::Nowhere),
            FrameShape::FuncEval => (false, Lead::Beyond),
        };
        frames.push(Frame { at, kind, has_method, lead });
        at = word(layout::NEXT)?;
    }
    Some(frames)
}

/// It leads to the method that it lies in, while the call is active (C-070, C-071).
fn inlined_call(rows: &[Row], host: usize, recorded: u64) -> (bool, Lead) {
    let Some(row) = rows.get(host).filter(|row| row.is_managed() && recorded != 0) else {
        return (false, Lead::Nowhere);
    };
    // Once it calls, what it comes back to is what the Frame tells; ready-to-run code's tells of a
    // helper's call (C-156).
    let callee = host.checked_sub(1).and_then(|callee| rows.get(callee));
    let calls = row.position == Position::ReturnAddress
        && callee.is_some_and(|callee| !callee.is_service());
    let begins = row.fact.is_some_and(|fact| fact.begins);
    let ip = if calls && !begins { row.registers.rip } else { recorded };
    // The Frame of an IL stub of the runtime has the method of the P/Invoke; another one's a token.
    let is_stub = matches!(row.code, Code::Managed(_, MethodKind::IlStub));
    let has_method = is_stub && row.fact.is_some_and(|fact| !fact.is_source);
    (has_method, Lead::To { row: host, ip, sets: Sets::FramePointer })
}

/// It leads to who called into the runtime (C-073), if that is managed code (C-079).
fn transition(rows: &[Row], host: usize) -> Lead {
    let caller = rows.iter().skip(host).position(|row| !row.is_between());
    to(rows, caller.map(|row| host + row))
}

/// It leads to what was interrupted (C-076) or has faulted (C-160).
fn interrupted(rows: &[Row], host: usize, sets: Sets) -> Lead {
    match to(rows, Some(host + 1)) {
        Lead::To { row, ip, .. } => Lead::To { row, ip, sets },
        other => other,
    }
}

fn to(rows: &[Row], index: Option<usize>) -> Lead {
    match index.and_then(|index| Some((index, rows.get(index)?))) {
        Some((index, row)) if row.is_managed() => {
            Lead::To { row: index, ip: row.registers.rip, sets: Sets::CalleeSaved }
        }
        _ => Lead::Nowhere,
    }
}
