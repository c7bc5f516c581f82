//! Streams and styles of the output.

use crate::interrupt;
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::style::Style;
use anstyle::AnsiColor;
use std::io::{self, ErrorKind, Write};

/// Style of errors.
pub(crate) const BAD: Style = Style::of(AnsiColor::Red).bold();
/// Style of success.
pub(crate) const GOOD: Style = Style::of(AnsiColor::Green).bold();
/// Style of headings.
pub(crate) const HEAD: Style = Style::new().bold();
/// Style of details.
pub(crate) const DIM: Style = Style::new().dimmed();

/// The streams of a command, which [`clean`](super::clean) all texts. Styles are always written; the streams remove
/// them if necessary.
pub(crate) struct Console<'w> {
    /// Stream of results.
    pub(crate) out: &'w mut dyn Write,
    /// Stream of errors.
    pub(crate) err: &'w mut dyn Write,
    /// True if progress may be drawn on the terminal.
    pub(crate) progress: bool,
    /// True if results are objects of JSON: then errors are, too.
    pub(crate) json: bool,
    /// True if commands may handle the signals of the process.
    pub(crate) owns_signals: bool,
}

impl Console<'_> {
    /// Handles Ctrl-C from now on, for a search that can end early.
    pub(crate) fn watch_interrupts(&self) {
        if self.owns_signals {
            interrupt::watch();
        }
    }

    /// Prints an error. A failure to print it is ignored: the exit code is left.
    pub(crate) fn print_error(&mut self, error: &CliError) {
        let _: io::Result<()> = write!(self.err, "{}", error.render(self.progress));
        if self.json {
            for diagnostic in error.diagnostics() {
                let _: Result<(), CliError> = write_json(&diagnostic, self);
            }
        }
    }
}

/// A stream whose reader may close it, as `head` does. Later output is dropped, and the exit code
/// stays right.
pub(crate) struct Quiet<W> {
    inner: W,
    closed: bool,
}

impl<W> Quiet<W> {
    /// Creates a stream that writes to `inner` until it is closed.
    pub(crate) const fn new(inner: W) -> Self {
        Self { inner, closed: false }
    }
}

impl<W: Write> Write for Quiet<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed {
            return Ok(bytes.len());
        }
        match self.inner.write(bytes) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(bytes.len())
            }
            result => result,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        match self.inner.flush() {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            result => result,
        }
    }
}
