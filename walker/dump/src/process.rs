//! A process that has stopped: what readers of its data ask.

use crate::error::MappedFileError;
use crate::modules::Module;
use crate::notes::Mapping;
use crate::threads::Thread;
use clr_unwind::{Convention, Memory};
use thiserror::Error;

/// The operating system of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux.
    Linux,
    /// Windows, or wine.
    Windows,
}

impl System {
    /// Returns the calling convention of managed code.
    pub const fn convention(self) -> Convention {
        match self {
            Self::Linux => Convention::SystemV,
            Self::Windows => Convention::WindowsX64,
        }
    }
}

/// A process that has stopped: a dump, or a live process that somebody holds. Its memory is that of
/// [`Memory`]: a byte that is not known cannot be read.
pub trait StoppedProcess: Memory {
    /// Returns the operating system.
    fn system(&self) -> System;

    /// Returns the threads, in the order of their ids.
    fn threads(&self) -> &[Thread];

    /// Returns the images that are loaded, ascending by address.
    fn modules(&self) -> &[Module<'_>];

    /// Returns the files that are mapped, ascending by address; none on Windows, where images alone are known.
    fn mappings(&self) -> &[Mapping];

    /// Returns a value of the auxiliary vector, by which Linux told the process of itself (`AT_…` in elf.h).
    fn auxiliary(&self, key: u64) -> Option<u64>;

    /// Returns why the byte at `address` (VA) is unknown, or `None` if it can be read.
    fn missing(&self, address: u64) -> Option<Missing>;

    /// Fills `buffer` with the bytes of a constant at `address` (VA): of data that the caller knows never to change, though it lies
    /// among data that may. What the dump lacks of it is as the loader left it.
    ///
    /// # Errors
    /// [`Missing`] if a byte is in neither the dump nor the file, or depends on other images.
    fn read_constant(&self, address: u64, buffer: &mut [u8]) -> Result<(), Missing>;

    /// Returns the module with the address (VA).
    fn module_at(&self, address: u64) -> Option<&Module<'_>> {
        let modules = self.modules();
        let after = modules.partition_point(|module| module.range.start <= address);
        let module = modules.get(after.checked_sub(1)?)?;
        module.range.contains(&address).then_some(module)
    }

    /// Returns the thread with this id of the operating system.
    fn thread(&self, id: u32) -> Option<&Thread> {
        let threads = self.threads();
        threads.get(threads.binary_search_by_key(&id, |thread| thread.id).ok()?)
    }
}

/// The reason why a byte of the process is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Missing {
    /// The dump lacks the page, and no file is mapped there. A dump of another kind may have it.
    #[error("the dump lacks this page: one of another kind (heap, full, gcore) may have it")]
    NotDumped,
    /// The dump lacks the page, and the file that is mapped there cannot stand in for it.
    #[error("the dump lacks this page of a file: {0}")]
    File(MappedFileError),
    /// The dump has the page, but its file cannot be read there.
    #[error("the file of the dump cannot be read here")]
    Unread,
    /// The dump lacks the page, and the process may have written to it since the file was loaded.
    #[error(
        "the dump lacks this page, which the process may have changed: a heap dump may have it"
    )]
    MayHaveChanged,
}
