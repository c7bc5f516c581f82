//! Errors of reading jitted code.

use super::StubBlockKind;
use clr_unwind::Unreadable;
use thiserror::Error;

/// An error in reading a jitted method: bytes that are not what every runtime with a known layout
/// writes.
///
/// A check that fails means that the address is no method's start, that the runtime is another one,
/// or that the method was freed meanwhile. The method is then left out of the code map; nothing about
/// it is guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum JittedCodeError {
    /// Bytes that belong to the method could not be read.
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    /// The code is a block of stubs, which has no unwind data.
    #[error("the code at {start:#x} is {kind}")]
    StubBlock {
        /// Start of the block (VA).
        start: u64,
        /// Kind of the stubs.
        kind: StubBlockKind,
    },
    /// The word before the code is no pointer to a code header: it is not aligned to 8 bytes.
    #[error("the word before {start:#x} is {header:#x}, which is no code header")]
    HeaderAddress {
        /// Start of the code (VA).
        start: u64,
        /// The word.
        header: u64,
    },
    /// The code header names no method: its `MethodDesc` is 0, or not aligned to 8 bytes.
    #[error("the code header at {header:#x} has MethodDesc {method_desc:#x}")]
    MethodDesc {
        /// Address of the code header (VA).
        header: u64,
        /// The field.
        method_desc: u64,
    },
    /// The code header has no unwind infos, or more than a method can have.
    #[error("the code header at {header:#x} has {count} unwind infos")]
    UnwindInfoCount {
        /// Address of the code header (VA).
        header: u64,
        /// The field.
        count: u32,
    },
    /// The first function would begin before the first possible place of code in its code heap, or
    /// the heap would begin below address 0.
    #[error("the code at {start:#x} cannot begin at RVA {begin:#x}")]
    Base {
        /// Start of the code (VA).
        start: u64,
        /// RVA of the first function.
        begin: u32,
    },
    /// A function is empty, or does not begin where the one before ends.
    #[error("the function of the entry at {entry:#x} is empty or not adjacent to the one before")]
    FunctionRange {
        /// Address of the RUNTIME_FUNCTION (VA).
        entry: u64,
    },
    /// The code has another size than the caller or the limit says.
    #[error("the code at {start:#x} has {size:#x} bytes instead of {expected:#x}")]
    CodeSize {
        /// Start of the code (VA).
        start: u64,
        /// Size by the entries, in bytes.
        size: u32,
        /// Expected size, or the limit, in bytes.
        expected: u32,
    },
    /// The unwind data of a function lies before the end of the code, is not aligned to 4 bytes, is
    /// not adjacent to that of the function before, or goes beyond 4 GiB from the base.
    #[error("the entry at {entry:#x} has its unwind data at RVA {unwind_info:#x}")]
    UnwindDataPlace {
        /// Address of the RUNTIME_FUNCTION (VA).
        entry: u64,
        /// RVA of the unwind data.
        unwind_info: u32,
    },
    /// The UNWIND_INFO has a version other than 1, or flags other than `UNW_FLAG_EHANDLER` and
    /// `UNW_FLAG_UHANDLER` together.
    #[error("the UNWIND_INFO at {address:#x} begins with byte {byte:#04x} instead of 0x19")]
    UnwindInfoHeader {
        /// Address of the UNWIND_INFO (VA).
        address: u64,
        /// Version and flags.
        byte: u8,
    },
    /// The prologue is longer than the function.
    #[error("the UNWIND_INFO at {address:#x} has a prologue of {size} bytes")]
    PrologueSize {
        /// Address of the UNWIND_INFO (VA).
        address: u64,
        /// SizeOfProlog in bytes.
        size: u8,
    },
    /// The unwind codes are not those of a JIT compiler: an operation that it does not use, a code
    /// behind the prologue, codes that do not descend, the last code cut off, or a frame register
    /// that the codes do not set.
    #[error("the UNWIND_INFO at {address:#x} has unwind codes that no JIT compiler writes")]
    UnwindCodes {
        /// Address of the UNWIND_INFO (VA).
        address: u64,
    },
    /// The personality routine does not lie at the start of the code heap, before all code.
    #[error("the UNWIND_INFO at {address:#x} names a personality routine at RVA {rva:#x}")]
    PersonalityRoutine {
        /// Address of the UNWIND_INFO (VA).
        address: u64,
        /// RVA of the routine.
        rva: u32,
    },
}
