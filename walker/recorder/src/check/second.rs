//! The steps of the second walk.

use super::frame::{Frame, Pages, StackCopy};
use super::managed::{self, Reader};
use clr_com::RuntimeInfo;
use clr_sampler::os;
use clr_walker::profiling::{FunctionId, ProfilerInfo as _};

#[cfg(target_os = "linux")]
pub(super) use super::native::Libunwind as Native;
#[cfg(windows)]
pub(super) use super::rtl::Rtl as Native;

/// Maximum distance in bytes of the first function's frame from the stack's base.
const ROOM_AT_BASE: u64 = 0x2000;

/// Maximum distance in bytes of a HijackFrame from the end of its function's frame.
const HIJACK_FRAME: u64 = 0x100;

/// The input of a second walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Second<'s> {
    pub(super) native: Option<Native>,
    pub(super) images: &'s [os::Image],
    /// Pages of native images.
    pub(super) pages: &'s Pages,
    /// Pages of other memory, during this walk.
    pub(super) now: &'s Pages,
    pub(super) info: &'s RuntimeInfo,
    pub(super) stack: StackCopy<'s>,
    /// The stack's base (VA).
    pub(super) base: u64,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stepped {
    /// The frame is now its caller.
    Caller {
        /// True if that was interrupted by a signal.
        interrupted: bool,
    },
    /// The frame was the thread's first function.
    Root,
    /// No unwind data, or none that makes sense.
    Lost,
}

impl Second<'_> {
    fn is_native(&self, address: u64) -> bool {
        self.images.iter().any(|image| image.code.contains(&address))
    }

    /// Returns the method of a frame, as the runtime says.
    pub(super) fn method(&self, frame: &Frame, is_interrupted: bool) -> Option<FunctionId> {
        let inside = inside(frame, is_interrupted);
        if self.is_native(inside) { None } else { managed::method_at(self.info, inside) }
    }

    /// Returns true if the code of a frame is a method that the runtime does not report.
    pub(super) fn is_hidden(&self, frame: &Frame, is_interrupted: bool) -> bool {
        self.info.get_function_from_ip(inside(frame, is_interrupted)).is_err()
    }

    /// Moves a frame to its caller.
    pub(super) fn step(
        &self,
        frame: &mut Frame,
        method: Option<FunctionId>,
        is_interrupted: bool,
    ) -> Stepped {
        let (inside, sp) = (inside(frame, is_interrupted), frame.rsp());
        let reader = Reader(self.now);
        let interrupted = self.is_trampoline(frame.rip);
        let function = method.and_then(|id| managed::function_at(reader, self.info, id, inside));
        if let Some(function) = function {
            if managed::step(reader, function, frame, &self.stack, is_interrupted).is_none() {
                return Stepped::Lost;
            }
        } else if self.is_native(inside) {
            let Some(native) = &self.native else { return Stepped::Lost };
            let is_at_instruction = is_interrupted || interrupted;
            match native.step(frame, is_at_instruction, &self.stack, self.images, self.pages) {
                Some(true) if frame.rip != 0 => self.undo_hijack(sp, frame),
                Some(_) if self.is_first(inside, sp) => return Stepped::Root,
                Some(_) | None => return Stepped::Lost,
            }
        } else {
            // Only execution shows what unknown code does.
            return Stepped::Lost;
        }
        // Data on the stack may look like a call.
        let is_on_stack = self.stack.contains(frame.rip);
        let goes_on = !is_on_stack && (frame.rsp() > sp || interrupted || is_interrupted);
        if goes_on && (interrupted || self.follows_call(frame.rip) || self.is_trampoline(frame.rip))
        {
            Stepped::Caller { interrupted }
        } else {
            Stepped::Lost
        }
    }

    /// Corrects the caller of `OnHijackTripThread`, whose frame is at `sp` (VA). libunwind takes it from the word
    /// above the return address, as the call frame information says. The runtime's HijackFrame has the true one:
    /// in the frame of the function that this one has called, and followed by the Thread object and by the address
    /// of what this one has pushed (`class HijackFrame` of CoreCLR 3.1 to .NET 11, vm/frames.h).
    fn undo_hijack(&self, sp: u64, frame: &mut Frame) {
        let slot = frame.rsp().wrapping_sub(16);
        let Some(address) = self.stack.read(slot).filter(|_| slot > sp) else { return };
        let pushed = sp..slot;
        let is_hijack_frame = |at: u64| {
            self.stack.read(at) == Some(address)
                && self.stack.read(at + 16).is_some_and(|at| pushed.contains(&at))
        };
        let mut below = (sp.saturating_sub(HIJACK_FRAME)..sp).step_by(8);
        if below.any(is_hijack_frame) && managed::method_at(self.info, address).is_some() {
            frame.rip = address;
            frame.registers[4] = frame.rsp().wrapping_sub(8);
        }
    }

    /// Returns true if a frame without a caller is the thread's first: at the stack's base, in the C
    /// library or at the program's entry. Elsewhere a return address of 0 is a wrong one.
    #[cfg(target_os = "linux")]
    fn is_first(&self, inside: u64, sp: u64) -> bool {
        let image = self.images.iter().find(|image| image.code.contains(&inside));
        self.base.wrapping_sub(sp) <= ROOM_AT_BASE
            && image.is_some_and(|image| {
                let is_libc =
                    image.path.rsplit('/').next().is_some_and(|name| name.starts_with("libc.so"));
                // `e_entry` of the ELF header.
                let entry = self.pages.read(image.code.start + 24).unwrap_or_default();
                is_libc || inside.wrapping_sub(image.code.start.wrapping_add(entry)) < 64
            })
    }

    /// Returns true if a frame without a caller is the thread's first: at the stack's base, in a
    /// native image.
    #[cfg(windows)]
    fn is_first(&self, inside: u64, sp: u64) -> bool {
        self.base.wrapping_sub(sp) <= ROOM_AT_BASE && self.is_native(inside)
    }

    /// Returns true if the code at `ip` (VA) is the one that signal handlers return to:
    /// `mov rax, 15; syscall`.
    fn is_trampoline(&self, ip: u64) -> bool {
        let mut code = [0; 9];
        self.now.fill(ip, &mut code).is_some()
            && code == [0x48, 0xC7, 0xC0, 0x0F, 0, 0, 0, 0x0F, 0x05]
    }

    /// Returns true if the instruction before `ip` (VA) may be a call.
    pub(super) fn follows_call(&self, ip: u64) -> bool {
        let mut code = [0; 8];
        if self.now.fill(ip.wrapping_sub(8), &mut code).is_none() {
            return false;
        }
        let is_register_call = |at: usize| code[at] == 0xFF && code[at + 1] >> 3 & 7 == 2;
        code[3] == 0xE8 || (1..=6).any(is_register_call)
    }
}

/// Returns an address within the frame's current instruction.
const fn inside(frame: &Frame, is_interrupted: bool) -> u64 {
    if is_interrupted { frame.rip } else { frame.rip.wrapping_sub(1) }
}
