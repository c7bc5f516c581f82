//! The one way of texts to people: what a terminal would obey is shown, and not done.

use super::style::sequence;
use clr_explore::is_visible;
use std::io::{self, Write};
use std::mem::take;

/// A stream of text. Marks of styles become sequences for terminals; control characters and those that change the
/// direction or layout become `\u{…}`, but for line ends and tabs.
pub(crate) struct Clean<W: Write> {
    inner: W,
    /// Bytes whose meaning the next ones decide: the begin of a letter, or a CR.
    held: Vec<u8>,
}

impl<W: Write> Clean<W> {
    pub(crate) const fn new(inner: W) -> Self {
        Self { inner, held: Vec::new() }
    }

    /// Writes all but the bytes whose meaning is not decided.
    fn pass(&mut self, is_end: bool) -> io::Result<()> {
        let bytes = take(&mut self.held);
        let mut safe = String::with_capacity(bytes.len());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            let is_last = chunks.peek().is_none() && !is_end;
            let valid = chunk.valid();
            let valid = match valid.strip_suffix('\r') {
                Some(before) if is_last && chunk.invalid().is_empty() => {
                    self.held = b"\r".to_vec();
                    before
                }
                _ => valid,
            };
            push_visible(&mut safe, valid);
            let invalid = chunk.invalid();
            let is_begin = str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if is_last && is_begin {
                self.held = invalid.to_vec();
            } else if !invalid.is_empty() {
                safe.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.inner.write_all(safe.as_bytes())
    }
}

impl<W: Write> Write for Clean<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
        if self.held.is_empty() && bytes.iter().all(is_plain) {
            self.inner.write_all(bytes)?;
        } else {
            self.held.extend_from_slice(bytes);
            self.pass(false)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass(true)?;
        self.inner.flush()
    }
}

/// Adds a text, in which each line end may be a CR and an LF.
fn push_visible(to: &mut String, text: &str) {
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let is_line_end = char == '\r' && chars.peek() == Some(&'\n');
        match sequence(char) {
            Some(sequence) => to.push_str(&sequence),
            None if is_visible(char) || is_line_end || matches!(char, '\n' | '\t') => to.push(char),
            None => to.extend(char.escape_unicode()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Clean;
    use crate::render::console::BAD;
    use std::io::Write as _;

    /// Returns what comes of a text that is written in pieces of a size.
    fn clean(text: &[u8], size: usize) -> String {
        let mut clean = Clean::new(Vec::new());
        for piece in text.chunks(size) {
            clean.write_all(piece).unwrap();
        }
        clean.flush().unwrap();
        String::from_utf8(clean.inner).unwrap()
    }

    #[test]
    fn what_a_terminal_obeys_is_shown() {
        for (text, shown) in [
            ("plain\ttext\r\nof two lines\n", "plain\ttext\r\nof two lines\n"),
            ("a\rb\r", "a\\u{d}b\\u{d}"),
            ("\x1b]0;x\x07\x1b[31m\x7f", "\\u{1b}]0;x\\u{7}\\u{1b}[31m\\u{7f}"),
            ("\u{9b}31m\u{202e}Größe🦀", "\\u{9b}31m\\u{202e}Größe🦀"),
        ] {
            for size in 1..=text.len() {
                assert_eq!(clean(text.as_bytes(), size), shown, "{size}");
            }
        }
    }

    #[test]
    fn styles_pass_and_bytes_that_are_no_text_do_not() {
        let text = format!("{BAD}bad{BAD:#}");
        for size in 1..=text.len() {
            assert_eq!(clean(text.as_bytes(), size), "\x1b[1m\x1b[31mbad\x1b[0m");
        }
        for (bytes, shown) in
            [(&b"a\xffb\xc3"[..], "a\u{fffd}b\u{fffd}"), (b"\x9b31m", "\u{fffd}31m")]
        {
            for size in 1..=bytes.len() {
                assert_eq!(clean(bytes, size), shown, "{size}");
            }
        }
    }
}
