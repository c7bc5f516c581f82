//! Calls of native code that the runtime has recorded.
//!
//! A method that calls native code puts an InlinedCallFrame on the stack, and links it from the Thread object,
//! which the ThreadID is the address of. While the call is active it has the return address, stack pointer
//! and rbp of the method (contract §3.5). Behind code that cannot be unwound the walk goes on from there.
//! The place of the list's head in the Thread object, and of the fields in the Frame, differ between
//! versions, so both are found by what they must have.

use super::cursor::{Cursor, Steps};
use super::stack::Source;
use crate::profiling::TargetThread;
use clr_unwind::{Gpr, Position, RegisterSet};

/// Size in bytes of the part of a Thread object that has the head of the list.
const SIZE: u64 = 0x100;
/// Maximum number of Frames that are looked at.
const MOST_FRAMES: usize = 32;
/// Offset of the next Frame in a Frame, in bytes.
const NEXT: u64 = 8;
/// Offsets of `m_pCallSiteSP` in an InlinedCallFrame, in bytes: up to .NET 8, and from .NET 9 on.
const CALL_SITES: [u64; 2] = [0x20, 0x18];

impl<T: TargetThread> Steps<'_, '_, T> {
    /// Returns the method that has called native code with the stack pointer `above` (VA), by the first active
    /// InlinedCallFrame above it.
    #[cold]
    #[inline(never)]
    pub(super) fn recorded_caller(&self, above: u64) -> Option<Cursor> {
        let thread = self.target.id().0;
        if thread == 0 {
            return None;
        }
        (0..SIZE).step_by(8).find_map(|at| {
            let mut link = self.target.read_u64(thread.checked_add(at)?).ok()?;
            for _ in 0..MOST_FRAMES {
                if link < above || link % 8 != 0 || !self.stack.contain(link) {
                    break;
                }
                let mut calls = CALL_SITES.into_iter();
                if let Some(caller) = calls.find_map(|at| self.active_call(link, at, above)) {
                    return Some(caller);
                }
                // Frames are linked rootward.
                link = self
                    .target
                    .read_u64(link.wrapping_add(NEXT))
                    .ok()
                    .filter(|next| *next > link)?;
            }
            None
        })
    }

    /// Returns the caller that the InlinedCallFrame at `link` (VA) has, if there is an active one with the call
    /// site at this offset: a call in a method comes before the return address, and the method's frame, in
    /// which the InlinedCallFrame is, begins at an aligned stack pointer.
    fn active_call(&self, link: u64, call_site: u64, above: u64) -> Option<Cursor> {
        let word = |n: u64| self.target.read_u64(link.wrapping_add(call_site + 8 * n)).ok();
        let (sp, rip, rbp) = (word(0)?, word(1)?, word(2)?);
        let is_frame = sp > above && sp < link && sp % 16 == 0 && rbp >= link;
        let is_on_stack = self.stack.contain(sp) && self.stack.contain(rbp);
        if !is_frame || !is_on_stack || !self.is_call_of_method(rip) {
            return None;
        }
        let mut caller = Cursor { position: Position::ReturnAddress, ..Cursor::NOWHERE };
        caller.registers.rip = rip;
        caller.registers.set(Gpr::Rsp, sp);
        caller.registers.set(Gpr::Rbp, rbp);
        caller.known = RegisterSet::of(&[Gpr::Rsp, Gpr::Rbp]);
        caller.source = Source::CallFrame;
        Some(caller)
    }
}
