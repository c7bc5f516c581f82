//! Errors of data contracts.

use super::descriptor::ContractVersion;
use crate::jitted::JittedCodeError;
use clr_unwind::Unreadable;
use thiserror::Error;

/// An error in reading a runtime's contract descriptor, or in using its contracts.
///
/// A missing or unknown part means that the runtime's data cannot be read by contract; known code
/// headers ([`CodeHeaderLayout`](crate::jitted::CodeHeaderLayout)) may still serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ContractError {
    /// The descriptor could not be read.
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    /// The descriptor does not begin with the bytes `DNCCDAC\0`.
    #[error("there is no contract descriptor at {address:#x}: it begins with {magic:#018x}")]
    Magic {
        /// Address of the descriptor (VA).
        address: u64,
        /// The first 8 bytes of the descriptor.
        magic: u64,
    },
    /// The flags are not those of a process with 64-bit pointers.
    #[error(
        "the contract descriptor has flags {flags:#x}, which are not those of a 64-bit process"
    )]
    Flags {
        /// The flags.
        flags: u32,
    },
    /// The text or the pointer data is larger than any known descriptor's.
    #[error("the contract descriptor's text has {text} bytes, and it has {pointers} pointers")]
    Size {
        /// Size of the text in bytes.
        text: u32,
        /// Number of pointers.
        pointers: u32,
    },
    /// The text is not JSON of the compact format.
    #[error("the contract descriptor's text is not understood at byte {offset}")]
    Json {
        /// Offset of the first byte that is not understood.
        offset: u32,
    },
    /// A part of the text has another form than that of version 0 or 2, or there is a baseline.
    #[error("the contract descriptor's {part} has an unknown form")]
    Form {
        /// The part.
        part: &'static str,
    },
    /// The runtime does not have the contract.
    #[error("the runtime has no contract {name}")]
    MissingContract {
        /// Name of the contract.
        name: &'static str,
    },
    /// The contract has an unknown version.
    #[error("version {version} of contract {name} is unknown")]
    ContractVersion {
        /// Name of the contract.
        name: &'static str,
        /// The version of the contract.
        version: ContractVersion,
    },
    /// The descriptor does not name a field that the contract needs.
    #[error("the contract descriptor has no field {type_name}.{field}")]
    MissingField {
        /// Name of the type.
        type_name: &'static str,
        /// Name of the field.
        field: &'static str,
    },
    /// The descriptor names a field whose meaning is not known, and which other fields depend on.
    #[error("the contract descriptor has the field {type_name}.{field}, which is unknown")]
    UnknownField {
        /// Name of the type.
        type_name: &'static str,
        /// Name of the field.
        field: &'static str,
    },
    /// The descriptor does not have a global value that the contract needs, or it is out of range.
    #[error("the contract descriptor has no usable global {name}")]
    MissingGlobal {
        /// Name of the global.
        name: &'static str,
    },
}

/// An error in looking up the code at an address by the runtime's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CodeLookupError {
    /// A structure of the runtime could not be read.
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    /// A list, tree or table of the runtime is larger than can be: it was freed or overwritten.
    #[error("the runtime's data at {address:#x} has no end")]
    Endless {
        /// Address of the structure (VA).
        address: u64,
    },
    /// A range section is empty, has unknown flags, or does not cover its fragment.
    #[error("the range section at {address:#x} is faulty")]
    RangeSection {
        /// Address of the structure (VA).
        address: u64,
    },
    /// A code heap is empty, or its map does not begin at or before it.
    #[error("the code heap at {address:#x} is faulty")]
    CodeHeap {
        /// Address of the structure (VA).
        address: u64,
    },
    /// A nibble map has a value without a meaning, or leads to code after the address looked up.
    #[error("the nibble map has the faulty entry {unit:#010x} at {address:#x}")]
    NibbleMap {
        /// Address of the entry (VA).
        address: u64,
        /// The entry: 8 nibbles.
        unit: u32,
    },
    /// The method's RVAs do not count from the start of its range section.
    #[error("the RVAs of the method at {start:#x} count from {base:#x}, not from {range:#x}")]
    Base {
        /// Start of the method (VA).
        start: u64,
        /// The address from which its RVAs count (VA).
        base: u64,
        /// Start of the range section (VA).
        range: u64,
    },
    /// The method could not be read.
    #[error("{0}")]
    Method(#[from] JittedCodeError),
}
