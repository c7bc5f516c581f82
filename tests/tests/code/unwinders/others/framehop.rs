//! framehop as an unwinder under test.

use crate::unwinders::others::Answer;
use crate::unwinders::others::code::{Code, Section};
use clr_machine::Machine;
use clr_walker::memory::Memory as _;
use clr_walker::registers::{Gpr, Registers};
use clr_walker::unwind::Position;
use framehop::x86_64::{CacheX86_64, Reg, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Module, ModuleSectionInfo, Unwinder as _};
use std::ops::Range;

/// framehop's register names, in the order of the register numbers.
const REGISTERS: [Reg; 16] = [
    Reg::RAX,
    Reg::RCX,
    Reg::RDX,
    Reg::RBX,
    Reg::RSP,
    Reg::RBP,
    Reg::RSI,
    Reg::RDI,
    Reg::R8,
    Reg::R9,
    Reg::R10,
    Reg::R11,
    Reg::R12,
    Reg::R13,
    Reg::R14,
    Reg::R15,
];

/// The interface by which framehop reads the sections of a module.
struct Sections<'a>(&'a Code<'a>);

impl<'a> Sections<'a> {
    fn find(&self, name: &[u8]) -> Option<Section<'a>> {
        match name {
            b".text" => Some(self.0.text),
            b".xdata" => Some(self.0.xdata),
            _ => None,
        }
    }
}

impl<'a> ModuleSectionInfo<&'a [u8]> for Sections<'a> {
    fn base_svma(&self) -> u64 {
        self.0.base
    }

    fn section_svma_range(&mut self, name: &[u8]) -> Option<Range<u64>> {
        let section = self.find(name)?;
        let start = self.0.base + u64::from(section.rva);
        Some(start..start + section.bytes.len() as u64)
    }

    fn section_data(&mut self, name: &[u8]) -> Option<&'a [u8]> {
        match name {
            b".pdata" => self.0.pdata.as_deref(),
            _ => self.find(name).map(|section| section.bytes),
        }
    }
}

/// framehop, which restores no vector registers. Every step uses a new cache.
pub(crate) struct Framehop<'a>(UnwinderX86_64<&'a [u8]>);

impl<'a> Framehop<'a> {
    pub(crate) fn new(all: &'a [Code<'a>]) -> Self {
        let mut unwinder = UnwinderX86_64::new();
        for code in all {
            let range = code.base..code.base + u64::from(code.size);
            unwinder.add_module(Module::new(String::new(), range, code.base, Sections(code)));
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
        let read = &mut |address| memory.read_u64(address).map_err(|_| ());
        let rip = self.0.unwind_frame(address, &mut theirs, cache, read).ok()??;
        let mut found = Registers { rip, ..*frame };
        for (gpr, register) in Gpr::ALL.into_iter().zip(REGISTERS) {
            found.set(gpr, theirs.get(register));
        }
        Some(Answer { registers: found, has_xmm: false })
    }

    /// Returns the caller's rip, and framehop's registers after a step from the innermost frame.
    pub(crate) fn unwind(&self, frame: &Registers, memory: &Machine) -> (u64, UnwindRegsX86_64) {
        let mut theirs = registers(frame);
        let address = FrameAddress::from_instruction_pointer(frame.rip);
        let cache = &mut CacheX86_64::new();
        let read = &mut |address| memory.read_u64(address).map_err(|_| ());
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
        let read = &mut |address| memory.read_u64(address).map_err(|_| ());
        self.0.unwind_frame(address, &mut registers(frame), cache, read).ok()?
    }

    /// Returns the rips of the callers that framehop finds, the innermost one first.
    pub(crate) fn walk(&self, frame: &Registers, memory: &Machine) -> Vec<u64> {
        let cache = &mut CacheX86_64::new();
        let read = &mut |address| memory.read_u64(address).map_err(|_| ());
        let mut frames = self.0.iter_frames(frame.rip, registers(frame), cache, read);
        let addresses = std::iter::from_fn(|| frames.next().ok().flatten());
        addresses.skip(1).map(FrameAddress::address).take(10).collect()
    }
}

fn registers(ours: &Registers) -> UnwindRegsX86_64 {
    let mut theirs = UnwindRegsX86_64::new(ours.rip, 0, 0);
    for (register, value) in REGISTERS.into_iter().zip(ours.gpr) {
        theirs.set(register, value);
    }
    theirs
}
