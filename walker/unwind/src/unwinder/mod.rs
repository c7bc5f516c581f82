//! Steps from a frame to its caller, and walks of whole stacks.

mod cache;
mod code;
#[cfg(feature = "macho")]
mod compact;
mod dwarf;
mod error;
mod keep;
mod walk;
pub mod win64;

pub use cache::Cache;
use cache::CachedRule;
pub use error::UnwindError;
pub use walk::{Frame, Walk};
pub(crate) use win64::Rule;

use crate::cfi;
use crate::code_map::{CodeMap, CodeRegion};
use crate::compat::Rules;
use crate::image::RuntimeFunction;
use crate::memory::Memory;
use crate::registers::{Convention, RegisterSet, Registers};
use crate::rule_slots::CodePlace;

/// The kind of address in a frame's rip.
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
    /// Returns the position of the caller: interrupted by a machine frame or a signal, or not.
    #[inline]
    const fn below(interruption: bool) -> Self {
        if interruption { Self::Interrupted } else { Self::ReturnAddress }
    }
}

/// The method by which a frame's caller was found, from the surest to the least sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// By the unwind codes, outside the prologue.
    Body,
    /// By the unwind codes whose instructions had run.
    Prologue,
    /// By the EPILOG codes of version 2, or the epilogue descriptors of version 3.
    EpilogueCodes,
    /// By executing the instructions of an epilogue: what it returns to counts, whatever unwind data say.
    EpilogueInstructions,
    /// By call frame information.
    Cfi,
    /// By compact unwind information, which describes the frame at calls.
    Compact,
    /// By following the code from the interrupted instruction to a return, or to a call that has
    /// compact unwind information. In whole stacks code that no map has is followed, too.
    FollowedCode,
    /// By the call frame information of a trampoline that signal handlers return to: the caller was
    /// interrupted.
    SignalFrame,
    /// The code has no unwind data, but its bytes are those of a known function.
    KnownCode,
    /// The code has no unwind data, so it must be a leaf.
    Leaf,
    /// The code has no unwind data, but its bytes are those of a stub that only jumps on: a PLT entry, or in
    /// whole stacks one of the runtime's.
    Stub,
    /// The code is unknown, but the word on top of the stack is a return address in a method, of a call that can
    /// lead there, so it may be that of a stub or a leaf: a guess. Only whole stacks have this.
    StackTop,
    /// By the word that the function's `ret` takes for its return address, though call frame
    /// information names the one above: a hijacked return in the runtime.
    ReturnInstruction,
    /// By compact unwind information, though the code leads neither to a call nor to a return within
    /// the limits: the frame is assumed to be complete.
    CompactAssumed,
    /// The native code has no call frame information, but rbp looks like a frame pointer.
    FramePointer,
}

impl Trust {
    /// Returns true for a guess: nothing shows that the caller is right, only that it could be.
    #[must_use]
    pub const fn is_guess(self) -> bool {
        matches!(self, Self::StackTop | Self::CompactAssumed | Self::FramePointer)
    }
}

/// The treatment of native code without call frame information.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Guesses {
    /// The walk stops, except at PLT entries, which are recognised by their bytes.
    #[default]
    None,
    /// rbp is taken for a frame pointer if it looks like one: a guess ([`Trust::FramePointer`]).
    /// Registers saved elsewhere are not restored, so later frames may have wrong ones.
    FramePointers,
}

/// A language-specific handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handler {
    /// RVA of the handler's code.
    pub rva: u32,
    /// RVA of the handler's data.
    pub data_rva: u32,
}

/// The results of a step, besides the caller's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The method by which the caller was found.
    pub trust: Trust,
    /// The establisher frame (VA), by which exception handling identifies the frame. For native
    /// code on Unix, the canonical frame address.
    pub establisher_frame: u64,
    /// The exception or termination handler, unless rip is in a prologue or an epilogue.
    pub handler: Option<Handler>,
    /// The kind of address in the caller's rip: [`Position::Interrupted`] below a machine frame or
    /// a signal frame.
    pub caller: Position,
    /// The registers whose values in the caller the step read or computed.
    pub found: RegisterSet,
    /// The registers that have the same value in the caller as in the frame, because callees
    /// preserve them or call frame information says so.
    pub kept: RegisterSet,
    /// The frame's registers that the step computed its results from.
    pub needed: RegisterSet,
}

impl Step {
    /// Returns the caller's known registers, if `of_frame` are the frame's. All others hold values
    /// that the callee left in them. The result is empty if the step needed a register that is not
    /// known.
    ///
    /// In a stopped thread's first frame all registers are known. Below a call no volatile register
    /// is known, unless call frame information says where it is saved, as that of a signal's
    /// trampoline does.
    #[inline]
    pub const fn known(&self, of_frame: RegisterSet) -> RegisterSet {
        if of_frame.contains_all(self.needed) {
            self.found.union(self.kept.intersection(of_frame))
        } else {
            RegisterSet::EMPTY
        }
    }

    /// Returns the step through code with UNWIND_INFO restricted to the registers that the
    /// convention preserves. A volatile register that was pushed to allocate 8 bytes is not the
    /// caller's.
    #[inline]
    const fn within(self, preserved: RegisterSet) -> Self {
        let (found, kept) = (self.found.intersection(preserved), self.kept.intersection(preserved));
        Self { found, kept, ..self }
    }
}

/// An unwinder for the code of a map.
#[derive(Clone, Copy, Debug)]
pub struct Unwinder<'c, 'a> {
    map: &'c CodeMap<'a>,
    rules: Rules,
    guesses: Guesses,
    /// True if the code counts where it contradicts call frame information.
    reads_code: bool,
    convention: Convention,
    /// Mask of the registers that a step through code with UNWIND_INFO may report as known under
    /// this convention.
    preserved: RegisterSet,
}

impl<'c, 'a> Unwinder<'c, 'a> {
    /// Creates an unwinder with [`Rules::Precise`] and without guesses. The convention is that of
    /// System V if the map has native code or a ready-to-run image of Unix, else that of Windows.
    pub const fn new(map: &'c CodeMap<'a>) -> Self {
        let convention =
            if map.has_system_v() { Convention::SystemV } else { Convention::WindowsX64 };
        let preserved = preserved(convention);
        Self {
            map,
            rules: Rules::Precise,
            guesses: Guesses::None,
            reads_code: true,
            convention,
            preserved,
        }
    }

    /// Returns the unwinder with another convention for code that has UNWIND_INFO. The convention
    /// decides which registers are known after a step ([`Step::known`]), and whether generated code
    /// may have operation 11, which CoreCLR uses on Unix.
    #[must_use]
    pub const fn with_convention(self, convention: Convention) -> Self {
        Self { convention, preserved: preserved(convention), ..self }
    }

    /// Returns the convention for code that has UNWIND_INFO.
    pub const fn convention(&self) -> Convention {
        self.convention
    }

    /// Returns the unwinder with other rules.
    #[must_use]
    pub const fn with_rules(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    /// Returns the unwinder with the given treatment of native code without call frame information.
    #[must_use]
    pub const fn with_guesses(self, guesses: Guesses) -> Self {
        Self { guesses, ..self }
    }

    /// Returns the unwinder that follows call frame information even where the code contradicts it: for those who
    /// judge the information, and for comparisons with unwinders that read no code.
    #[must_use]
    pub const fn by_data_alone(self) -> Self {
        Self { reads_code: false, ..self }
    }

    /// Returns the code map.
    pub const fn code_map(&self) -> &'c CodeMap<'a> {
        self.map
    }

    /// Returns the rules.
    pub const fn rules(&self) -> Rules {
        self.rules
    }

    /// Moves `registers` from a frame to its caller. The rule of a step by unwind data is kept in the
    /// region, if one of its slots is free, and makes the next step from there faster.
    ///
    /// Of the volatile registers, only those change that an epilogue pops or call frame information
    /// names. [`Step::known`] returns the registers that are the caller's: an undefined one, for
    /// instance, keeps its old value.
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
        self.step_at(self.map.find(looked_up(registers.rip, position)), registers, position, memory)
    }

    /// Makes the same step as [`step`](Self::step) from code that was found before, at the address
    /// that is [`looked_up`].
    #[inline]
    #[doc(hidden)]
    pub fn step_at<M: Memory + ?Sized>(
        &self,
        found: Option<(&'c CodeRegion<'a>, u32)>,
        registers: &mut Registers,
        position: Position,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        if let Some((region, rva)) = found {
            if let Some(table) = region.cfi() {
                let place = dwarf::Place { map: self.map, region, table, rva };
                return self.native_step(place, registers, position, memory);
            }
            if !self.rules.is_windows() {
                if let Some(slot) = region.rules().get(code_place(rva, position))
                    && let Some(rule) = Rule::from_slot(slot)
                {
                    return Ok(rule.apply(registers, memory)?.within(self.preserved));
                }
                return self.step_and_keep((region, rva), registers, position, memory);
            }
            if position == Position::Interrupted {
                return self.windows_step((region, rva), registers, memory);
            }
        }
        self.any_step(registers, position, memory)
    }

    /// Makes a step from any kind of frame and code, as [`step`](Self::step) does.
    #[inline(never)]
    fn any_step<M: Memory + ?Sized>(
        &self,
        registers: &mut Registers,
        position: Position,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        if let Some(place) = self.native(registers.rip, position) {
            return self.native_step(place, registers, position, memory);
        }
        let step = win64::step(self.map, self.reading(), registers, position, memory)?;
        Ok(step.within(self.preserved))
    }

    /// Makes a step from native code on Unix: by compact unwind information if it has the function, else
    /// by call frame information.
    #[inline]
    fn native_step<M: Memory + ?Sized>(
        &self,
        place: dwarf::Place<'_, '_>,
        registers: &mut Registers,
        position: Position,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        #[cfg(feature = "macho")]
        if let Some(place) = place.compact() {
            return compact::step(place, self.guesses, registers, position, memory);
        }
        if !self.reads_code && position == Position::Interrupted {
            return dwarf::any_step(place, self.guesses, registers, position, memory);
        }
        dwarf::step(place, self.guesses, registers, position, memory)
    }

    /// Makes a step by the rules of Windows from interrupted code in a region without call frame
    /// information.
    #[inline(never)]
    fn windows_step<M: Memory + ?Sized>(
        &self,
        found: (&'c CodeRegion<'a>, u32),
        registers: &mut Registers,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        let (reading, position) = (self.reading(), Position::Interrupted);
        let step = win64::step_from(self.map, found, reading, registers, position, memory)?;
        Ok(step.within(self.preserved))
    }

    #[inline]
    const fn reading(&self) -> win64::Reading {
        win64::Reading { rules: self.rules, unix: matches!(self.convention, Convention::SystemV) }
    }

    /// Returns the place where a step begins, if that is code with call frame information.
    #[inline]
    fn native(&self, rip: u64, position: Position) -> Option<dwarf::Place<'c, 'a>> {
        let (region, rva) = self.map.find(looked_up(rip, position))?;
        let table = region.cfi()?;
        Some(dwarf::Place { map: self.map, region, table, rva })
    }

    /// Moves `registers` from code that no map has, and that a thread was interrupted in, to the caller, if
    /// the bytes of `code` at rip lead to a return without a branch: those decide, whatever unwind data would say.
    /// `None` if they do not.
    #[must_use]
    pub fn step_by_code<M: Memory + ?Sized>(
        code: &[u8],
        registers: &mut Registers,
        memory: &M,
    ) -> Option<Step> {
        dwarf::step_by_code(code, registers, memory)
    }

    /// Makes the same step as [`step`](Self::step) from interrupted code that belongs to `function`
    /// of `region`, whatever the region's table says: runtimes look functions up in tables of their
    /// own, and some count the bytes after a function's end as part of it (contract §2.6, §8.3).
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
        let place = win64::Place { map: Some(self.map), region, rva, function };
        let step = win64::step_in_function(place, self.reading(), registers, true, memory)?;
        Ok(step.within(self.preserved))
    }

    /// Makes the same step as [`step`](Self::step), faster if `cache` knows the address: with precise
    /// rules, and for native frames that made a call, with any.
    ///
    /// # Errors
    /// As [`step`](Self::step): the cache makes no difference.
    #[inline]
    pub fn step_cached<M: Memory + ?Sized>(
        &self,
        cache: &mut Cache,
        registers: &mut Registers,
        position: Position,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        let (version, rip) = (self.map.version(), registers.rip);
        let kinds = [self.map.has_cfi(), !self.rules.is_windows()];
        match cache.get(version, rip, position, kinds) {
            Some(CachedRule::Cfi(rule)) => rule.apply(registers, None, memory),
            Some(CachedRule::Win64(rule)) => {
                Ok(rule.apply(registers, memory)?.within(self.preserved))
            }
            None => self.step_and_learn(cache, registers, position, memory),
        }
    }

    /// Makes a step that the cache does not know, and adds its rule to the cache if it has one.
    #[inline(never)]
    fn step_and_learn<M: Memory + ?Sized>(
        &self,
        cache: &mut Cache,
        registers: &mut Registers,
        position: Position,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        let (version, rip) = (self.map.version(), registers.rip);
        if let Some((region, rva)) = self.map.find(looked_up(rip, position)) {
            if let Some(table) = region.cfi() {
                let place = dwarf::Place { map: self.map, region, table, rva };
                let rule = match position {
                    Position::Interrupted => None,
                    Position::ReturnAddress => native_rule(place),
                };
                if let Some(rule) = rule {
                    cache.insert_cfi(version, rip, rule);
                }
            } else if !self.rules.is_windows() {
                let rule = match region.rules().get(code_place(rva, position)) {
                    Some(slot) => Rule::from_slot(slot),
                    None => win64::compile(Some(self.map), region, rva, position),
                };
                if let Some(rule) = rule {
                    cache.insert_win64(version, rip, rule);
                    return Ok(rule.apply(registers, memory)?.within(self.preserved));
                }
            }
        }
        self.step(registers, position, memory)
    }

    /// Walks the frames of a thread stopped with these registers, the most recent one first.
    pub const fn walk<'m, M: Memory + ?Sized>(
        self,
        registers: &Registers,
        memory: &'m M,
    ) -> Walk<'c, 'a, 'm, M> {
        Walk::new(self, registers, memory)
    }
}

/// Returns the rule of the step from a return address in native code on Unix, if it is a simple one.
fn native_rule(place: dwarf::Place<'_, '_>) -> Option<cfi::Rule> {
    #[cfg(feature = "macho")]
    if let Some(place) = place.compact() {
        return compact::simple_rule(place);
    }
    dwarf::simple_rule(place)
}

/// Returns the address whose function counts: rip, or the byte before a return address. A call may be
/// a function's last instruction.
#[inline]
const fn looked_up(rip: u64, position: Position) -> u64 {
    match position {
        Position::Interrupted => rip,
        Position::ReturnAddress => rip.wrapping_sub(1),
    }
}

/// Returns the RVA of rip, if `rva` is that of the address that is [`looked_up`].
#[inline]
const fn rip_rva(rva: u32, position: Position) -> u32 {
    match position {
        Position::Interrupted => rva,
        Position::ReturnAddress => rva.wrapping_add(1),
    }
}

/// Returns the key of the rule for the address at `rva` that is [`looked_up`].
#[inline]
const fn code_place(rva: u32, position: Position) -> CodePlace {
    match position {
        Position::Interrupted => CodePlace::interrupted(rva),
        Position::ReturnAddress => CodePlace::called(rva),
    }
}

/// Returns the register mask for [`Unwinder::preserved`]: all registers on Windows, where machine
/// frames and code known by its bytes preserve volatile registers too, and the nonvolatile ones on
/// System V.
const fn preserved(convention: Convention) -> RegisterSet {
    match convention {
        Convention::WindowsX64 => RegisterSet::ALL,
        Convention::SystemV => convention.nonvolatile(),
    }
}
