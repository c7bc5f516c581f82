//! This thread of the system: its number, its errors, and what it asks the scheduler.

use crate::scheduled::guest_thread;
use clr_explore::CurrentThread;
use std::ffi::c_int;
use std::sync::Arc;
use windows_sys::Win32::Foundation::{GetLastError, SetLastError, WIN32_ERROR};
use windows_sys::Win32::System::Threading::GetCurrentThreadId;

/// `TRUE` and `FALSE`.
pub(super) type Bool = windows_sys::core::BOOL;

/// Asks the scheduler, or calls the system.
macro_rules! scheduled {
    ($real:expr, |$me:ident| $body:expr) => {
        match $crate::scheduled::windows::current() {
            Some(thread) => thread.ask(move |$me| $body).unwrap_or_default(),
            // SAFETY: the guest's own arguments.
            None => unsafe { $real },
        }
    };
}
pub(super) use scheduled;

/// A thread of an interleaving, whose last error of the system stays as it is.
pub(super) struct Current(Arc<guest_thread::GuestThread>);

/// Returns this thread of the system, if it executes the guest's code in an interleaving.
pub(super) fn current() -> Option<Current> {
    let error = last_error();
    let current = guest_thread::current().map(Current);
    set_last_error(error);
    current
}

impl Current {
    /// Has the coroutine do something, and waits for it.
    pub(super) fn ask<T>(&self, what: impl FnOnce(&CurrentThread<'_, '_>) -> T) -> Option<T> {
        let error = last_error();
        let answer = self.0.ask(what);
        set_last_error(error);
        answer
    }
}

pub(super) fn last_error() -> WIN32_ERROR {
    // SAFETY: no pointers.
    unsafe { GetLastError() }
}

/// Sets the error that the guest's thread reads next.
pub(super) fn set_last_error(error: WIN32_ERROR) {
    // SAFETY: no pointers.
    unsafe { SetLastError(error) };
}

/// Returns 1 or 0, with an error of the system if it is 0.
pub(super) fn succeeds(done: bool, error: WIN32_ERROR) -> Bool {
    if !done {
        set_last_error(error);
    }
    Bool::from(done)
}

/// Returns the number of this thread of the system.
pub(crate) fn thread_id() -> c_int {
    // SAFETY: no pointers.
    unsafe { GetCurrentThreadId() }.cast_signed()
}
