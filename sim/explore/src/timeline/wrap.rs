//! Line wrapping.

/// A blank at which a line must not be broken.
pub(super) const GLUE: char = '\u{a0}';

/// Wraps text into lines of at most `width` characters; a longer word is split.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut room = width;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let gap = usize::from(!line.is_empty());
        if word.chars().count() + gap > room && gap == 1 {
            lines.push(core::mem::take(&mut line));
            room = width;
        }
        if !line.is_empty() {
            line.push(' ');
            room = room.saturating_sub(1);
        }
        for char in word.chars() {
            if room == 0 {
                lines.push(core::mem::take(&mut line));
                room = width;
            }
            line.push(if char == GLUE { ' ' } else { char });
            room -= 1;
        }
    }
    lines.push(line);
    lines
}

/// Returns at most `width` characters; an ellipsis replaces the rest.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}
