//! Initialisations that are executed once: `pthread_once`, and the guards of static variables (Itanium
//! C++ ABI, 3.3.3 "One-time Construction API").

use super::{guest_thread, objects, sanitizer};
use libc::c_int;

unsafe extern "C-unwind" {
    fn pthread_once(control: *mut c_int, initialise: extern "C-unwind" fn()) -> c_int;
}

/// Waits for the turn of this thread. Returns true if it is to initialise.
fn begins(at: usize) -> bool {
    let Some(carrier) = guest_thread::current() else { return false };
    let begins = carrier.ask(move |me| objects::begin_initialisation(me, at, false));
    let begins = begins.unwrap_or_default();
    sanitizer::acquires(at);
    begins
}

/// Ends the turn of this thread: the initialisation is over, or has failed.
fn ends(at: usize, done: bool) {
    let Some(carrier) = guest_thread::current() else { return };
    sanitizer::releases(at);
    carrier.ask(move |me| objects::end_initialisation(me, at, done));
}

/// `PTHREAD_ONCE_DONE` of glibc: the bit of the variable that says that the initialisation is over.
const DONE: c_int = 2;

/// The turn of this thread. It ends with its value, also if the initialisation throws.
struct Turn {
    at: usize,
    done: bool,
}

impl Drop for Turn {
    fn drop(&mut self) {
        ends(self.at, self.done);
    }
}

pub(super) unsafe extern "C-unwind" fn once(
    control: *mut c_int,
    initialise: extern "C-unwind" fn(),
) -> c_int {
    if guest_thread::current().is_none() {
        // SAFETY: the guest's arguments.
        return unsafe { pthread_once(control, initialise) };
    }
    // SAFETY: the guest's variable.
    let before = unsafe { control.read() } & DONE != 0;
    sanitizer::acquires(control as usize);
    if !before && begins(control as usize) {
        let mut turn = Turn { at: control as usize, done: false };
        initialise();
        // SAFETY: as above.
        unsafe { control.write(DONE) };
        turn.done = true;
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
