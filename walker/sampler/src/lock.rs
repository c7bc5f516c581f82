//! Locks of a profiler, which goes on after a panic of one of its threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, after a panic, too.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
