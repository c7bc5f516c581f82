//! A guest's threads under the scheduler of `clr-explore` (x86-64: Linux with glibc, and Windows).
//!
//! The imports of the guest, and of the libraries that came with it, lead to functions here: threads,
//! locks, condition variables, initialisations, clocks. One thread runs at a time; where threads could
//! observe each other, a search chooses the next one. What the scheduler does not see, such as a spin loop
//! or a call of the system, ends the history with a message when the guest does not give back control.
//!
//! | module | content |
//! |---|---|
//! | `linux`, `windows` | a system: imports, the functions that they lead to, threads that have stopped, a process for each history |
//! | `carrier` | threads of the system, paired with coroutines |
//! | `objects` | the guest's objects, by address |
//! | `backtrace` | stacks of threads that have stopped |
//! | `random` | random numbers |
//! | `sanitizer` | what ThreadSanitizer learns of the scheduler (Linux) |
//! | `run` | the execution of a history |
//! | `ending` | what is kept of a history |
//! | `visit` | a profiler over a text, in histories |

/// Lists names of imports, and the functions that they are to lead to.
macro_rules! replacements {
    ($($name:literal => $with:path),* $(,)?) => {
        [$($crate::scheduled::Replacement {
            name: $name,
            with: $with as *const std::ffi::c_void,
        }),*]
    };
}

mod backtrace;
mod carrier;
mod ending;
#[cfg(target_os = "linux")]
mod linux;
mod objects;
mod random;
mod run;
pub(crate) mod sanitizer;
mod visit;
#[cfg(windows)]
mod windows;

pub use ending::{Describe, Died, Executed, GuestEnding, Kept};
#[cfg(target_os = "linux")]
pub use linux::{GuestProcess, fix_addresses, in_workers};
pub use visit::{ScheduledVisit, VisitError};
#[cfg(windows)]
pub use windows::{answer_history, run_history};

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(windows)]
use windows as system;

use crate::guest::library::Library;
use clr_explore::CurrentThread;
use clr_walker::profiling::HResult;
use std::ffi::{CStr, c_void};
use std::path::Path;
use system::loaded_objects;

/// A function that an import is to lead to.
#[derive(Clone, Copy, Debug)]
struct Replacement {
    name: &'static str,
    with: *const c_void,
}

/// Returns true if this thread of the system is a thread of a history.
pub(crate) fn is_in_history() -> bool {
    carrier::current().is_some()
}

/// Has the coroutine of this thread of the system do something, if it is a thread of a history.
pub(crate) fn ask<T>(what: impl FnOnce(&CurrentThread<'_, '_>) -> T) -> Option<T> {
    carrier::current()?.ask(what)
}

/// Calls the guest on the thread of the system that belongs to a thread of the history.
pub(crate) fn execute(me: &CurrentThread<'_, '_>, call: impl FnOnce() -> HResult) -> HResult {
    carrier::of(me).execute(me, call).unwrap_or(HResult::UNEXPECTED)
}

/// A library whose threads run under the scheduler.
#[derive(Debug)]
pub struct ScheduledLibrary(Library);

impl ScheduledLibrary {
    /// Loads a library, and has its imports, and those of the libraries that it brings, lead to the scheduler.
    /// It stays loaded.
    ///
    /// # Errors
    /// Returns the system's message.
    pub fn load(path: &Path) -> Result<Self, String> {
        #[cfg(windows)]
        system::reserve_simulated();
        let before = loaded_objects();
        let library = Library::load(path)?;
        for object in &before {
            backtrace::note(object, false);
        }
        for object in loaded_objects().difference(&before) {
            backtrace::note(object, true);
        }
        for object in loaded_objects().difference(&before).filter(|it| it.is_replaced()) {
            let changed = object.replace_imports(&system::replacements());
            changed.map_err(|page| format!("the page at {page:#x} stays read-only"))?;
        }
        Ok(Self(library))
    }

    /// Returns the address of an export.
    pub fn export(&self, name: &CStr) -> Option<*const c_void> {
        self.0.export(name).map(|found| found.as_ptr().cast_const())
    }
}
