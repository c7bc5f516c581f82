//! One step from a frame to its caller, and whole stacks made of such steps.

mod cache;
mod dwarf;
mod error;
mod walk;
pub mod win64;

pub use cache::Cache;
use cache::CachedRule;
pub use error::UnwindError;
pub use walk::{Frame, Walk};

use crate::code_map::{CodeMap, CodeRegion};
use crate::image::RuntimeFunction;
use crate::memory::Memory;
use crate::registers::{Convention, RegisterSet, Registers};

/// Which rules decide where unwinders disagree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rules {
    /// Right where Windows is known to be wrong: a jump into a gcc cold part or back is no tail
    /// call, `rex ret` returns, so does iretq over a machine frame, version 2 may lack EPILOG codes,
    /// jumps to a shared tail are followed, `___chkstk_ms` is known by its code, callers are looked
    /// up at their return address − 1. Operation 11 is known, as on Unix.
    #[default]
    Precise,
    /// Exactly what Windows and CoreCLR on Windows do, mistakes included (contract §8.2).
    Windows,
    /// The same, with the operation that CoreCLR adds on Unix: 11, UWOP_SET_FPREG_LARGE.
    CoreClrUnix,
}

impl Rules {
    #[inline]
    pub(crate) const fn is_windows(self) -> bool {
        !matches!(self, Self::Precise)
    }

    #[inline]
    pub(crate) const fn has_set_fpreg_large(self) -> bool {
        !matches!(self, Self::Windows)
    }

    /// The highest unwind operation that is not an error.
    #[inline]
    pub(crate) const fn last_operation(self) -> u8 {
        if self.has_set_fpreg_large() { 11 } else { 10 }
    }
}

/// What the rip of a frame is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Position {
    /// The next instruction of a thread that was stopped or interrupted anywhere: the first frame of
    /// a stack, or one below a machine frame or a signal frame. It may be in a prologue, an epilogue or
    /// a leaf.
    #[default]
    Interrupted,
    /// A return address: the instruction before it is a call, so the frame is in a function's body.
    ReturnAddress,
}

impl Position {
    /// What the caller's rip is, if the frame interrupted it, by a machine frame or a signal, or not.
    #[inline]
    const fn below(interruption: bool) -> Self {
        if interruption { Self::Interrupted } else { Self::ReturnAddress }
    }
}

/// How a frame's caller was found, from the surest way to the least sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// By the unwind codes, outside the prologue.
    Body,
    /// By those of the unwind codes whose instructions had run.
    Prologue,
    /// By the EPILOG codes of version 2.
    EpilogueCodes,
    /// By executing the instructions of an epilogue.
    EpilogueInstructions,
    /// By call frame information.
    Cfi,
    /// By that of a trampoline that signal handlers return to: the caller was interrupted.
    SignalFrame,
    /// The code has no unwind data, but its bytes are those of a known function.
    KnownCode,
    /// The code has no unwind data, so it must be a leaf.
    Leaf,
    /// The code has no unwind data, but its bytes are those of a stub that only jumps on: a PLT entry, or in
    /// whole stacks one of the runtime's.
    Stub,
    /// The native code has no call frame information, but rbp looks like a frame pointer.
    FramePointer,
}

/// What is done where native code has no call frame information.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Guesses {
    /// The walk stops, but for PLT entries that are known by their bytes.
    #[default]
    None,
    /// rbp is taken for a frame pointer where it looks like one: a guess ([`Trust::FramePointer`]).
    /// Registers saved elsewhere are not restored, so that later frames may have wrong ones.
    FramePointers,
}

/// A language-specific handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handler {
    /// RVA of its code.
    pub rva: u32,
    /// RVA of its data.
    pub data_rva: u32,
}

/// What one step found besides the caller's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// How the caller was found.
    pub trust: Trust,
    /// The establisher frame (VA): what exception handling takes as the frame's identity. Of native
    /// code on Unix it is the canonical frame address.
    pub establisher_frame: u64,
    /// The exception or termination handler, unless rip is in a prologue or an epilogue.
    pub handler: Option<Handler>,
    /// What the caller's rip is: [`Position::Interrupted`] below a machine frame or a signal frame.
    pub caller: Position,
    /// The registers whose values in the caller it read or computed.
    pub found: RegisterSet,
    /// Those that hold what they held in the frame, which is what they hold in the caller: callees
    /// preserve them, or are told to have.
    pub kept: RegisterSet,
    /// The frame's registers that it was all computed from.
    pub needed: RegisterSet,
}

impl Step {
    /// The caller's known registers, if these are the frame's: all others hold what the callee left in
    /// them. None is known if one was not that the step needed.
    ///
    /// Of a thread that was stopped all are known. Below a call no volatile register is, unless call
    /// frame information says where it is saved, as that of a signal's trampoline does.
    #[inline]
    #[must_use]
    pub const fn known(&self, of_frame: RegisterSet) -> RegisterSet {
        if of_frame.contains_all(self.needed) {
            self.found.union(self.kept.intersection(of_frame))
        } else {
            RegisterSet::EMPTY
        }
    }

    /// The step through code with UNWIND_INFO as the convention has it. A volatile register that was
    /// pushed to allocate 8 bytes is no caller's.
    #[inline]
    const fn within(self, preserved: RegisterSet) -> Self {
        let (found, kept) = (self.found.intersection(preserved), self.kept.intersection(preserved));
        Self { found, kept, ..self }
    }
}

/// Unwinds the code of a map.
#[derive(Clone, Copy, Debug)]
pub struct Unwinder<'c, 'a> {
    map: &'c CodeMap<'a>,
    rules: Rules,
    guesses: Guesses,
    convention: Convention,
    /// Of what steps through code with UNWIND_INFO say on Windows, what they say here.
    preserved: RegisterSet,
}

impl<'c, 'a> Unwinder<'c, 'a> {
    /// An unwinder with [`Rules::Precise`], and with the convention of System V if the map has native
    /// code of Unix, that of Windows if not.
    #[must_use]
    pub const fn new(map: &'c CodeMap<'a>) -> Self {
        let convention = if map.has_cfi() { Convention::SystemV } else { Convention::WindowsX64 };
        let preserved = preserved(convention);
        Self { map, rules: Rules::Precise, guesses: Guesses::None, convention, preserved }
    }

    /// The same with another convention of code that has UNWIND_INFO: which registers are known behind
    /// a step ([`Step::known`]). It changes nothing else.
    #[must_use]
    pub const fn with_convention(self, convention: Convention) -> Self {
        Self { convention, preserved: preserved(convention), ..self }
    }

    /// The convention of code that has UNWIND_INFO.
    #[must_use]
    pub const fn convention(&self) -> Convention {
        self.convention
    }

    /// The same with other rules.
    #[must_use]
    pub const fn with_rules(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    /// The same with guesses or not.
    #[must_use]
    pub const fn with_guesses(self, guesses: Guesses) -> Self {
        Self { guesses, ..self }
    }

    /// The code it knows.
    #[must_use]
    pub const fn code_map(&self) -> &'c CodeMap<'a> {
        self.map
    }

    /// Its rules.
    #[must_use]
    pub const fn rules(&self) -> Rules {
        self.rules
    }

    /// Takes `registers` from a frame to its caller. Of the volatile registers, only those that an
    /// epilogue pops, or call frame information names, change. [`Step::known`] tells which registers
    /// are the caller's: one that this information calls undefined keeps what it held, for instance.
    ///
    /// # Errors
    /// [`UnwindError`]; `registers` are then as they were.
    #[inline]
    pub fn step<M: Memory + ?Sized>(
        &self,
        registers: &mut Registers,
        position: Position,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        if position == Position::ReturnAddress
            && let Some((region, rva)) = self.map.find(registers.rip.wrapping_sub(1))
        {
            if let Some(table) = region.cfi() {
                let place = dwarf::Place { map: self.map, region, table, rva };
                return dwarf::step(place, self.guesses, registers, position, memory);
            }
            if !self.rules.is_windows()
                && let Some(function) = region.functions().find(rva)
                && function.indirect().is_none()
            {
                let place = win64::Place { map: self.map, region, rva, function };
                return win64::step_from_call(place, self.preserved, registers, memory);
            }
        }
        self.any_step(registers, position, memory)
    }

    /// As [`step`](Self::step), for every kind of frame and code.
    #[inline(never)]
    fn any_step<M: Memory + ?Sized>(
        &self,
        registers: &mut Registers,
        position: Position,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        if let Some(place) = self.native(registers.rip, position) {
            return dwarf::step(place, self.guesses, registers, position, memory);
        }
        Ok(win64::step(self.map, self.rules, registers, position, memory)?.within(self.preserved))
    }

    /// Where a step begins, if it does so in code with call frame information.
    #[inline]
    fn native(&self, rip: u64, position: Position) -> Option<dwarf::Place<'c, 'a>> {
        let before = match position {
            Position::Interrupted => 0,
            Position::ReturnAddress => 1,
        };
        let (region, rva) = self.map.find(rip.wrapping_sub(before))?;
        let table = region.cfi()?;
        Some(dwarf::Place { map: self.map, region, table, rva })
    }

    /// The same as [`step`](Self::step) from code that was interrupted, which belongs to `function` of
    /// `region` whatever the table says: runtimes look functions up in tables of their own, and some
    /// take what lies behind a function's end for a part of it (contract §2.6, §8.3).
    ///
    /// # Errors
    /// Those of [`step`](Self::step); [`UnwindError::UnknownCode`] if rip is not in the region.
    #[inline]
    pub fn step_in_function<M: Memory + ?Sized>(
        &self,
        region: &CodeRegion<'_>,
        function: RuntimeFunction,
        registers: &mut Registers,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        let address = registers.rip;
        let rva = region.rva(address).ok_or(UnwindError::UnknownCode { address })?;
        let place = win64::Place { map: self.map, region, rva, function };
        let step = win64::step_in_function(place, self.rules, registers, true, memory)?;
        Ok(step.within(self.preserved))
    }

    /// The same as [`step`](Self::step), faster where `cache` knows the return address: with precise
    /// rules, from frames that made a call (native frames with any rules).
    ///
    /// # Errors
    /// Those of [`step`](Self::step), with or without the cache.
    #[inline]
    pub fn step_cached<M: Memory + ?Sized>(
        &self,
        cache: &mut Cache,
        registers: &mut Registers,
        position: Position,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        if position == Position::ReturnAddress {
            let (version, rip) = (self.map.version(), registers.rip);
            match cache.get(version, rip, [self.map.has_cfi(), !self.rules.is_windows()]) {
                Some(CachedRule::Cfi(rule)) => return rule.apply(registers, memory),
                Some(CachedRule::Win64(rule)) => {
                    return Ok(rule.apply(registers, memory)?.within(self.preserved));
                }
                None => {}
            }
        }
        self.step_and_learn(cache, registers, position, memory)
    }

    /// The step that the cache does not know; if it can be, it is known from then on.
    #[inline(never)]
    fn step_and_learn<M: Memory + ?Sized>(
        &self,
        cache: &mut Cache,
        registers: &mut Registers,
        position: Position,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        if position == Position::ReturnAddress {
            let (version, rip) = (self.map.version(), registers.rip);
            if let Some(place) = self.native(rip, position) {
                if let Some(rule) = dwarf::simple_rule(place) {
                    cache.insert_cfi(version, rip, rule);
                }
            } else if !self.rules.is_windows()
                && let Some(rule) = win64::compile(self.map, self.rules, rip)
            {
                cache.insert_win64(version, rip, rule);
                return Ok(rule.apply(registers, memory)?.within(self.preserved));
            }
        }
        self.step(registers, position, memory)
    }

    /// The frames of a thread stopped with these registers, the most recent one first.
    #[must_use]
    pub const fn walk<'m, M: Memory + ?Sized>(
        self,
        registers: &Registers,
        memory: &'m M,
    ) -> Walk<'c, 'a, 'm, M> {
        Walk::new(self, registers, memory)
    }
}

/// What is known behind a step of what is known behind one on Windows. There more than the convention
/// has is known below a machine frame, or behind code known by its bytes.
const fn preserved(convention: Convention) -> RegisterSet {
    match convention {
        Convention::WindowsX64 => RegisterSet::ALL,
        Convention::SystemV => convention.nonvolatile(),
    }
}
