//! Progress on a line of the terminal.

use clr_explore::visible;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Times that the line is drawn, at most, in a second.
const DRAWN: u8 = 20;

/// The bar, the number of steps done, and a message that is cut at the terminal's width.
const PLAIN: &str = "{bar:30} {pos}/{len} {wide_msg}";

/// The same with the number of steps per second.
const WITH_RATE: &str = "{bar:30} {pos}/{len} {per_sec:.0}, {eta} left {wide_msg}";

/// A line on stderr. Threads may share it.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Creates the line of `len` steps. Nothing is drawn unless `is_visible`.
    pub(crate) fn new(is_visible: bool, len: u64) -> Self {
        Self::of(is_visible, len, PLAIN)
    }

    /// Creates the line of `len` steps with their number per second and a message.
    pub(crate) fn with_rate(is_visible: bool, len: u64, message: &str) -> Self {
        let progress = Self::of(is_visible, len, WITH_RATE);
        progress.0.set_message(visible(message));
        progress
    }

    fn of(is_visible: bool, len: u64, template: &str) -> Self {
        let target = if is_visible {
            ProgressDrawTarget::stderr_with_hz(DRAWN)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(len), target);
        // The templates are right: a test draws both.
        let style = ProgressStyle::with_template(template);
        Self(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
    }

    /// Adds one step.
    pub(crate) fn step(&self) {
        self.0.inc(1);
    }

    /// Adds one step with a message.
    pub(crate) fn step_to(&self, message: &str) {
        self.0.set_message(visible(message));
        self.0.inc(1);
    }

    /// Sets the number of steps done.
    pub(crate) fn set(&self, done: u64) {
        self.0.set_position(done);
    }

    /// Calls `print` while the line is not on the terminal.
    pub(crate) fn hide<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }

    /// Removes the line from the terminal.
    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{PLAIN, Progress, ProgressStyle, WITH_RATE};

    #[test]
    fn templates_are_right() {
        for template in [PLAIN, WITH_RATE] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }

    #[test]
    fn hidden_line_prints_what_it_hides() {
        let progress = Progress::with_rate(false, 10, "x");
        progress.step();
        progress.step_to("y");
        progress.set(4);
        assert_eq!(progress.hide(|| 7), 7);
        assert_eq!(progress.0.position(), 4);
        progress.finish();
    }
}
