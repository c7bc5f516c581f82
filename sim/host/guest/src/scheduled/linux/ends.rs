//! Ends of the process that the guest asks for: the end of its interleaving.

use super::guest_thread;
use libc::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::Once;

/// Ends the interleaving, or the process if this is no thread of an interleaving.
macro_rules! ends {
    ($name:ident) => {
        pub(super) unsafe extern "C" fn $name(code: c_int) -> ! {
            if let Some(carrier) = guest_thread::current() {
                // The coroutine does not come back from this.
                carrier.ask(|me| me.fail(concat!("ends the process by ", stringify!($name))));
            }
            // SAFETY: no pointers.
            unsafe { libc::$name(code) }
        }
    };
}

ends!(exit);
ends!(_exit);

pub(super) unsafe extern "C" fn quick_exit(code: c_int) -> ! {
    // SAFETY: no pointers.
    unsafe { _exit(code) }
}

/// Has this process end without the destructors of libraries that are loaded: they are for interleavings.
pub(in crate::scheduled) fn skip_destructors() {
    static SKIPS: Once = Once::new();
    unsafe extern "C" {
        fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    }
    extern "C" fn leave(code: c_int, _: *mut c_void) {
        // SAFETY: NULL stands for all streams.
        unsafe {
            libc::fflush(null_mut());
            libc::_exit(code)
        }
    }
    // SAFETY: a function that stays. What is registered last is executed first.
    SKIPS.call_once(|| _ = unsafe { on_exit(leave, null_mut()) });
}
