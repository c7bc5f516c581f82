//! Progress of long commands, on a line of the terminal.

use clr_explore::visible;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Width of the bar in characters.
const BAR: usize = 30;

/// Time between two drawings of the line.
const PAUSE: Duration = Duration::from_millis(50);

/// A line on stderr with a bar, the number of steps done and a message. Threads may share it.
pub(crate) struct Progress {
    /// `None` if nothing is drawn.
    line: Option<Mutex<Line>>,
}

struct Line {
    len: u64,
    done: u64,
    message: String,
    /// True if the number of steps per second is shown.
    has_rate: bool,
    start: Instant,
    drawn: Option<Instant>,
}

impl Progress {
    /// Creates the line of `len` steps. Nothing is drawn unless `is_visible`.
    pub(crate) fn new(is_visible: bool, len: u64) -> Self {
        let line = || {
            let start = Instant::now();
            let message = String::new();
            Mutex::new(Line { len, done: 0, message, has_rate: false, start, drawn: None })
        };
        Self { line: is_visible.then(line) }
    }

    /// Creates the line of `len` steps with their number per second and a message.
    pub(crate) fn with_rate(is_visible: bool, len: u64, message: String) -> Self {
        let progress = Self::new(is_visible, len);
        progress.change(|line| (line.has_rate, line.message) = (true, message));
        progress
    }

    fn change(&self, change: impl FnOnce(&mut Line)) {
        let Some(line) = &self.line else { return };
        let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut line);
        let now = Instant::now();
        if line.drawn.is_none_or(|drawn| now.duration_since(drawn) >= PAUSE) {
            line.drawn = Some(now);
            line.draw(now);
        }
    }

    /// Adds one step.
    pub(crate) fn step(&self) {
        self.change(|line| line.done += 1);
    }

    /// Adds one step with a message.
    pub(crate) fn step_to(&self, message: &str) {
        self.change(|line| {
            line.done += 1;
            message.clone_into(&mut line.message);
        });
    }

    /// Sets the number of steps done.
    pub(crate) fn set(&self, done: u64) {
        self.change(|line| line.done = done);
    }

    /// Calls `print` while the line is not on the terminal.
    pub(crate) fn hide<T>(&self, print: impl FnOnce() -> T) -> T {
        let Some(line) = &self.line else { return print() };
        let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
        line.clear();
        let result = print();
        line.drawn = None;
        result
    }

    /// Removes the line from the terminal.
    pub(crate) fn finish(&self) {
        self.hide(|| ());
    }
}

impl Line {
    /// Draws the line. A terminal that cannot be written to has no progress.
    fn draw(&self, now: Instant) {
        let _: io::Result<()> = write!(io::stderr(), "\r{}\x1b[K", self.text(now - self.start));
    }

    fn clear(&self) {
        if self.drawn.is_some() {
            let _: io::Result<()> = write!(io::stderr(), "\r\x1b[K");
        }
    }

    fn text(&self, elapsed: Duration) -> String {
        let Self { len, done, message, .. } = self;
        let filled = done.saturating_mul(BAR as u64).checked_div(*len).unwrap_or(0);
        let filled = usize::try_from(filled).unwrap_or(BAR).min(BAR);
        let mut text = format!("{}{} {done}/{len}", "█".repeat(filled), "░".repeat(BAR - filled));
        if self.has_rate {
            let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
            let _ = write!(text, " {}/s", done.saturating_mul(1000) / millis);
            let left = len.saturating_sub(*done).saturating_mul(millis).checked_div(*done);
            if let Some(left) = left.filter(|_| *len > *done) {
                let _ = write!(text, ", {} left", in_time(left / 1000));
            }
        }
        // A line that the terminal breaks could not be removed.
        text.extend(" ".chars().chain(visible(message).chars()).take(40));
        text
    }
}

/// Returns a number of seconds in the largest two units.
fn in_time(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Progress};
    use std::time::{Duration, Instant};

    fn text(done: u64, len: u64, message: &str) -> String {
        let start = Instant::now();
        let message = message.to_owned();
        let line = Line { len, done, message, has_rate: true, start, drawn: None };
        line.text(Duration::from_secs(2))
    }

    #[test]
    fn line_has_bar_steps_rate_and_message() {
        let half = format!("{}{}", "█".repeat(15), "░".repeat(15));
        assert_eq!(
            text(50, 100, "net10-windows"),
            format!("{half} 50/100 25/s, 2 s left net10-windows")
        );
        assert!(text(1, 100_000, "x").ends_with(" 1/100000 0/s, 55 h 33 min left x"));
        assert!(text(1, 60, "").ends_with(" 1/60 0/s, 1 min 58 s left "));
        assert_eq!(text(3, 0, ""), format!("{} 3/0 1/s ", "░".repeat(30)));
        assert_eq!(text(9, 1, ""), format!("{} 9/1 4/s ", "█".repeat(30)));
        assert_eq!(text(0, 1, &"x".repeat(300)).chars().count(), 30 + 8 + 40);
    }

    #[test]
    fn hidden_line_counts_nothing() {
        let progress = Progress::with_rate(false, 10, String::new());
        progress.step();
        progress.set(4);
        assert_eq!(progress.hide(|| 7), 7);
        progress.finish();
        assert!(progress.line.is_none());
    }
}
