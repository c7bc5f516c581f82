//! Word wrapping.

use crate::render::console::DIM;
use crate::render::style::Style;
pub(crate) use clr_story::timeline::wrapped;
use std::io::{self, Write};
use std::sync::OnceLock;

/// Width of printed texts in characters where no terminal is narrower.
const WIDE: usize = 100;
/// Width of short texts beside tables, in the same way.
const NARROW: usize = 80;
/// Smallest width: a narrower terminal counts as this one.
const LEAST: usize = 40;

/// Width of the terminal; empty if the output goes elsewhere.
static TERMINAL: OnceLock<usize> = OnceLock::new();

/// Sets the width of the terminal, once: COLUMNS if it is a number, else what the system says. A pipe
/// has no width unless COLUMNS gives it one.
pub(crate) fn fit_terminal(columns: Option<&str>, terminal: Option<usize>) {
    let columns = columns.and_then(|columns| columns.trim().parse().ok());
    if let Some(width) = columns.or(terminal).filter(|width| *width > 0) {
        // A second call would be a mistake, and changes nothing.
        let _: Result<(), usize> = TERMINAL.set(width.max(LEAST));
    }
}

/// Returns the width of the terminal, if the output goes to one.
pub(crate) fn terminal() -> Option<usize> {
    TERMINAL.get().copied()
}

/// Returns the width of printed texts in characters.
pub(crate) fn width() -> usize {
    room().min(WIDE)
}

/// Returns the width of short texts beside tables in characters.
pub(crate) fn narrow() -> usize {
    room().min(NARROW)
}

/// Returns the characters that a line of a table may have: without a terminal, any number.
pub(crate) fn room() -> usize {
    TERMINAL.get().copied().unwrap_or(usize::MAX)
}

/// Writes a text in lines of [`width`], all but the first indented by `indent`. The brackets after
/// the text are dimmed.
pub(crate) fn write_wrapped(
    out: &mut dyn Write,
    indent: usize,
    style: Style,
    text: &str,
    brackets: &str,
) -> io::Result<()> {
    write_within(out, width(), indent, style, text, brackets)
}

/// Writes a text like [`write_wrapped`] in lines of `width` characters.
pub(crate) fn write_within(
    out: &mut dyn Write,
    width: usize,
    indent: usize,
    style: Style,
    text: &str,
    brackets: &str,
) -> io::Result<()> {
    let gap = if brackets.is_empty() { "" } else { " " };
    let lines = wrapped(&format!("{text}{gap}{brackets}"), width.saturating_sub(indent));
    let text = lines.join(&format!("\n{:indent$}", ""));
    match text.rfind('[').filter(|_| !brackets.is_empty()) {
        Some(at) => {
            writeln!(out, "{style}{}{style:#}{DIM}{}{DIM:#}", &text[..at], &text[at..])
        }
        None => writeln!(out, "{style}{text}{style:#}"),
    }
}
