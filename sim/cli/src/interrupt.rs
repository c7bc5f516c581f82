//! Ctrl-C during a search: the first one ends the search with what was found so far, the second one the
//! process.

use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code of a command that was interrupted, as shells have it for SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Handles Ctrl-C from now on. Where the system has no handlers, Ctrl-C ends the process as ever.
pub(crate) fn watch() {
    let _: Result<(), ctrlc::Error> = ctrlc::set_handler(|| {
        if IS_INTERRUPTED.swap(true, Ordering::Relaxed) {
            exit(INTERRUPTED.into());
        }
    });
}

/// Returns true if somebody has pressed Ctrl-C.
pub(crate) fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::Relaxed)
}
