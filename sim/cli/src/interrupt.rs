//! Ctrl-C during a search: the first one ends the search with what was found so far, the second one the
//! process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

/// Exit code of a command that was interrupted, as shells have it for SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

static IS_INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Handles Ctrl-C from now on. Where the system has no handlers, Ctrl-C ends the process as ever.
///
/// Copies of this process have the handler, too, each with a flag of its own.
#[cfg(unix)]
pub(crate) fn watch() {
    use signal_hook::consts::SIGINT;
    use signal_hook::flag::{register, register_conditional_shutdown};
    use std::sync::Once;
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // In this order: a signal looks at the flag before it sets it.
        let again = Arc::clone(&IS_INTERRUPTED);
        let shutdown = register_conditional_shutdown(SIGINT, INTERRUPTED.into(), again);
        let _ = shutdown.and_then(|_| register(SIGINT, Arc::clone(&IS_INTERRUPTED)));
    });
}

/// Handles Ctrl-C from now on. Where the system has no handlers, Ctrl-C ends the process as ever.
#[cfg(windows)]
pub(crate) fn watch() {
    let _: Result<(), ctrlc::Error> = ctrlc::set_handler(|| {
        if IS_INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED.into());
        }
    });
}

/// Returns true if somebody has pressed Ctrl-C.
pub(crate) fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::Relaxed)
}
