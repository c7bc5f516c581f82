//! Native frames by `RtlVirtualUnwind`: the system's own unwinder, which shares no code with
//! `clr-walker`.
//!
//! It reads the stack where the registers point to, and the thread runs on meanwhile. So registers
//! that point into the stack are moved into the copy before a step, and back after it.

use super::frame::{Frame, Pages, StackCopy};
use super::managed::{self, Reader};
use clr_sampler::os;
use std::ffi::c_void;
use std::ptr::null_mut;

/// UNW_FLAG_NHANDLER: no handler is wanted.
const NO_HANDLER: u32 = 0;

#[link(name = "ntdll")]
unsafe extern "system" {
    fn RtlVirtualUnwind(
        handler: u32,
        base: u64,
        rip: u64,
        function: *const [u32; 3],
        context: *mut Context,
        data: *mut *mut c_void,
        establisher: *mut u64,
        pointers: *mut c_void,
    ) -> *mut c_void;
}

/// A CONTEXT.
#[repr(C, align(16))]
struct Context {
    before: [u8; 0x78],
    registers: [u64; 16],
    rip: u64,
    after: [u8; 976],
}

/// The system's unwinder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtl;

impl Rtl {
    /// Does nothing: the system looks each image up.
    #[expect(clippy::unused_self, reason = "as the other unwinder has it")]
    pub(super) const fn forget(self) {}

    /// Returns the unwinder, which is always there.
    #[expect(clippy::unnecessary_wraps, reason = "libunwind may be missing")]
    pub(super) const fn load() -> Option<Self> {
        Some(Self)
    }

    /// Moves a native frame to its caller. `is_at_instruction`: `frame.rip` is the address of its
    /// current instruction, not of the one after a call. Returns false at the first function, `None`
    /// where the unwinder cannot go on.
    #[expect(clippy::unused_self, reason = "libunwind has a state")]
    pub(super) fn step(
        self,
        frame: &mut Frame,
        is_at_instruction: bool,
        stack: &StackCopy<'_>,
        images: &[os::Image],
        pages: &Pages,
    ) -> Option<bool> {
        let inside = if is_at_instruction { frame.rip } else { frame.rip.wrapping_sub(1) };
        let image = images.iter().find(|image| image.code.contains(&inside))?;
        let there = stack.from..stack.from + stack.bytes.len() as u64;
        if let Some(function) = managed::entry_at(Reader(pages), image.base, inside) {
            // What the other reader cannot read would be a fault in the system's unwinder.
            let same = managed::precompiled(Reader(pages), image.base, inside)?;
            managed::step(Reader(pages), same, &mut { *frame }, stack, is_at_instruction)?;
            let distance = (stack.bytes.as_ptr() as u64).wrapping_sub(stack.from);
            let here = there.start.wrapping_add(distance)..there.end.wrapping_add(distance);
            if !there.contains(&frame.rsp()) {
                return None;
            }
            let registers = frame.registers.map(|value| {
                if there.contains(&value) { value.wrapping_add(distance) } else { value }
            });
            let mut context =
                Context { before: [0; 0x78], registers, rip: frame.rip, after: [0; 976] };
            let (mut data, mut establisher) = (null_mut(), 0);
            // SAFETY: the image is loaded, as the loader has said; the pointers are to locals. What the
            // unwind data name can be read, as the other reader has found.
            unsafe {
                let (context, data) = (&raw mut context, &raw mut data);
                let establisher = &raw mut establisher;
                let (base, rip, function) = (image.base, frame.rip, &raw const function);
                RtlVirtualUnwind(
                    NO_HANDLER,
                    base,
                    rip,
                    function,
                    context,
                    data,
                    establisher,
                    null_mut(),
                );
            }
            frame.rip = context.rip;
            frame.registers = context.registers.map(|value| {
                if here.contains(&value) || value == here.end {
                    value.wrapping_sub(distance)
                } else {
                    value
                }
            });
        } else {
            // A leaf function has no entry.
            frame.rip = stack.read(frame.rsp())?;
            frame.registers[4] += 8;
        }
        Some(frame.rip != 0)
    }
}
