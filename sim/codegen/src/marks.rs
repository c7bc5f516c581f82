//! Facts about each instruction of a linked program, used to check walkers.

use super::program::FunctionIndex;
use core::ops::Range;

/// The purpose of an instruction for its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Part of the prologue.
    Prologue,
    /// Part of the body.
    Body,
    /// Part of an epilogue: releases the frame or leaves the function.
    Epilogue,
    /// Part of a helper that belongs to no function of the program.
    Helper,
}

/// A reason why the Windows rules unwind wrongly although a compiler generates such code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WindowsMistake {
    /// The jump back from gcc's cold part is taken for a tail call, since the part is a function of
    /// its own.
    ColdJump,
    /// `rex.w ret` is not recognized as a return, so that the epilogue is not recognized either.
    RexReturn,
    /// `vzeroupper` before the return is not recognized, so that the epilogue is not recognized
    /// either.
    Vzeroupper,
    /// `jmp rax` without REX.W is not recognized as a tail call, so that the epilogue is not
    /// recognized either.
    JumpWithoutRex,
    /// An epilogue of an UNWIND_INFO version 2 function is not listed by an EPILOG code.
    UnlistedEpilogue,
    /// `iretq` is not recognized as a return.
    InterruptReturn,
    /// `___chkstk_ms` pushes registers without unwind data.
    Chkstk,
    /// A call is the function's last instruction, and its return address is looked up without
    /// subtracting 1.
    CallAtEnd,
    /// `lea rsp, [r12 + disp]` is read without its SIB byte, so that the displacement is taken for
    /// an instruction.
    FrameInR12,
}

impl WindowsMistake {
    /// All mistakes.
    pub const ALL: [Self; 9] = [
        Self::ColdJump,
        Self::RexReturn,
        Self::Vzeroupper,
        Self::JumpWithoutRex,
        Self::UnlistedEpilogue,
        Self::InterruptReturn,
        Self::Chkstk,
        Self::CallAtEnd,
        Self::FrameInR12,
    ];
}

/// A mistake in call frame information, as found in hand-written code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CfiMistake {
    /// The location of the CFA is wrong, and so are all registers.
    Cfa,
    /// The locations of the caller's registers are wrong. A register that happens to hold the
    /// caller's value is still found.
    Registers,
}

/// Code of an ELF image that belongs to no function of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedHelper {
    /// Range of addresses (VA).
    pub range: Range<u64>,
    /// Name; an entry of the procedure linkage table is named as disassemblers name it.
    pub name: String,
}

/// An instruction of a linked program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedInstruction {
    /// Address (VA).
    pub address: u64,
    /// Length in bytes.
    pub len: u8,
    /// Function that contains the instruction, `None` for a helper.
    pub function: Option<FunctionIndex>,
    /// Purpose for the frame.
    pub role: Role,
    /// Mistake of the Windows rules when this instruction is the next to execute.
    pub mistake: Option<WindowsMistake>,
    /// Mistake of the image's call frame information when this instruction is the next to execute.
    pub cfi_mistake: Option<CfiMistake>,
    /// Address at which an exception thrown in this call is caught (VA).
    pub landing: Option<u64>,
    /// Handler of the interrupt that the instruction raises.
    pub handler: Option<FunctionIndex>,
    /// The instruction is a call on another stack.
    pub switches_stack: bool,
    /// Bytes of arguments that have been pushed for this call. The landing code releases them.
    pub arguments: u32,
}
