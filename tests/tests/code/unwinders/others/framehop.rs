//! framehop as an unwinder under test.

use crate::unwinders::others::Answer;
use crate::unwinders::others::code::Code;
use clr_machine::Machine;
use clr_tests::peers::framehop::{Sections, reader, registers, restored};
use clr_unwind::{Position, Registers};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Module, Unwinder as _};

/// framehop, which restores no vector registers. Every step uses a new cache.
pub(crate) struct Framehop<'a>(UnwinderX86_64<&'a [u8]>);

impl<'a> Framehop<'a> {
    pub(crate) fn new(all: &'a [Code<'a>]) -> Self {
        let mut unwinder = UnwinderX86_64::new();
        for code in all {
            let range = code.base..code.base + u64::from(code.size);
            let sections = Sections {
                base: code.base,
                text: (code.text.rva, code.text.bytes),
                xdata: (code.xdata.rva, code.xdata.bytes),
                pdata: code.pdata.as_deref(),
            };
            unwinder.add_module(Module::new(String::new(), range, code.base, sections));
        }
        Self(unwinder)
    }

    pub(crate) fn step(
        &self,
        frame: &Registers,
        position: Position,
        memory: &Machine,
    ) -> Option<Answer> {
        let address = match position {
            Position::Interrupted => FrameAddress::from_instruction_pointer(frame.rip),
            Position::ReturnAddress => FrameAddress::from_return_address(frame.rip)?,
        };
        let mut theirs = registers(frame);
        let cache = &mut CacheX86_64::new();
        let read = &mut reader(memory);
        let rip = self.0.unwind_frame(address, &mut theirs, cache, read).ok()??;
        Some(Answer { registers: restored(frame, rip, &theirs), has_xmm: false })
    }

    /// Returns the caller's rip, and framehop's registers after a step from the innermost frame.
    pub(crate) fn unwind(&self, frame: &Registers, memory: &Machine) -> (u64, UnwindRegsX86_64) {
        let mut theirs = registers(frame);
        let address = FrameAddress::from_instruction_pointer(frame.rip);
        let cache = &mut CacheX86_64::new();
        let read = &mut reader(memory);
        let rip = self.0.unwind_frame(address, &mut theirs, cache, read).unwrap().unwrap();
        (rip, theirs)
    }

    /// Returns the caller's rip. If `fails` is true, the step follows another one from the same
    /// frame that could not read the stack.
    pub(crate) fn unwind_after_failure(
        &self,
        frame: &Registers,
        memory: &Machine,
        fails: bool,
    ) -> Option<u64> {
        let address = FrameAddress::from_instruction_pointer(frame.rip);
        let cache = &mut CacheX86_64::new();
        if fails {
            let unreadable = &mut |_| Err(());
            let failed = self.0.unwind_frame(address, &mut registers(frame), cache, unreadable);
            assert!(failed.is_err());
        }
        let read = &mut reader(memory);
        self.0.unwind_frame(address, &mut registers(frame), cache, read).ok()?
    }

    /// Returns the rips of the callers that framehop finds, the innermost one first.
    pub(crate) fn walk(&self, frame: &Registers, memory: &Machine) -> Vec<u64> {
        let cache = &mut CacheX86_64::new();
        let read = &mut reader(memory);
        let mut frames = self.0.iter_frames(frame.rip, registers(frame), cache, read);
        let addresses = std::iter::from_fn(|| frames.next().ok().flatten());
        addresses.skip(1).map(FrameAddress::address).take(10).collect()
    }
}
