//! A stopped x64 process of Linux or Windows, read from its dump.
//!
//! [`CoreDump::open`] takes the bytes of a core (of the kernel, of gdb's `gcore`, or of one of the four kinds of
//! .NET's `createdump`) or of a Windows minidump, and a way to find the files that the process had mapped. What it returns is a
//! [`StoppedProcess`]: memory, threads, modules.
//!
//! ```
//! use clr_dump::{CoreDump, DumpError, NoFiles, StoppedProcess};
//!
//! fn print_threads(dump: &[u8]) -> Result<(), DumpError> {
//!     let process = CoreDump::open(dump, &NoFiles)?;
//!     for thread in process.threads() {
//!         println!("{} at {:#x}", thread.id, thread.registers.rip);
//!     }
//!     Ok(())
//! }
//! assert!(print_threads(b"no dump").is_err());
//! ```
//!
//! # Pages
//!
//! A page comes from the dump. If the dump lacks it, it comes from the mapped file, provided that the file is the one that the
//! process had mapped: its build id (of a PE image its time stamp, size and checksum) equals the one in the dump's memory. Relative
//! relocations are applied as the loader applied them. Bytes that the process may have changed since are unknown: those of
//! writable segments, and words that other relocations fill. Reading an unknown byte is an error, and
//! [`StoppedProcess::missing`] says why it is unknown; it is never read as zero.
//!
//! # Windows
//!
//! A minidump names its images itself, so that their files are found by time stamp, size and checksum. Base relocations are applied;
//! imported addresses, and what the loader fills in, are unknown. What a process has written to read-only sections itself is taken from
//! the file all the same: of coreclr.dll 10.0.15 and 11.0.0 that is one word, the cookie of its stacks, and of other images none.
//!
//! Which exception ended a process is not read (its thread is where it was when the dump was written), nor are handles: what a thread
//! waits for in the kernel is not known.
//!
//! # Limits
//!
//! No byte of a dump or a file is trusted. Damage is a [`DumpError`] with its offset; memory is bounded by the size of the
//! dump's notes and by [limits](MappedFileError) for each file. A dump of any size is read with 16 MiB of it in memory
//! ([`CachedBytes`]): the caller reads the file where it is asked to.
//!
//! # Modules
//!
//! | module | content |
//! |---|---|
//! | `core_dump` | the dump as a stopped process |
//! | `minidump` | the streams of a minidump: memory, threads, images |
//! | `process` | the trait of a stopped process |
//! | `bytes` | the bytes of a dump, in memory or in a file |
//! | `segments` | the segments of a core |
//! | `dumped` | the pages of the dump |
//! | `notes` | the notes of a core: threads, mapped files, the auxiliary vector |
//! | `threads` | a thread and its registers |
//! | `waits` | what a thread waits for |
//! | `headers` | ELF headers in files and in memory |
//! | `pe_headers` | PE headers |
//! | `modules` | loaded images: those whose segments are mapped in order |
//! | `mapped_file` | what of a file is as it was in memory |
//! | `loaded` | an image as the system has loaded it |
//! | `relocations` | what the loader has changed |
//! | `pe_loaded` | a PE image as Windows has loaded it |
//! | `symbols`, `exports` | exported symbols of an ELF module, and of a PE module |

mod bytes;
mod core_dump;
mod dumped;
mod error;
mod exports;
mod fields;
mod files;
mod headers;
mod loaded;
mod mapped_file;
mod minidump;
mod modules;
mod notes;
mod pe_headers;
mod pe_loaded;
mod process;
mod relocations;
mod segments;
mod symbols;
#[cfg(test)]
mod tests;
mod threads;
mod waits;

pub use bytes::{CachedBytes, DumpBytes};
pub use core_dump::CoreDump;
pub use error::{DumpError, MappedFileError};
pub use files::{Files, NoFiles};
pub use modules::{Module, ModuleFile, ModuleKind};
pub use notes::Mapping;
pub use process::{Missing, StoppedProcess, System};
pub use threads::Thread;
pub use waits::Wait;
