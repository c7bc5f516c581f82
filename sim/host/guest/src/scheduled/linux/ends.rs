//! Ends of the process that the guest asks for: the end of its interleaving.

use super::guest_thread;
use libc::c_int;

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
