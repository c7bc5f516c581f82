//! Initialisations that are executed once: `pthread_once`, and the guards of static variables (Itanium
//! C++ ABI, 3.3.3 "One-time Construction API").

use super::{guest_thread, objects, sanitizer};
use libc::c_int;

/// Waits for the turn of this thread. Returns true if it is to initialise.
fn begins(at: usize) -> bool {
    let Some(carrier) = guest_thread::current() else { return false };
    let begins = carrier.ask(move |me| objects::begin_initialisation(me, at)).unwrap_or_default();
    sanitizer::acquires(at);
    begins
}

/// Ends the turn of this thread: the initialisation is over, or has failed.
fn ends(at: usize, done: bool) {
    let Some(carrier) = guest_thread::current() else { return };
    sanitizer::releases(at);
    carrier.ask(move |me| objects::end_initialisation(me, at, done));
}

pub(super) unsafe extern "C" fn once(control: *mut c_int, initialise: extern "C" fn()) -> c_int {
    if guest_thread::current().is_none() {
        // SAFETY: the guest's arguments.
        return unsafe { libc::pthread_once(control.cast(), initialise) };
    }
    // SAFETY: the guest's variable. glibc sets bit 1 when the initialisation is over.
    let before = unsafe { control.read() } & 2 != 0;
    sanitizer::acquires(control as usize);
    if !before && begins(control as usize) {
        initialise();
        ends(control as usize, true);
    }
    0
}

/// Returns 1 if this thread has to initialise the variable.
pub(super) unsafe extern "C" fn guard_acquire(guard: *mut u8) -> c_int {
    // SAFETY: the guest's guard, whose first byte says whether the variable is initialised.
    let done = unsafe { guard.read() } != 0;
    sanitizer::acquires(guard as usize);
    c_int::from(!done && (guest_thread::current().is_none() || begins(guard as usize)))
}

pub(super) unsafe extern "C" fn guard_release(guard: *mut u8) {
    // SAFETY: as above.
    unsafe { guard.write(1) };
    ends(guard as usize, true);
}

pub(super) unsafe extern "C" fn guard_abort(guard: *mut u8) {
    ends(guard as usize, false);
}
