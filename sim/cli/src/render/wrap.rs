//! Word wrapping.

use crate::render::console::DIM;
use anstyle::Style;
use std::io::{self, Write};

/// Width of printed texts in characters, the same as that of the help.
pub(crate) const WIDTH: usize = 100;

/// Wraps a text into lines of at most `width` characters, unless a word is longer.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(core::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// Writes a text in lines of [`WIDTH`], all but the first indented by `indent`. The brackets after
/// the text are dimmed.
pub(crate) fn write_wrapped(
    out: &mut dyn Write,
    indent: usize,
    style: Style,
    text: &str,
    brackets: &str,
) -> io::Result<()> {
    write_within(out, WIDTH, indent, style, text, brackets)
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

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn lines_are_no_wider_than_asked() {
        assert_eq!(wrapped("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrapped("one two", 6), ["one", "two"]);
        assert_eq!(wrapped("a longer one", 3), ["a", "longer", "one"]);
        assert_eq!(wrapped("", 3), [""]);
    }
}
