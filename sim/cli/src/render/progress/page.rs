//! Progress for the page that shows it: lines `done/steps message` on stderr, each of which takes the place of the one before.

use clr_explore::visible;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Time between two lines, at least, in milliseconds.
const BETWEEN: u64 = 50;

/// Lines on stderr.
pub(crate) struct Progress {
    /// `None`: nothing is printed.
    began: Option<Instant>,
    /// Time of the next line, in milliseconds from the begin.
    next: AtomicU64,
    done: AtomicU64,
    steps: u64,
}

impl Progress {
    /// Creates the line of `len` steps. Nothing is printed unless `is_visible`.
    pub(crate) fn new(is_visible: bool, len: u64) -> Self {
        let began = is_visible.then(Instant::now);
        Self { began, next: AtomicU64::new(BETWEEN), done: AtomicU64::new(0), steps: len }
    }

    /// Creates the line of `len` steps; the page knows what it asked for.
    pub(crate) fn with_rate(is_visible: bool, len: u64, _: &str) -> Self {
        Self::new(is_visible, len)
    }

    /// Adds one step.
    pub(crate) fn step(&self) {
        self.step_to("");
    }

    /// Adds one step with a message.
    pub(crate) fn step_to(&self, message: &str) {
        let before = self.done.fetch_add(1, Ordering::Relaxed);
        self.show(before + 1, message);
    }

    /// Sets the number of steps done.
    pub(crate) fn set(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.show(done, "");
    }

    /// Calls `print`.
    #[expect(clippy::unused_self, reason = "a terminal has a line to hide")]
    pub(crate) fn hide<T>(&self, print: impl FnOnce() -> T) -> T {
        print()
    }

    /// Ends the progress.
    #[expect(clippy::unused_self, reason = "a terminal has a line to remove")]
    pub(crate) fn finish(&self) {}

    fn show(&self, done: u64, message: &str) {
        let Some(began) = self.began else { return };
        let now = began.elapsed().as_millis() as u64;
        if now >= self.next.load(Ordering::Relaxed) {
            self.next.store(now + BETWEEN, Ordering::Relaxed);
            let message = visible(message);
            // Without a stream nobody hears of it.
            let _: io::Result<()> = writeln!(io::stderr(), "\r{done}/{} {message}", self.steps);
        }
    }
}
