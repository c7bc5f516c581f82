//! A guest's threads under the scheduler of `clr-explore` (x86-64: Linux with glibc, and Windows).
//!
//! The imports of the guest, and of the libraries that came with it, lead to functions here: threads,
//! locks, condition variables, initialisations, clocks. One thread runs at a time; where threads could
//! observe each other, a search chooses the next one. What the scheduler does not see, such as a spin loop
//! or a call of the system, ends the interleaving with a message when the guest does not give back control.
//!
//! | module | content |
//! |---|---|
//! | `linux`, `windows` | a system: imports, the functions that they lead to, threads that have stopped, a process for each interleaving |
//! | `guest_thread` | threads of the system, paired with coroutines |
//! | `objects` | the guest's objects, by address |
//! | `backtrace` | stacks of threads that have stopped |
//! | `random` | random numbers |
//! | `sanitizer` | what ThreadSanitizer learns of the scheduler (Linux) |
//! | `scheduled_library`, `replacement` | a library, and its imports |
//! | `run` | the execution of an interleaving |
//! | `ending` | what is kept of an interleaving |
//! | `hosted_profiler` | a profiler over a text, in interleavings |

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
mod ending;
mod guest_thread;
mod hosted_profiler;
#[cfg(target_os = "linux")]
mod linux;
mod objects;
mod random;
mod replacement;
mod run;
mod sanitizer;
mod scheduled_library;
#[cfg(windows)]
mod windows;

pub use ending::{Describe, Detail, Died, Executed, GuestEnding, after_faults};
pub use hosted_profiler::{HostedProfiler, HostedProfilerError};
#[cfg(target_os = "linux")]
pub use linux::{GuestProcess, fix_addresses, in_workers, stay_here};
pub use scheduled_library::ScheduledLibrary;
#[cfg(windows)]
pub use windows::{answer_history, run_history};

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(windows)]
use windows as system;

pub(crate) use replacement::Replacement;
pub(crate) use system::unload;

/// Returns true if this is a thread of an interleaving.
pub(crate) fn is_in_interleaving() -> bool {
    guest_thread::current().is_some()
}
