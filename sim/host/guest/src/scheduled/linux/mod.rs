//! Threads of Linux on x86-64 with glibc.
//!
//! | module | content |
//! |---|---|
//! | `imports` | imports of loaded objects, replaced: ELF |
//! | `initialisers`, `exit` | libraries whose initialisers, and what they do at the end, are under the scheduler |
//! | `sync`, `semaphore`, `barrier`, `futex`, `once`, `threads`, `time`, `random`, `ends` | the functions that imports lead to |
//! | `descriptors`, `polls`, `transfers`, `timers` | descriptors that connect the guest's own threads |
//! | `signals`, `masks`, `signal_timers` | signals, their handlers, who takes them, and timers that send them |
//! | `c_threads` | threads of C11 |
//! | `symbols` | functions that are looked up by name |
//! | `instructions` | calls of the system without an import |
//! | `system_locks` | the locks of the heap and the loader |
//! | `replaced` | the table of all of these functions |
//! | `refused` | calls of the system that wait outside of the simulation |
//! | `stopped`, `damage` | threads that have stopped, and damage of the heap |
//! | `fork`, `reports`, `streams` | a process for each interleaving, what it reports, and what it prints |
//! | `guest_process` | a library without a profiler |

mod barrier;
mod c_threads;
mod damage;
mod descriptors;
mod ends;
mod exit;
pub(super) mod fork;
mod futex;
mod guest_process;
mod imports;
mod initialisers;
mod instructions;
mod masks;
mod once;
mod own;
mod polls;
mod random;
mod refused;
mod replaced;
mod reports;
mod semaphore;
mod signal_timers;
mod signals;
pub(super) mod stopped;
mod streams;
mod symbols;
mod sync;
mod system_locks;
mod this_thread;
mod threads;
mod time;
mod timers;
mod transfers;

pub(super) use damage::find_message;
pub(super) use descriptors::note_pipes;
pub(super) use ends::skip_destructors;
pub(super) use exit::{destroys_values, exit, forget_exit};
pub use fork::{fix_addresses, in_workers, stay_here};
pub use guest_process::GuestProcess;
pub(super) use imports::{LoadedObject, loaded_objects};
pub(crate) use initialisers::unload;
pub(super) use initialisers::{initialise, open_library};
pub(super) use instructions::note_own_calls;
pub(super) use own::{Image, OwnMemory, bias, function_start, insert, is_of_system, map_file};
pub(super) use replaced::replacements;
pub(super) use this_thread::thread_id;
pub(super) use threads::{end_with_thread, last_key, starting};

use super::Replacement;
pub(super) use super::{guest_thread, objects, sanitizer};
use clr_explore::Setup;
use this_thread::refuse;

/// Installs the Linux signal handler.
pub(super) fn set_up(setup: &mut Setup<'_>) {
    setup.on_signal(signals::handle);
}
