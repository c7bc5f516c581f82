//! Line wrapping.

/// A blank at which a line must not be broken.
pub(super) const GLUE: char = '\u{a0}';

/// Wraps text into lines of at most `width` characters, unless a word is longer.
#[must_use]
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let is_blank = |c: char| c.is_whitespace() && c != GLUE;
    for word in text.split(is_blank).filter(|word| !word.is_empty()) {
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

/// Wraps text like [`wrapped`], and splits longer words. [`GLUE`] becomes a blank.
pub(super) fn fitted(text: &str, width: usize) -> Vec<String> {
    let mut pieces = String::new();
    let mut len = 0;
    for c in text.chars() {
        len = if c == ' ' { 0 } else { len + 1 };
        if len > width.max(1) {
            pieces.push(' ');
            len = 1;
        }
        pieces.push(c);
    }
    wrapped(&pieces, width).into_iter().map(|line| line.replace(GLUE, " ")).collect()
}

/// Returns at most `width` characters; an ellipsis replaces the rest.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}
