//! Threads of Linux on x86-64 with glibc.
//!
//! | module | content |
//! |---|---|
//! | `imports` | imports of loaded objects, replaced: ELF |
//! | `sync`, `semaphore`, `barrier`, `futex`, `once`, `threads`, `time`, `random`, `ends` | the functions that imports lead to |
//! | `signals` | signals, and their handlers |
//! | `system_locks` | the locks of the heap and the loader |
//! | `refused` | calls of the system that wait outside of the simulation |
//! | `stopped` | threads that have stopped |
//! | `fork` | a process for each history |
//! | `guest_process` | a library without a profiler |

mod barrier;
mod ends;
pub(super) mod fork;
mod futex;
mod guest_process;
mod imports;
mod once;
mod own;
mod random;
mod refused;
mod semaphore;
mod signals;
pub(super) mod stopped;
mod sync;
mod system_locks;
mod this_thread;
mod threads;
mod time;

pub use fork::{fix_addresses, in_workers};
pub use guest_process::GuestProcess;
pub(super) use imports::{LoadedObject, loaded_objects};
pub(super) use own::{Image, OwnMemory, bias, function_start, insert, is_of_system, map_file};
pub(super) use this_thread::thread_id;

use super::Replacement;
pub(super) use super::{guest_thread, objects, sanitizer};
use clr_explore::Setup;
use this_thread::refuse;

/// Returns the functions that the guest's imports are to lead to.
pub(super) fn replacements() -> Vec<Replacement> {
    let own = replacements! {
        "pthread_create" => threads::create,
        "pthread_join" => threads::join,
        "pthread_detach" => threads::detach,
        "pthread_exit" => threads::exit,
        "pthread_once" => once::once,
        "__cxa_guard_acquire" => once::guard_acquire,
        "__cxa_guard_release" => once::guard_release,
        "__cxa_guard_abort" => once::guard_abort,
        "pthread_mutex_lock" => sync::mutex_acquire,
        "pthread_mutex_trylock" => sync::mutex_try,
        "pthread_mutex_timedlock" => sync::mutex_timed,
        "pthread_mutex_clocklock" => sync::mutex_clock,
        "pthread_mutex_unlock" => sync::mutex_release,
        "pthread_mutex_destroy" => sync::mutex_destroy,
        "pthread_cond_wait" => sync::condition_wait,
        "pthread_cond_timedwait" => sync::condition_timed,
        "pthread_cond_clockwait" => sync::condition_clock,
        "pthread_cond_signal" => sync::condition_signal,
        "pthread_cond_broadcast" => sync::condition_broadcast,
        "pthread_cond_destroy" => sync::condition_destroy,
        "pthread_rwlock_rdlock" => sync::read_lock,
        "pthread_rwlock_tryrdlock" => sync::try_read_lock,
        "pthread_rwlock_wrlock" => sync::write_lock,
        "pthread_rwlock_trywrlock" => sync::try_write_lock,
        "pthread_rwlock_unlock" => sync::release_shared,
        "pthread_rwlock_destroy" => sync::destroy_shared,
        "pthread_rwlock_timedrdlock" => sync::read_lock_timed,
        "pthread_rwlock_clockrdlock" => sync::read_lock_clock,
        "pthread_rwlock_timedwrlock" => sync::write_lock_timed,
        "pthread_rwlock_clockwrlock" => sync::write_lock_clock,
        "sem_wait" => semaphore::wait,
        "sem_trywait" => semaphore::try_wait,
        "sem_timedwait" => semaphore::timed_wait,
        "sem_clockwait" => semaphore::clock_wait,
        "sem_post" => semaphore::post,
        "sem_destroy" => semaphore::destroy,
        "pthread_barrier_wait" => barrier::barrier_wait,
        "pthread_barrier_destroy" => barrier::barrier_destroy,
        "pthread_spin_lock" => barrier::spin_lock,
        "pthread_spin_trylock" => barrier::spin_try,
        "pthread_spin_unlock" => barrier::spin_unlock,
        "pthread_spin_destroy" => barrier::spin_destroy,
        "syscall" => futex::syscall,
        "exit" => ends::exit,
        "_exit" => ends::_exit,
        "_Exit" => ends::_exit,
        "quick_exit" => ends::quick_exit,
        "getrandom" => random::getrandom,
        "getentropy" => random::getentropy,
        "clock_gettime" => time::clock_gettime,
        "gettimeofday" => time::gettimeofday,
        "time" => time::seconds,
        "nanosleep" => time::nanosleep,
        "clock_nanosleep" => time::clock_nanosleep,
        "usleep" => time::usleep,
        "sleep" => time::sleep,
        "sched_yield" => time::sched_yield,
        "pthread_kill" => signals::thread_kill,
        "tgkill" => signals::tgkill,
        "raise" => signals::raise,
        "pthread_self" => signals::thread_self,
        "gettid" => signals::gettid,
        "sigaction" => signals::sigaction,
        "signal" => signals::signal,
    };
    own.into_iter().chain(refused::replacements()).chain(system_locks::replaced()).collect()
}

/// Installs the Linux signal handler.
pub(super) fn set_up(setup: &mut Setup<'_>) {
    setup.on_signal(signals::handle);
}
