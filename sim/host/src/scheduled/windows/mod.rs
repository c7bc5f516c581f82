//! Threads of Windows on x86-64.
//!
//! | module | content |
//! |---|---|
//! | `imports` | import address tables of loaded modules, replaced: PE |
//! | `locks` | critical sections, slim locks, condition variables, initialisations |
//! | `handles`, `waits` | events, semaphores, mutexes and threads by handle, and waits for them |
//! | `posix` | locks and threads of winpthreads, which programs of mingw use |
//! | `addresses` | waits for addresses, of which Rust and C++20 make theirs |
//! | `threads` | threads that the guest starts |
//! | `suspension` | threads of the program, suspended and read by the guest |
//! | `time`, `timers`, `random`, `ends` | clocks and sleeps, waitable timers, random numbers, ends of the process |
//! | `heap` | the lock of the heap |
//! | `loader` | libraries and functions that the guest asks for |
//! | `refused` | calls of the system that wait outside of the simulation |
//! | `stopped` | threads that have stopped |
//! | `own` | the code and the memory of this process |
//! | `history_process`, `streams` | a process for each history, and the streams on which it talks |

mod addresses;
mod ends;
mod handles;
mod heap;
mod history_process;
mod imports;
mod loader;
mod locks;
mod own;
mod posix;
mod random;
mod refused;
pub(super) mod stopped;
mod streams;
mod suspension;
mod threads;
mod time;
mod timers;
mod waits;

pub use history_process::{answer_history, run_history};
pub(super) use imports::{LoadedObject, loaded_objects};
pub(super) use own::{
    Image, OwnMemory, bias, function_start, insert, is_of_system, map_file, reserve_simulated,
};

use super::{Replacement, carrier};
use clr_explore::{CurrentThread, Setup};
use std::ffi::c_int;
use std::sync::Arc;
use windows_sys::Win32::Foundation::{GetLastError, SetLastError, WIN32_ERROR};
use windows_sys::Win32::System::Threading::GetCurrentThreadId;

/// `TRUE` and `FALSE`.
type Bool = windows_sys::core::BOOL;

/// Asks the scheduler, or calls the system.
macro_rules! scheduled {
    ($real:expr, |$me:ident| $body:expr) => {
        match $crate::scheduled::windows::current() {
            Some(carrier) => carrier.ask(move |$me| $body).unwrap_or_default(),
            // SAFETY: the guest's own arguments.
            None => unsafe { $real },
        }
    };
}
use scheduled;

/// The carrier of a thread of a history, whose last error of the system stays as it is.
struct Current(Arc<carrier::Carrier>);

/// Returns the carrier of this thread of the system, if it executes the guest's code in a history.
fn current() -> Option<Current> {
    let error = last_error();
    let current = carrier::current().map(Current);
    set_last_error(error);
    current
}

impl Current {
    /// Has the coroutine do something, and waits for it.
    fn ask<T>(&self, what: impl FnOnce(&CurrentThread<'_, '_>) -> T) -> Option<T> {
        let error = last_error();
        let answer = self.0.ask(what);
        set_last_error(error);
        answer
    }
}

fn last_error() -> WIN32_ERROR {
    // SAFETY: no pointers.
    unsafe { GetLastError() }
}

/// Sets the error that the guest's thread reads next.
fn set_last_error(error: WIN32_ERROR) {
    // SAFETY: no pointers.
    unsafe { SetLastError(error) };
}

/// Returns 1 or 0, with an error of the system if it is 0.
fn succeeds(done: bool, error: WIN32_ERROR) -> Bool {
    if !done {
        set_last_error(error);
    }
    Bool::from(done)
}

/// Returns the functions that the guest's imports are to lead to.
pub(super) fn replacements() -> Vec<Replacement> {
    let mut all = Vec::new();
    all.extend(locks::replaced());
    all.extend(handles::replaced());
    all.extend(waits::replaced());
    all.extend(heap::replaced());
    all.extend(posix::replaced());
    all.extend(addresses::replaced());
    all.extend(threads::replaced());
    all.extend(suspension::replaced());
    all.extend(time::replaced());
    all.extend(timers::replaced());
    all.extend(random::replaced());
    all.extend(ends::replaced());
    all.extend(loader::replaced());
    all.extend(refused::replaced());
    all
}

/// Has the threads of histories do what this system has: nothing, as there are no signals.
pub(super) fn set_up(_: &mut Setup<'_>) {}

/// Returns the number of this thread of the system.
pub(super) fn thread_id() -> c_int {
    // SAFETY: no pointers.
    unsafe { GetCurrentThreadId() }.cast_signed()
}
