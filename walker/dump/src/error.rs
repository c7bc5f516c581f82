//! The errors of dumps and of the files that belong to them.

use thiserror::Error;

/// An error in reading a dump. Offsets count in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DumpError {
    /// The file is neither an ELF core for x86-64 nor a minidump.
    #[error("not an ELF core for x86-64, and no minidump")]
    NotACore,
    /// The minidump is that of a process for another processor, or does not say which.
    #[error("the minidump is not one of x86-64, by the system's description at offset {offset:#x}")]
    Processor {
        /// Offset of the description; 0 if there is none.
        offset: u64,
    },
    /// A stream of a minidump is cut off, or contradicts itself.
    #[error("the minidump is damaged at offset {offset:#x}")]
    Stream {
        /// Offset of the field that contradicts the others.
        offset: u64,
    },
    /// The program headers are cut off.
    #[error("the program headers at offset {offset:#x} go beyond the end of the dump")]
    ProgramHeaders {
        /// Offset of the program headers.
        offset: u64,
    },
    /// The dump ends before a part that its headers name: it was not written to its end.
    #[error("{size:#x} bytes at offset {offset:#x} are beyond the end of the dump ({end:#x})")]
    Truncated {
        /// Offset of the part.
        offset: u64,
        /// Size of the part in bytes.
        size: u64,
        /// Size of the dump in bytes.
        end: u64,
    },
    /// A part of the dump cannot be read, though the dump is long enough.
    #[error("{size:#x} bytes at offset {offset:#x} of the dump cannot be read")]
    Unread {
        /// Offset of the part.
        offset: u64,
        /// Size of the part in bytes.
        size: u64,
    },
    /// Two segments of the dump share an address, or one goes beyond the end of the address space.
    #[error("the segment of {address:#x} at offset {offset:#x} overlaps another one, or wraps")]
    Segment {
        /// Start of the segment (VA).
        address: u64,
        /// Offset of its bytes.
        offset: u64,
    },
    /// Two images of a minidump share an address.
    #[error("the image at {address:#x} overlaps the one before")]
    Image {
        /// Start of the image (VA).
        address: u64,
    },
    /// A note is cut off, or is shorter than its kind needs.
    #[error("the note at offset {offset:#x} is damaged")]
    Note {
        /// Offset of the field that contradicts the others.
        offset: u64,
    },
    /// There is no thread in the dump.
    #[error("the dump has no threads")]
    NoThreads,
}

/// The reason why a file is not used for the pages of its mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MappedFileError {
    /// The file was not found.
    #[error("the file was not found")]
    NotFound,
    /// The dump lacks the page that says which file it was.
    #[error("the dump does not say which file this was: it lacks the page with the build id")]
    NoIdentity,
    /// The file that was found is another one.
    #[error("the file is another one: its build id differs")]
    Different,
    /// The file is damaged, or larger than the limits of this crate: a million relocations.
    #[error("the file is damaged")]
    Damaged,
}
