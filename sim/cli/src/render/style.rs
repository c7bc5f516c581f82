//! Styles of the output, as marks that no text of others turns into.
//!
//! A style is written as noncharacters of Unicode, which [`Clean`](super::clean::Clean) turns into sequences for terminals.
//! So a sequence that a terminal obeys can come from here alone.

use anstyle::{AnsiColor, Style as Ansi};
use std::fmt::{self, Display};

/// The first mark. It and the next 31 stand for numbers of SGR: 0 to 7, 30 to 37, 90 to 97.
const MARKS: u32 = 0xFDD0;

/// The numbers that the marks stand for: the first of eight each.
const NUMBERS: [u32; 3] = [0, 30, 90];

/// A style of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style(Ansi);

impl Style {
    /// Creates the style of plain text.
    pub(crate) const fn new() -> Self {
        Self(Ansi::new())
    }

    /// Creates the style of text in a colour.
    pub(crate) const fn of(colour: AnsiColor) -> Self {
        Self(colour.on_default())
    }

    pub(crate) const fn bold(self) -> Self {
        Self(self.0.bold())
    }

    pub(crate) const fn dimmed(self) -> Self {
        Self(self.0.dimmed())
    }
}

/// Writes the marks at the beginning of a text; with `#`, those at its end.
impl Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sequences = if f.alternate() {
            self.0.render_reset().to_string()
        } else {
            self.0.render().to_string()
        };
        f.write_str(&marked(&sequences))
    }
}

/// Returns a text of other crates with marks in place of their styles. Other sequences stay what they are.
pub(crate) fn marked(text: &str) -> String {
    let mut marked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        let (before, sequence) = rest.split_at(at);
        marked.push_str(before);
        let Some(end) = sequence.find('m').filter(|end| is_numbers(&sequence[2..*end])) else {
            let (begin, after) = sequence.split_at(2);
            marked.push_str(begin);
            rest = after;
            continue;
        };
        let numbers = sequence[2..end].split(';').filter_map(|number| number.parse().ok());
        marked.extend(numbers.filter_map(mark));
        rest = &sequence[end + 1..];
    }
    marked + rest
}

fn is_numbers(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b';')
}

/// Returns the mark of a number of SGR.
fn mark(number: u32) -> Option<char> {
    let (first, at) =
        NUMBERS.iter().zip(0..).find(|(first, _)| (**first..**first + 8).contains(&number))?;
    char::from_u32(MARKS + 8 * at + number - first)
}

/// Returns the sequence for terminals that a mark stands for.
pub(super) fn sequence(mark: char) -> Option<String> {
    let place = u32::from(mark).checked_sub(MARKS)?;
    let first = NUMBERS.get(usize::try_from(place / 8).ok()?)?;
    Some(format!("\x1b[{}m", first + place % 8))
}

/// Returns a text without styles.
pub(crate) fn unstyled(text: &str) -> String {
    text.chars().filter(|char| sequence(*char).is_none()).collect()
}

#[cfg(test)]
mod tests {
    use super::{Style, marked, sequence, unstyled};
    use anstyle::AnsiColor;

    #[test]
    fn styles_become_marks_and_sequences_again() {
        let style = Style::of(AnsiColor::BrightCyan).bold().dimmed();
        let text = format!("{style}x{style:#}");
        assert!(!text.contains('\x1b'), "{text:?}");
        let sequences: String =
            text.chars().map(|char| sequence(char).unwrap_or_else(|| char.to_string())).collect();
        assert_eq!(sequences, "\x1b[1m\x1b[2m\x1b[96mx\x1b[0m");
        assert_eq!(unstyled(&text), "x");
        assert_eq!(marked(&sequences), text);
        assert_eq!(Style::new().to_string(), "");
    }

    #[test]
    fn other_sequences_are_no_styles() {
        for text in ["\x1b]0;x\x07", "\x1b[2J", "\x1b[", "\x1b[3", "a\x1b[ 1m"] {
            assert_eq!(marked(text), text);
        }
        assert_eq!(marked("\x1b[8;1mx"), marked("\x1b[1mx"));
    }
}
