//! Why the runtime's data cannot be read.

use clr_unwind::Unreadable;
use clr_walker::jitted::contracts::{CodeLookupError, ContractError};
use thiserror::Error;

/// An error in reading the runtime of a stopped process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InspectError {
    /// No module of the process is a .NET runtime.
    #[error("no module is a .NET runtime: none exports DotNetRuntimeContractDescriptor")]
    NoRuntime,
    /// The runtime has no data contracts, and its build is none whose layout is known.
    #[error(
        "this build of the runtime has no data contracts (before .NET 9), and its layout is not known: \
         that of 8.0.34 for Linux x64 is"
    )]
    UnknownBuild,
    /// The module has no contracts that can be looked for: the dump lacks its symbols, and so does its file.
    #[error("the symbols of the runtime are unknown: {0}")]
    NoSymbols(Unreadable),
    /// The runtime's data is unknown at this address.
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    /// The descriptor cannot be read, or has no such contract.
    #[error("{0}")]
    Contract(#[from] ContractError),
    /// The runtime's map of code contradicts itself.
    #[error("{0}")]
    Code(#[from] CodeLookupError),
    /// A list of the runtime has more entries than it says, or leads back to itself.
    #[error("the list of {list} breaks off at {address:#x}: it has more entries than it can have")]
    EndlessList {
        /// What the list is of.
        list: &'static str,
        /// Address of the first entry too many (VA).
        address: u64,
    },
    /// A Frame does not lie above the one before.
    #[error("the Frame at {address:#x} does not lie above the one before, at {before:#x}")]
    FrameOrder {
        /// Address of the Frame (VA).
        address: u64,
        /// Address of the one before (VA).
        before: u64,
    },
    /// The mask of events has another form than in .NET 10 and 11.
    #[error("the mask of events is not at {address:#x}")]
    EventMask {
        /// Address of the first word that is another one (VA).
        address: u64,
    },
    /// The metadata of an image is not where its headers say.
    #[error("the image at {base:#x} has no metadata that can be read")]
    NoMetadata {
        /// Address of the image (VA).
        base: u64,
    },
    /// The metadata has no such class.
    #[error("the class at {table:#x} says that it is {token:#x}, which its module does not have")]
    NoSuchClass {
        /// Address of the MethodTable (VA).
        table: u64,
        /// The token.
        token: u32,
    },
    /// The metadata has no such method.
    #[error("the method at {desc:#x} says that it is {token:#x}, which its module does not have")]
    NoSuchMethod {
        /// Address of the MethodDesc (VA).
        desc: u64,
        /// The token.
        token: u32,
    },
    /// Two dumps are of different processes.
    #[error("the dumps are of different processes")]
    OtherProcess,
}
