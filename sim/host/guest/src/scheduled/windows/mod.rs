//! Threads of Windows on x86-64.
//!
//! | module | content |
//! |---|---|
//! | `imports` | import address tables of loaded modules, replaced: PE |
//! | `locks` | critical sections, slim locks, condition variables, initialisations |
//! | `handles`, `waits` | events, semaphores, mutexes and threads by handle, and waits for them |
//! | `adopted` | objects that initialisers have made |
//! | `posix` | locks and threads of winpthreads, which programs of mingw use |
//! | `addresses` | waits for addresses, of which Rust and C++20 make theirs |
//! | `threads` | threads that the guest starts |
//! | `pool`, `pool_timers` | pools of threads, with their timers and waits |
//! | `exit` | the end of the process: what libraries do then |
//! | `suspension` | threads of the program, suspended and read by the guest |
//! | `time`, `timers`, `random`, `ends` | clocks and sleeps, waitable timers, random numbers, ends of the process |
//! | `heap` | the lock of the heap |
//! | `loader` | libraries and functions that the guest asks for |
//! | `replaced` | the table of all of these functions |
//! | `refused` | calls of the system that wait outside of the simulation |
//! | `stopped` | threads that have stopped |
//! | `own` | the code and the memory of this process |
//! | `history_process`, `streams` | a process for each interleaving, and the streams on which it talks |

mod addresses;
mod adopted;
mod c_heap;
mod ends;
mod exit;
mod handles;
mod heap;
mod history_process;
mod imports;
mod loader;
mod locks;
mod own;
mod pool;
mod pool_timers;
mod posix;
mod random;
mod refused;
mod replaced;
pub(super) mod stopped;
mod streams;
mod suspension;
mod this_thread;
mod threads;
mod time;
mod timers;
mod waits;

pub(super) use exit::exit;
pub use history_process::{answer_history, run_history};
pub(super) use imports::{LoadedObject, loaded_objects};
pub(crate) use loader::unload;
pub(super) use own::{
    Image, OwnMemory, bias, function_start, insert, is_of_system, map_file, reserve_simulated,
};
pub(super) use replaced::replacements;
pub(super) use this_thread::thread_id;
pub(super) use threads::starting;

use super::Replacement;
use clr_explore::Setup;
use this_thread::{Bool, Current, current, last_error, scheduled, set_last_error, succeeds};

/// Installs nothing: Windows has no signals.
pub(super) fn set_up(_: &mut Setup<'_>) {}
