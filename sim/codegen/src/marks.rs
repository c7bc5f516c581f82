//! What is known of each instruction of a linked program.

use super::program::FunctionId;
use core::ops::Range;

/// What an instruction does for its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Belongs to the prologue.
    Prologue,
    /// Belongs to the body.
    Body,
    /// Gives back the frame or leaves.
    Epilogue,
    /// Belongs to a helper that is part of no function of the program.
    Helper,
}

/// Where Windows' rules unwind wrongly, though the code is as compilers make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WindowsMistake {
    /// gcc's cold part jumps back: taken for a tail call, since the part is a function of its own.
    ColdJump,
    /// `rex.w ret` is not seen as a return, so that the epilogue is not seen as one.
    RexReturn,
    /// An epilogue of version 2 that no EPILOG code lists.
    UnlistedEpilogue,
    /// `iretq` is not seen as a return.
    InterruptReturn,
    /// `___chkstk_ms` pushes registers without unwind data.
    Chkstk,
    /// A call is the function's last instruction, and its return address is looked up as it is.
    CallAtEnd,
    /// `lea rsp, [r12 + disp]` is read without its SIB byte, so that the displacement is taken for
    /// an instruction.
    FrameInR12,
}

impl WindowsMistake {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::ColdJump,
        Self::RexReturn,
        Self::UnlistedEpilogue,
        Self::InterruptReturn,
        Self::Chkstk,
        Self::CallAtEnd,
        Self::FrameInR12,
    ];
}

/// What call frame information gets wrong, in code that is as people have written it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CfiMistake {
    /// Where the CFA is, and so all else.
    Cfa,
    /// Where the caller's registers are. One that holds the caller's value by accident is found.
    Registers,
}

/// Code of an ELF image that belongs to no function of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedHelper {
    /// Its addresses (VA).
    pub range: Range<u64>,
    /// What it is called; an entry of the procedure linkage table as disassemblers name it.
    pub name: String,
}

/// An instruction of a linked program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedInstruction {
    /// Its address (VA).
    pub address: u64,
    /// Its length in bytes.
    pub len: u8,
    /// Its function, unless it belongs to a helper.
    pub function: Option<FunctionId>,
    /// What it does for its frame.
    pub role: Role,
    /// Why Windows' rules are wrong where this instruction comes next.
    pub mistake: Option<WindowsMistake>,
    /// What its image's call frame information gets wrong where this instruction comes next.
    pub cfi_mistake: Option<CfiMistake>,
    /// Where what is thrown in this call is caught (VA).
    pub landing: Option<u64>,
    /// The handler of the interrupt that it makes.
    pub handler: Option<FunctionId>,
    /// It is a call on another stack.
    pub switches_stack: bool,
    /// Bytes of arguments that have been pushed for this call: who lands gives them back.
    pub arguments: u32,
}
