//! Compact unwind information of Mach-O images: `__TEXT,__unwind_info`, and `__LD,__compact_unwind`
//! of object files.
//!
//! macOS describes nearly all functions by one 32-bit [`Encoding`] each: where the caller's
//! registers are once the prologue has ended. It says nothing about prologues and epilogues, so an
//! [`Unwinder`](crate::Unwinder) reads the code as well where a thread was interrupted.
//! Linkers merge neighbouring functions with the same encoding: an [`Entry`] may cover several
//! functions, and its start need not be that of the function at an address.
//!
//! The format is that of Apple's `mach-o/compact_unwind_encoding.h`, which LLVM's libunwind has too.
//!
//! Without feature `macho` there are the errors alone.

#[cfg(feature = "macho")]
mod encoding;
mod error;
#[cfg(feature = "macho")]
mod object_file;
#[cfg(feature = "macho")]
mod table;

#[cfg(feature = "macho")]
pub use encoding::{Encoding, Layout, SavedRegisters};
pub use error::{CompactError, CompactProblem};
#[cfg(feature = "macho")]
pub use table::{CompactSections, CompactTable, Entry, Personality};

#[cfg(feature = "macho")]
pub(crate) use object_file::entries as entries_of_object_file;
