//! What ends a search before its end: Ctrl-C, the first one with what was found so far, the second one with the process; and
//! the time that it may take.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

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

/// Handles nothing: a page ends the worker.
#[cfg(target_family = "wasm")]
pub(crate) fn watch() {}

/// Returns true if somebody has pressed Ctrl-C.
pub(crate) fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::Relaxed)
}

/// Why a search was ended before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Somebody has pressed Ctrl-C.
    Interrupted,
    /// Its time was over.
    OutOfTime,
}

/// The time of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// `None`: as long as it takes.
    until: Option<Instant>,
}

impl Patience {
    /// Begins a search that may take this time, or as long as it takes.
    pub(crate) fn new(limit: Option<Duration>) -> Self {
        // A time that no clock can have is as good as none.
        Self { until: limit.and_then(|limit| Instant::now().checked_add(limit)) }
    }

    /// Returns why the search has to end now, if it has to.
    pub(crate) fn cut(self) -> Option<Cut> {
        if is_interrupted() {
            Some(Cut::Interrupted)
        } else {
            self.until.is_some_and(|until| Instant::now() >= until).then_some(Cut::OutOfTime)
        }
    }
}
