//! The one place that knows what a terminal shows of a line: longer ones are broken at blanks.

use std::io::{self, Write};
use std::mem::take;

/// Characters by which the parts of a broken line are indented beyond its begin.
const STEP: usize = 4;

/// What ends a part of a command line that goes on in the next line.
const GOES_ON: &str = " \\";

/// What begins a command for people to copy.
const COMMAND: &str = ": clrsim ";

/// A stream whose lines have at most `width` characters, if words allow it. Styles have no width.
pub(crate) struct Fit<W: Write> {
    inner: W,
    /// `None` if lines may have any width.
    width: Option<usize>,
    /// The begin of a line.
    held: Vec<u8>,
    /// A part of the line was written before its end.
    is_within: bool,
}

impl<W: Write> Fit<W> {
    pub(crate) const fn new(inner: W, width: Option<usize>) -> Self {
        Self { inner, width, held: Vec::new(), is_within: false }
    }
}

impl<W: Write> Write for Fit<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(width) = self.width else {
            self.inner.write_all(bytes)?;
            return Ok(bytes.len());
        };
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.held.extend_from_slice(part);
            if !part.ends_with(b"\n") {
                break;
            }
            let line = take(&mut self.held);
            match str::from_utf8(&line) {
                Ok(line) if !take(&mut self.is_within) => {
                    self.inner.write_all(fitted(line, width).as_bytes())?;
                }
                _ => self.inner.write_all(&line)?,
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let begin = take(&mut self.held);
        self.is_within |= !begin.is_empty();
        self.inner.write_all(&begin)?;
        self.inner.flush()
    }
}

/// Returns a line in parts, each on a line of its own. A command goes on after a backslash, as shells read it.
fn fitted(line: &str, width: usize) -> String {
    let indent = line.chars().take_while(|char| *char == ' ').count();
    let indent = (indent + STEP).min(width / 2);
    let command = line.find(COMMAND).map(|at| at + COMMAND.len());
    let spare = if command.is_some() { GOES_ON.len() } else { 0 };
    let (mut fitted, mut rest) = (String::with_capacity(line.len() + indent), line);
    let mut begin = 0;
    while let Some(at) = place(rest, width.saturating_sub(begin), spare) {
        let (part, after) = rest.split_at(at);
        let is_in_command = command.is_some_and(|at| at <= line.len() - after.len());
        fitted.push_str(&" ".repeat(begin));
        fitted.push_str(part.trim_end_matches(' '));
        fitted.push_str(if is_in_command { GOES_ON } else { "" });
        fitted.push('\n');
        rest = after.trim_start_matches(' ');
        begin = indent;
    }
    fitted + &" ".repeat(begin) + rest
}

/// Returns the place of the blank at which a text is broken that is wider than `room`: the last one that leaves `spare`
/// characters, or else the first one.
fn place(text: &str, room: usize, spare: usize) -> Option<usize> {
    let (mut width, mut is_escape, mut has_word, mut found) = (0, false, false, None);
    for (at, char) in text.char_indices() {
        match char {
            '\n' | '\r' => {}
            '\x1b' => is_escape = true,
            _ if is_escape => is_escape = !char.is_ascii_alphabetic(),
            ' ' => {
                if has_word
                    && (found.is_none() || width + spare <= room)
                    && !text[at..].trim_end().is_empty()
                {
                    found = Some(at);
                }
                width += 1;
            }
            _ => {
                has_word = true;
                width += 1;
            }
        }
    }
    found.filter(|_| width > room)
}

#[cfg(test)]
mod tests {
    use super::Fit;
    use std::io::Write as _;

    fn fit(text: &str, width: usize) -> String {
        let mut fit = Fit::new(Vec::new(), Some(width));
        for piece in text.as_bytes().chunks(7) {
            fit.write_all(piece).unwrap();
        }
        fit.flush().unwrap();
        String::from_utf8(fit.inner).unwrap()
    }

    #[test]
    fn lines_are_broken_at_blanks() {
        assert_eq!(fit("a bc de\n", 7), "a bc de\n");
        assert_eq!(fit("a bc de\n", 6), "a bc\n   de\n");
        assert_eq!(fit("  one  two  three\n", 12), "  one  two\n      three\n");
        assert_eq!(fit("abcdefghij klm\n", 4), "abcdefghij\n  klm\n", "a long word");
        assert_eq!(fit("\x1b[1mbold\x1b[0m text\n", 9), "\x1b[1mbold\x1b[0m text\n");
        assert_eq!(fit("no end of it", 4), "no end of it", "an unfinished line");
    }

    #[test]
    fn commands_can_be_copied() {
        let line = "  again: clrsim replay my.kdl --rules --seed 7\n";
        let fitted = fit(line, 31);
        assert_eq!(fitted, "  again: clrsim replay my.kdl \\\n      --rules --seed 7\n");
        assert_eq!(fitted.replace(" \\\n      ", " "), line);
    }
}
