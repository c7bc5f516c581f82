//! Why a step could not be made.

use crate::cfi::CfiError;
use crate::memory::Unreadable;
use crate::registers::Gpr;
use thiserror::Error;

/// Why a frame's caller could not be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UnwindError {
    /// rip lies in no known code: beyond the stack's last known frame, or in unregistered code.
    #[error("{address:#x} is in no known code")]
    UnknownCode {
        /// rip (VA).
        address: u64,
    },
    /// The code made a call, so it is no leaf, but has no RUNTIME_FUNCTION.
    #[error("the code that returns to {address:#x} has no function entry, yet made a call")]
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
    /// The stack could not be read.
    #[error("{0}")]
    Stack(#[from] Unreadable),
    /// Code bytes that decide about an epilogue are not in the image (rules of Windows only).
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
    /// The UNWIND_INFO has a version other than 1 and 2.
    #[error("UNWIND_INFO version {version} at RVA {rva:#x} is unsupported")]
    UnsupportedVersion {
        /// Its version.
        version: u8,
        /// Its RVA.
        rva: u32,
    },
    /// An unwind code has an operation that does not exist.
    #[error("the unwind code at RVA {rva:#x} has the unknown operation {operation}")]
    InvalidOperation {
        /// UnwindOp.
        operation: u8,
        /// RVA of the code.
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
        /// RVA where it was given up.
        rva: u32,
    },
    /// The caller is found from a register whose value is not known in the frame: call frame
    /// information of a later frame calls it undefined, or that frame's caller was guessed.
    #[error("the caller of the frame at {address:#x} is found from {}, which is lost", register.name())]
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
        /// How many frames were allowed.
        limit: u32,
    },
}
