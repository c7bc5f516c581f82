//! A second unwinder of Windows x64 code, and mistakes that can be planted in it.
//!
//! It shares no reading of unwind data or code with the walker, so that one can be held against the
//! other. It follows the walker's precise rules, and is written to be read, not to be fast. A test
//! that claims to find wrong unwinds must find each planted [`Bug`].

mod epilogue;

use clr_walker::code_map::{CodeMap, CodeRegion};
use clr_walker::image::RuntimeFunction;
use clr_walker::memory::{Memory, Unreadable};
use clr_walker::registers::{Gpr, Registers};
use clr_walker::unwind::Position;
use std::fmt;

/// A mistake that real unwinders have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bug {
    /// The instruction that ends exactly at rip is taken for one that has not run.
    CodeOffsetOffByOne,
    /// SAVE_NONVOL is scaled like SAVE_XMM128.
    IntegerSavesScaledBy16,
    /// The parents of a chain are forgotten.
    ChainIgnored,
    /// The offset into the function is not computed anew for the parent.
    ChainWithChildOffset,
    /// `add rsp` and `lea rsp` of an epilogue cannot move down.
    ZeroExtendedDisplacement,
    /// The target of a relative jump is not looked at.
    JumpInsideTakenForEpilogue,
    /// `rex.w jmp r/m` is taken for a jump inside the function.
    RexJumpNotSeen,
    /// The pops of an epilogue go to each other's registers.
    PopOrderSwapped,
    /// ALLOC_LARGE is scaled in its 32-bit form too.
    AllocLargeScaledTwice,
    /// Version 2: EPILOG codes are counted from the wrong side.
    EpilogSlotsAsOffsets,
    /// Saves are looked for from where rsp or the frame register now points.
    FrameBaseRecomputed,
    /// A call that is a function's last instruction belongs to the next function.
    ReturnAddressNotDecremented,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::CodeOffsetOffByOne,
        Self::IntegerSavesScaledBy16,
        Self::ChainIgnored,
        Self::ChainWithChildOffset,
        Self::ZeroExtendedDisplacement,
        Self::JumpInsideTakenForEpilogue,
        Self::RexJumpNotSeen,
        Self::PopOrderSwapped,
        Self::AllocLargeScaledTwice,
        Self::EpilogSlotsAsOffsets,
        Self::FrameBaseRecomputed,
        Self::ReturnAddressNotDecremented,
    ];
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CodeOffsetOffByOne => {
                "An unwind code is applied only beyond its CodeOffset, not at it."
            }
            Self::IntegerSavesScaledBy16 => "The operand of SAVE_NONVOL is multiplied by 16.",
            Self::ChainIgnored => "Chained unwind info is not followed.",
            Self::ChainWithChildOffset => {
                "A parent's unwind codes are compared with the offset from the child's begin."
            }
            Self::ZeroExtendedDisplacement => {
                "Displacements of add and lea in an epilogue are zero-extended."
            }
            Self::JumpInsideTakenForEpilogue => "Any relative jump ends an epilogue.",
            Self::RexJumpNotSeen => "An indirect jump with REX.W ends no epilogue.",
            Self::PopOrderSwapped => "The registers of an epilogue's pops are taken in reverse.",
            Self::AllocLargeScaledTwice => "The 32-bit operand of ALLOC_LARGE is multiplied by 8.",
            Self::EpilogSlotsAsOffsets => {
                "EPILOG codes are taken as distances from the function's begin."
            }
            Self::FrameBaseRecomputed => {
                "The frame base is computed anew after each undone unwind code."
            }
            Self::ReturnAddressNotDecremented => {
                "Callers are looked up at their return address itself."
            }
        })
    }
}

/// Why a step could not be made.
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

/// How many parents a chain, and how many links an indirect entry, may have.
const CHAIN_LIMIT: usize = 32;

const PUSH_NONVOL: u8 = 0;
const ALLOC_LARGE: u8 = 1;
const ALLOC_SMALL: u8 = 2;
const SET_FPREG: u8 = 3;
const SAVE_NONVOL: u8 = 4;
const SAVE_NONVOL_FAR: u8 = 5;
const EPILOG: u8 = 6;
const SPARE: u8 = 7;
const SAVE_XMM128: u8 = 8;
const SAVE_XMM128_FAR: u8 = 9;
const PUSH_MACHFRAME: u8 = 10;
const SET_FPREG_LARGE: u8 = 11;

/// An unwind code.
#[derive(Clone, Copy)]
struct Code {
    slot: usize,
    offset: u8,
    op: u8,
    info: u8,
}

impl Code {
    fn slot_count(self) -> usize {
        match (self.op, self.info) {
            (ALLOC_LARGE, 0) | (SAVE_NONVOL | EPILOG | SAVE_XMM128, _) => 2,
            (ALLOC_LARGE | SAVE_NONVOL_FAR | SPARE | SAVE_XMM128_FAR | SET_FPREG_LARGE, _) => 3,
            _ => 1,
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, Error> {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or(Error::UnwindDataUnmapped)?;
    Ok(u32::from_le_bytes(*bytes))
}

fn runtime_function(bytes: &[u8], at: usize) -> Result<RuntimeFunction, Error> {
    Ok(RuntimeFunction {
        begin: u32_at(bytes, at)?,
        end: u32_at(bytes, at + 4)?,
        unwind_info: u32_at(bytes, at + 8)?,
    })
}

/// A RUNTIME_FUNCTION with its UNWIND_INFO.
#[derive(Clone, Copy)]
struct Function<'r, 'a> {
    region: &'r CodeRegion<'a>,
    range: RuntimeFunction,
    version: u8,
    is_chained: bool,
    prologue_size: u8,
    slot_count: usize,
    /// 0 for none.
    frame_register: u8,
    /// In bytes: the header counts 16.
    frame_offset: u8,
    /// From the first slot to the end of the section.
    slots: &'a [u8],
}

impl<'r, 'a> Function<'r, 'a> {
    /// The function of an entry of the region's table.
    fn of_entry(region: &'r CodeRegion<'a>, entry: RuntimeFunction) -> Result<Self, Error> {
        let mut range = entry;
        for _ in 0..=CHAIN_LIMIT {
            if range.unwind_info & 1 == 0 {
                return Self::new(region, range);
            }
            let other = region.bytes_from(range.unwind_info & !1);
            range = runtime_function(other.ok_or(Error::UnwindDataUnmapped)?, 0)?;
        }
        Err(Error::BadUnwindData)
    }

    fn new(region: &'r CodeRegion<'a>, range: RuntimeFunction) -> Result<Self, Error> {
        let bytes = region.bytes_from(range.unwind_info).ok_or(Error::UnwindDataUnmapped)?;
        let [version_and_flags, prologue_size, count, frame, slots @ ..] = bytes else {
            return Err(Error::UnwindDataUnmapped);
        };
        let version = version_and_flags & 7;
        if !(1..=2).contains(&version) {
            return Err(Error::BadUnwindData);
        }
        Ok(Self {
            region,
            range,
            version,
            is_chained: version_and_flags >> 3 & 4 != 0,
            prologue_size: *prologue_size,
            slot_count: usize::from(*count),
            frame_register: frame & 15,
            frame_offset: frame & 0xF0,
            slots,
        })
    }

    fn offset_of(&self, rva: u32) -> u32 {
        rva.wrapping_sub(self.range.begin)
    }

    fn frame_register(&self) -> Gpr {
        Gpr::from_number(self.frame_register)
    }

    /// Whether rip is in a prologue whose codes say what has run: a chunk has no prologue.
    fn is_in_prologue(&self, offset: u32) -> bool {
        !self.is_chained && offset < u32::from(self.prologue_size)
    }

    /// The code that begins at a slot. Operands may go beyond the count of slots, as for Windows.
    fn code(&self, slot: usize) -> Result<Code, Error> {
        match self.slots.get(2 * slot..) {
            Some([offset, op, ..]) => {
                Ok(Code { slot, offset: *offset, op: op & 15, info: op >> 4 })
            }
            _ => Err(Error::UnwindDataUnmapped),
        }
    }

    /// All codes, the last prologue operation first.
    fn codes(&self) -> Result<Vec<Code>, Error> {
        let mut codes = Vec::new();
        let mut slot = 0;
        while slot < self.slot_count {
            let code = self.code(slot)?;
            codes.push(code);
            slot += code.slot_count();
        }
        Ok(codes)
    }

    fn operand16(&self, code: Code) -> Result<u64, Error> {
        let operand = self.code(code.slot + 1)?;
        Ok(u64::from(operand.offset) | u64::from(operand.op) << 8 | u64::from(operand.info) << 12)
    }

    fn operand32(&self, code: Code) -> Result<u32, Error> {
        u32_at(self.slots, 2 * (code.slot + 1))
    }

    /// The frame register's distance from rsp where `code` sets it, in bytes.
    fn frame_offset_of(&self, code: Code) -> Result<u64, Error> {
        Ok(if code.op == SET_FPREG_LARGE {
            self.operand32(code)?.wrapping_mul(16).into()
        } else {
            self.frame_offset.into()
        })
    }

    /// The function of the entry behind the codes, if the info is chained.
    fn parent(&self) -> Result<Option<Self>, Error> {
        if !self.is_chained {
            return Ok(None);
        }
        let even_count = self.slot_count + self.slot_count % 2;
        let range = runtime_function(self.slots, 2 * even_count)?;
        Self::new(self.region, range).map(Some)
    }

    /// Whether it was entered over a machine frame, so that `iretq` is its return.
    fn is_over_machine_frame(&self) -> bool {
        let mut function = Self { ..*self };
        for _ in 0..=CHAIN_LIMIT {
            let Ok(codes) = function.codes() else { return false };
            if codes.iter().any(|code| code.op == PUSH_MACHFRAME) {
                return true;
            }
            let Ok(Some(parent)) = function.parent() else { return false };
            function = parent;
        }
        false
    }
}

/// The registers of a frame, on their way to those of its caller.
struct State<'m, M: ?Sized> {
    registers: Registers,
    memory: &'m M,
}

impl<M: Memory + ?Sized> State<'_, M> {
    fn rsp(&self) -> u64 {
        self.registers.rsp()
    }

    fn set_rsp(&mut self, rsp: u64) {
        self.registers.set(Gpr::Rsp, rsp);
    }

    fn add_rsp(&mut self, bytes: u64) {
        self.set_rsp(self.rsp().wrapping_add(bytes));
    }

    fn load(&mut self, register: Gpr, address: u64) -> Result<(), Error> {
        self.registers.set(register, self.memory.read_u64(address)?);
        Ok(())
    }

    /// xmm0 to xmm5 are volatile, but must be readable.
    fn load_xmm(&mut self, number: u8, address: u64) -> Result<(), Error> {
        let value = self.memory.read_u128(address)?;
        if let Some(n) = usize::from(number).checked_sub(6) {
            self.registers.xmm[n] = value;
        }
        Ok(())
    }

    /// As Windows has it, 8 is added to a popped rsp too.
    fn pop(&mut self, register: Gpr) -> Result<(), Error> {
        self.load(register, self.rsp())?;
        self.add_rsp(8);
        Ok(())
    }

    fn pop_rip(&mut self) -> Result<Position, Error> {
        self.registers.rip = self.memory.read_u64(self.rsp())?;
        self.add_rsp(8);
        Ok(Position::ReturnAddress)
    }

    /// `iretq`: rip, cs, rflags, rsp, ss.
    fn pop_machine_frame(&mut self) -> Result<Position, Error> {
        let rsp = self.rsp();
        self.registers.rip = self.memory.read_u64(rsp)?;
        self.load(Gpr::Rsp, rsp.wrapping_add(24))?;
        Ok(Position::Interrupted)
    }
}

/// libgcc's `___chkstk_ms`, which has no unwind data, but pushes rcx and rax.
const CHKSTK_MS: [u8; 50] = [
    0x51, 0x50, 0x48, 0x3D, 0x00, 0x10, 0x00, 0x00, 0x48, 0x8D, 0x4C, 0x24, 0x18, 0x72, 0x19, 0x48,
    0x81, 0xE9, 0x00, 0x10, 0x00, 0x00, 0x48, 0x83, 0x09, 0x00, 0x48, 0x2D, 0x00, 0x10, 0x00, 0x00,
    0x48, 0x3D, 0x00, 0x10, 0x00, 0x00, 0x77, 0xE7, 0x48, 0x29, 0xC1, 0x48, 0x83, 0x09, 0x00, 0x58,
    0x59, 0xC3,
];

/// Where its instructions begin.
const CHKSTK_MS_STARTS: [u32; 15] = [0, 1, 2, 8, 13, 15, 22, 26, 32, 38, 40, 43, 47, 48, 49];

/// How far into a `___chkstk_ms` an instruction is.
fn offset_in_chkstk_ms(region: &CodeRegion<'_>, rva: u32) -> Option<u32> {
    CHKSTK_MS_STARTS.into_iter().find(|offset| {
        let code = rva.checked_sub(*offset).and_then(|start| region.bytes_from(start));
        code.is_some_and(|code| code.starts_with(&CHKSTK_MS))
    })
}

/// Unwinds the code of a map.
#[derive(Clone, Copy, Debug)]
pub struct Unwinder<'c, 'a> {
    code: &'c CodeMap<'a>,
    bug: Option<Bug>,
}

impl<'c, 'a> Unwinder<'c, 'a> {
    /// An unwinder without a bug.
    #[must_use]
    pub const fn new(code: &'c CodeMap<'a>) -> Self {
        Self { code, bug: None }
    }

    /// The same with this bug, and no other.
    #[must_use]
    pub const fn with_bug(self, bug: Bug) -> Self {
        Self { bug: Some(bug), ..self }
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// Takes `registers` from a frame to its caller, and gives what the caller's rip is.
    ///
    /// # Errors
    /// [`Error`]; `registers` are then as they were.
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

    /// The frames of a stopped thread, the most recent one first, and at most `limit`. They end
    /// where a step fails or does not move up the stack.
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

    /// The parent in the chain.
    fn parent<'r, 'f>(&self, child: &Function<'r, 'f>) -> Result<Option<Function<'r, 'f>>, Error> {
        if self.has(Bug::ChainIgnored) { Ok(None) } else { child.parent() }
    }

    /// Whether the instruction that a code describes has run.
    fn has_run(&self, code: Code, offset: u32) -> bool {
        let end = u32::from(code.offset);
        if self.has(Bug::CodeOffsetOffByOne) { end < offset } else { end <= offset }
    }

    /// What saves are counted from: the frame register less its offset if it is set, else rsp.
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
        // In a body the code is only of interest for its operand, which 240 stands for.
        let may_be_large = in_prologue || frame_offset == 240;
        let setting = function.codes()?.into_iter().find(|code| match code.op {
            SET_FPREG => in_prologue,
            SET_FPREG_LARGE => may_be_large,
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

    /// Undoes what the prologue had done, by the codes of the function and of its parents.
    fn undo_prologue<M: Memory + ?Sized>(
        &self,
        mut function: Function<'_, '_>,
        rva: u32,
        state: &mut State<'_, M>,
    ) -> Result<Position, Error> {
        // A chunk may lie before its parent: the offset then wraps, and all codes have run.
        let mut offset = function.offset_of(rva);
        let mut base = self.frame_base(&function, offset, &state.registers)?;
        let mut base_is_final = function.frame_register != 0;
        let mut machine_frame = None;
        for _ in 0..=CHAIN_LIMIT {
            for code in function.codes()? {
                if code.op > SET_FPREG_LARGE {
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

    /// Undoes one code; if that was a machine frame, gives what the caller's rip is.
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
            ALLOC_SMALL => state.add_rsp(u64::from(code.info) * 8 + 8),
            ALLOC_LARGE if code.info == 0 => state.add_rsp(near(8)?),
            ALLOC_LARGE => {
                let scale = if self.has(Bug::AllocLargeScaledTwice) { 8 } else { 1 };
                state.add_rsp(far()? * scale);
            }
            SET_FPREG | SET_FPREG_LARGE => {
                // SET_FPREG_LARGE is CoreCLR's own, which then takes register 0: rax.
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
                // OpInfo says that an error code lies before the frame.
                state.add_rsp(if code.info == 0 { 0 } else { 8 });
                return state.pop_machine_frame().map(Some);
            }
            // EPILOG and the spare operation say nothing about the prologue.
            _ => {}
        }
        Ok(None)
    }
}

/// Code without an entry keeps rsp where the call left it.
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
