//! Errors of steps.

use crate::cfi::CfiError;
use crate::compact::CompactError;
use crate::memory::Unreadable;
use crate::registers::Gpr;
use thiserror::Error;

/// An error in finding a frame's caller.
///
/// Exhaustive on purpose: a new kind of error must be given a word in the text format of scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UnwindError {
    /// rip is in no known code: beyond the stack's last known frame, or in unregistered code.
    #[error("{address:#x} is in no known code")]
    UnknownCode {
        /// rip (VA).
        address: u64,
    },
    /// The code made a call, so it is no leaf, but has no RUNTIME_FUNCTION.
    #[error("the code before return address {address:#x} made a call, but has no function entry")]
    CallerWithoutEntry {
        /// The return address (VA).
        address: u64,
    },
    /// The frame is the outermost one: call frame information leaves its return address undefined.
    #[error("the frame at {address:#x} is the outermost one")]
    EndOfStack {
        /// rip (VA).
        address: u64,
    },
    /// Native code has no call frame information.
    #[error("the native code at {address:#x} has no call frame information")]
    NoFrameInformation {
        /// rip (VA).
        address: u64,
    },
    /// Call frame information is faulty.
    #[error("{0}")]
    Cfi(#[from] CfiError),
    /// Compact unwind information is faulty.
    #[error("{0}")]
    Compact(#[from] CompactError),
    /// The code between an interrupted instruction and the next call or return does not fit the
    /// function's unwind information: neither can be trusted.
    #[error("the code at {address:#x} contradicts its unwind information")]
    CodeContradictsTable {
        /// rip (VA).
        address: u64,
    },
    /// The stack could not be read.
    #[error("{0}")]
    Stack(#[from] Unreadable),
    /// Code bytes that would decide whether rip is in an epilogue are not in the image (only with
    /// the rules of Windows).
    #[error("the code at RVA {rva:#x} is not in the image")]
    CodeUnmapped {
        /// RVA of the first missing byte.
        rva: u32,
    },
    /// Unwind data lies outside the image's sections, or is cut off by a section's end.
    #[error("the unwind data at RVA {rva:#x} is not in the image")]
    UnwindDataUnmapped {
        /// RVA of the missing structure.
        rva: u32,
    },
    /// The version of the UNWIND_INFO is none of 1 to 3. Version 3 is unsupported where it is the parent
    /// of one that has the EPILOG codes of version 2.
    #[error("UNWIND_INFO version {version} at RVA {rva:#x} is unsupported")]
    UnsupportedVersion {
        /// Version of the UNWIND_INFO.
        version: u8,
        /// RVA of the UNWIND_INFO.
        rva: u32,
    },
    /// An unwind code or a winding operation has an operation that does not exist.
    #[error("the unwind code at RVA {rva:#x} has the unknown operation {operation}")]
    InvalidOperation {
        /// UnwindOp; in version 3 the first byte of the operation.
        operation: u8,
        /// RVA of the code.
        rva: u32,
    },
    /// The payload of an UNWIND_INFO of version 3 ends before one of its parts does.
    #[error(
        "the payload of the UNWIND_INFO ends at RVA {rva:#x} or after, within one of its parts"
    )]
    PayloadCutOff {
        /// RVA of the part.
        rva: u32,
    },
    /// An epilogue descriptor of version 3 that cannot be: one that inherits from none, lies outside
    /// the fragment or in the wrong order, or returns to a parent of a fragment that has none.
    #[error("the epilogue described at RVA {rva:#x} cannot be")]
    InvalidEpilogue {
        /// RVA of the descriptor, or of the epilogue's first operation.
        rva: u32,
    },
    /// WOD_PUSH_CANONICAL_FRAME of a type other than machine frames.
    #[error("the operation at RVA {rva:#x} pushes a frame of the unknown type {frame_type}")]
    UnknownFrameType {
        /// Type of the frame.
        frame_type: u8,
        /// RVA of the operation.
        rva: u32,
    },
    /// UWOP_SET_FPREG in an UNWIND_INFO that names no frame register.
    #[error("the unwind code at RVA {rva:#x} sets a frame register, but the header names none")]
    NoFrameRegister {
        /// RVA of the code.
        rva: u32,
    },
    /// A chain of UNWIND_INFO, or of indirect entries, has more than 32 links.
    #[error("the chain of unwind data that leads to RVA {rva:#x} has more than 32 links")]
    ChainTooLong {
        /// RVA where the search stopped.
        rva: u32,
    },
    /// The caller is computed from a register whose value is not known in the frame: call frame
    /// information of a later frame marks it as undefined, or the caller of that frame was guessed.
    #[error("the caller of the frame at {address:#x} is computed from {}, whose value is lost", register.name())]
    LostRegister {
        /// The register.
        register: Gpr,
        /// rip (VA).
        address: u64,
    },
    /// The caller's stack pointer would not be above the frame's own.
    #[error("the caller's stack pointer {caller_rsp:#x} is not above {rsp:#x}")]
    NoProgress {
        /// rsp of the frame (VA).
        rsp: u64,
        /// rsp that its unwind data gives for the caller (VA).
        caller_rsp: u64,
    },
    /// The stack has more frames than the walk may take.
    #[error("the stack has more than {limit} frames")]
    TooManyFrames {
        /// The limit.
        limit: u32,
    },
}
