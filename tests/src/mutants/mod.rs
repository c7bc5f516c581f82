//! A second unwinder of Windows x64 code, and mistakes that can be planted in it.
//!
//! The unwinder shares no decoding of unwind data or code with the walker, so that each can be
//! compared with the other. It follows the walker's precise rules, and is written for readability,
//! not for speed. A test that claims to find wrong unwinds must find each planted [`Bug`].

mod bug;
mod data;
mod epilogue;
mod state;
mod undone;
mod version3;

pub use bug::Bug;
use data::{
    ALLOC_LARGE, ALLOC_SMALL, CHAIN_LIMIT, Code, EPILOG, Function, PUSH_MACHFRAME, PUSH_NONVOL,
    SAVE_NONVOL, SAVE_NONVOL_FAR, SAVE_XMM128, SAVE_XMM128_FAR, SET_FPREG, SET_FPREG_LARGE,
};
use state::State;

use clr_unwind::{CodeMap, CodeRegion, Gpr, Memory, Position, Registers, Unreadable};

/// A reason why a step fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// rip is in no known code.
    UnknownCode,
    /// The caller's code has no RUNTIME_FUNCTION.
    CallerWithoutEntry,
    /// The stack could not be read.
    Stack(Unreadable),
    /// Unwind data lies outside the image.
    UnwindDataUnmapped,
    /// Unwind data of an unknown version, with an unknown operation, without the frame register
    /// that it sets, or in an endless chain.
    BadUnwindData,
}

impl From<Unreadable> for Error {
    fn from(error: Unreadable) -> Self {
        Self::Stack(error)
    }
}

/// libgcc's `___chkstk_ms`, which has no unwind data, but pushes rcx and rax.
const CHKSTK_MS: [u8; 50] = [
    0x51, 0x50, 0x48, 0x3D, 0x00, 0x10, 0x00, 0x00, 0x48, 0x8D, 0x4C, 0x24, 0x18, 0x72, 0x19, 0x48,
    0x81, 0xE9, 0x00, 0x10, 0x00, 0x00, 0x48, 0x83, 0x09, 0x00, 0x48, 0x2D, 0x00, 0x10, 0x00, 0x00,
    0x48, 0x3D, 0x00, 0x10, 0x00, 0x00, 0x77, 0xE7, 0x48, 0x29, 0xC1, 0x48, 0x83, 0x09, 0x00, 0x58,
    0x59, 0xC3,
];

/// Offsets of the instructions in [`CHKSTK_MS`].
const CHKSTK_MS_STARTS: [u32; 15] = [0, 1, 2, 8, 13, 15, 22, 26, 32, 38, 40, 43, 47, 48, 49];

/// Returns an instruction's offset in a `___chkstk_ms`.
fn offset_in_chkstk_ms(region: &CodeRegion<'_>, rva: u32) -> Option<u32> {
    CHKSTK_MS_STARTS.into_iter().find(|offset| {
        let code = rva.checked_sub(*offset).and_then(|start| region.bytes_from(start));
        code.is_some_and(|code| code.starts_with(&CHKSTK_MS))
    })
}

/// An unwinder for the code of a map.
#[derive(Clone, Copy, Debug)]
pub struct Unwinder<'c, 'a> {
    code: &'c CodeMap<'a>,
    /// True if the code is of Unix, where SET_FPREG_LARGE exists.
    is_unix: bool,
    /// True for the epilogues that Windows recognises, and no others.
    like_windows: bool,
    bug: Option<Bug>,
}

impl<'c, 'a> Unwinder<'c, 'a> {
    /// Creates an unwinder without a bug.
    #[must_use]
    pub const fn new(code: &'c CodeMap<'a>) -> Self {
        Self { code, is_unix: false, like_windows: false, bug: None }
    }

    /// Makes the code that of Unix.
    #[must_use]
    pub const fn on_unix(self) -> Self {
        Self { is_unix: true, ..self }
    }

    /// Recognises epilogues as Windows does.
    #[must_use]
    pub const fn like_windows(self) -> Self {
        Self { like_windows: true, ..self }
    }

    /// Plants this bug, and no other.
    #[must_use]
    pub const fn with_bug(self, bug: Bug) -> Self {
        Self { bug: Some(bug), ..self }
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// Unwinds `registers` from a frame to its caller, and returns the position of the caller's
    /// rip.
    ///
    /// # Errors
    /// [`Error`]; `registers` are then unchanged.
    pub fn step<M: Memory + ?Sized>(
        &self,
        registers: &mut Registers,
        position: Position,
        memory: &M,
    ) -> Result<Position, Error> {
        let mut state = State { registers: *registers, memory };
        let caller = self.unwind(&mut state, position)?;
        *registers = state.registers;
        Ok(caller)
    }

    /// Returns at most `limit` frames of a stopped thread, the most recent one first. They end
    /// where a step fails or does not increase rsp.
    #[must_use]
    pub fn walk<M: Memory + ?Sized>(
        &self,
        registers: &Registers,
        memory: &M,
        limit: usize,
    ) -> Vec<(Registers, Position)> {
        let mut frames = Vec::new();
        let mut frame = (*registers, Position::Interrupted);
        while frames.len() < limit {
            frames.push(frame);
            let (mut caller, position) = frame;
            match self.step(&mut caller, position, memory) {
                // An interrupted thread may have been on another stack.
                Ok(position)
                    if caller.rsp() > frame.0.rsp() || position == Position::Interrupted =>
                {
                    frame = (caller, position);
                }
                _ => break,
            }
        }
        frames
    }

    fn unwind<M: Memory + ?Sized>(
        &self,
        state: &mut State<'_, M>,
        position: Position,
    ) -> Result<Position, Error> {
        let rip = state.registers.rip;
        let is_caller = position == Position::ReturnAddress;
        // The call before a return address may be the last instruction of its function.
        let back = u32::from(is_caller && !self.has(Bug::ReturnAddressNotDecremented));
        let place = self.code.find(rip.wrapping_sub(back.into()));
        let (region, looked_up) = place.ok_or(Error::UnknownCode)?;
        let Some(entry) = region.functions().find(looked_up) else {
            return match (is_caller, region.is_executable(looked_up)) {
                (true, _) => Err(Error::CallerWithoutEntry),
                (false, false) => Err(Error::UnknownCode),
                (false, true) => unwind_leaf(region, looked_up, state),
            };
        };
        let function = Function::of_entry(region, entry)?;
        let rva = looked_up.wrapping_add(back);
        if !is_caller && let Some(caller) = self.finish_epilogue(&function, rva, state)? {
            return Ok(caller);
        }
        self.undo_prologue(function, rva, state)
    }

    /// Returns the parent in the chain.
    fn parent<'r, 'f>(&self, child: &Function<'r, 'f>) -> Result<Option<Function<'r, 'f>>, Error> {
        if self.has(Bug::ChainIgnored) { Ok(None) } else { child.parent() }
    }

    /// Returns true if the instruction that a code describes has run.
    fn has_run(&self, code: Code, offset: u32) -> bool {
        let end = u32::from(code.offset);
        if self.has(Bug::CodeOffsetOffByOne) { end < offset } else { end <= offset }
    }

    /// Returns the base of saves: the frame register less its offset if the prologue has set it,
    /// else rsp.
    fn frame_base(
        &self,
        function: &Function<'_, '_>,
        offset: u32,
        registers: &Registers,
    ) -> Result<u64, Error> {
        if function.frame_register == 0 {
            return Ok(registers.rsp());
        }
        let in_prologue = function.is_in_prologue(offset);
        let mut frame_offset = u64::from(function.frame_offset);
        // In a body the code matters only for its operand, whose presence an offset of 240 marks.
        let may_be_large = in_prologue || frame_offset == 240;
        let setting = function.codes()?.into_iter().find(|code| match code.op {
            SET_FPREG => in_prologue,
            SET_FPREG_LARGE => may_be_large && self.is_unix,
            _ => false,
        });
        if let Some(code) = setting {
            if in_prologue && !self.has_run(code, offset) {
                return Ok(registers.rsp());
            }
            frame_offset = function.frame_offset_of(code)?;
        }
        Ok(registers.get(function.frame_register()).wrapping_sub(frame_offset))
    }

    /// Returns true if a function of the chain is of version 3.
    fn has_version_3(&self, mut function: Function<'_, '_>) -> Result<bool, Error> {
        for _ in 0..=CHAIN_LIMIT {
            if function.version == 3 {
                return Ok(true);
            }
            match self.parent(&function)? {
                Some(parent) => function = parent,
                None => return Ok(false),
            }
        }
        Err(Error::BadUnwindData)
    }

    /// Undoes the executed part of the prologue, by the codes of the function and of its parents.
    fn undo_prologue<M: Memory + ?Sized>(
        &self,
        mut function: Function<'_, '_>,
        rva: u32,
        state: &mut State<'_, M>,
    ) -> Result<Position, Error> {
        if self.has_version_3(function)? {
            return self.undo_mixed_chain(function, rva, None, state);
        }
        // A chunk may lie before its parent: the offset then wraps, and all codes have run.
        let mut offset = function.offset_of(rva);
        let mut base = self.frame_base(&function, offset, &state.registers)?;
        let mut base_is_final = function.frame_register != 0;
        let mut machine_frame = None;
        let last = if self.is_unix { SET_FPREG_LARGE } else { PUSH_MACHFRAME };
        for _ in 0..=CHAIN_LIMIT {
            for code in function.codes()? {
                if code.op > last {
                    return Err(Error::BadUnwindData);
                }
                if self.has(Bug::FrameBaseRecomputed) {
                    base = self.frame_base(&function, offset, &state.registers)?;
                }
                if self.has_run(code, offset) {
                    machine_frame = self.undo(&function, code, base, state)?.or(machine_frame);
                }
            }
            let Some(parent) = self.parent(&function)? else {
                return machine_frame.map_or_else(|| state.pop_rip(), Ok);
            };
            function = parent;
            if !self.has(Bug::ChainWithChildOffset) {
                offset = function.offset_of(rva);
            }
            // The first frame register in the chain stays the base of all further saves.
            if !base_is_final && function.frame_register != 0 {
                base = self.frame_base(&function, offset, &state.registers)?;
                base_is_final = true;
            }
        }
        Err(Error::BadUnwindData)
    }

    /// Undoes one code. If that was a machine frame, returns the position of the caller's rip.
    fn undo<M: Memory + ?Sized>(
        &self,
        function: &Function<'_, '_>,
        code: Code,
        base: u64,
        state: &mut State<'_, M>,
    ) -> Result<Option<Position>, Error> {
        let register = Gpr::from_number(code.info);
        let far = || function.operand32(code).map(u64::from);
        let near = |scale| function.operand16(code).map(|operand| operand * scale);
        match code.op {
            PUSH_NONVOL => state.pop(register)?,
            ALLOC_SMALL | ALLOC_LARGE => {
                let is_far = code.op == ALLOC_LARGE && code.info != 0;
                let scale = if is_far && self.has(Bug::AllocLargeScaledTwice) { 8 } else { 1 };
                state.add_rsp(function.allocated(code)? * scale);
            }
            SET_FPREG | SET_FPREG_LARGE => {
                // SET_FPREG_LARGE is an extension of CoreCLR, which then uses register 0: rax.
                if function.frame_register == 0 && code.op == SET_FPREG {
                    return Err(Error::BadUnwindData);
                }
                let frame = state.registers.get(function.frame_register());
                state.set_rsp(frame.wrapping_sub(function.frame_offset_of(code)?));
            }
            SAVE_NONVOL => {
                let scale = if self.has(Bug::IntegerSavesScaledBy16) { 16 } else { 8 };
                state.load(register, base.wrapping_add(near(scale)?))?;
            }
            SAVE_NONVOL_FAR => state.load(register, base.wrapping_add(far()?))?,
            SAVE_XMM128 => state.load_xmm(code.info, base.wrapping_add(near(16)?))?,
            SAVE_XMM128_FAR => state.load_xmm(code.info, base.wrapping_add(far()?))?,
            PUSH_MACHFRAME => {
                // OpInfo indicates that an error code lies before the frame.
                state.add_rsp(if code.info == 0 { 0 } else { 8 });
                return state.pop_machine_frame().map(Some);
            }
            // EPILOG and the spare operation do not concern the prologue.
            _ => {}
        }
        Ok(None)
    }
}

/// Unwinds code without an entry, which keeps rsp where the call left it.
fn unwind_leaf<M: Memory + ?Sized>(
    region: &CodeRegion<'_>,
    rva: u32,
    state: &mut State<'_, M>,
) -> Result<Position, Error> {
    let pushed: &[Gpr] = match offset_in_chkstk_ms(region, rva) {
        None | Some(0 | 49) => &[],
        Some(1 | 48) => &[Gpr::Rcx],
        Some(_) => &[Gpr::Rax, Gpr::Rcx],
    };
    for register in pushed {
        state.pop(*register)?;
    }
    state.pop_rip()
}
