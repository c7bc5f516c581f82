//! A text in an editor: positions, and what is around the cursor.

use crate::commands::lsp::scan::{Around, around};
use clr_scenario::Span;
use lsp_types::{Position, Range};

/// A text in an editor.
#[derive(Clone, Debug, Default)]
pub(super) struct Document {
    pub(super) text: String,
}

impl Document {
    /// Returns the position of a byte offset. Columns are counted in UTF-16 code units, as the protocol does unless both
    /// sides agree otherwise.
    pub(super) fn position(&self, offset: usize) -> Position {
        let offset =
            (0..=offset.min(self.text.len())).rev().find(|at| self.text.is_char_boundary(*at));
        let before = self.text.get(..offset.unwrap_or_default()).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count();
        let column = before.get(line_start..).unwrap_or_default().encode_utf16().count();
        Position::new(line as u32, column as u32)
    }

    /// Returns the byte offset of a position. Positions behind the end of a line are its end.
    pub(super) fn offset(&self, position: Position) -> usize {
        let mut start = 0;
        for line in self.text.split_inclusive('\n').take(position.line as usize) {
            start += line.len();
        }
        let line =
            self.text.get(start..).unwrap_or_default().split('\n').next().unwrap_or_default();
        let mut units = 0;
        for (at, char) in line.char_indices() {
            if units >= position.character as usize {
                return start + at;
            }
            units += char.len_utf16();
        }
        start + line.len()
    }

    /// Returns the range of a part of the text.
    pub(super) fn range(&self, span: Span) -> Range {
        Range::new(self.position(span.offset), self.position(span.end()))
    }

    /// Returns the range of the whole text.
    pub(super) fn whole(&self) -> Range {
        Range::new(Position::default(), self.position(self.text.len()))
    }

    /// Returns the range of a line without its margin, by its number from 1.
    pub(super) fn line(&self, number: u64) -> Range {
        let line = number.saturating_sub(1) as u32;
        let text = self.text.lines().nth(line as usize).unwrap_or_default();
        let margin = text.len() - text.trim_start().len();
        let end = text.trim_end().encode_utf16().count() as u32;
        Range::new(Position::new(line, (margin as u32).min(end)), Position::new(line, end))
    }

    /// Returns what is around a position.
    pub(super) fn around(&self, position: Position) -> Around<'_> {
        around(&self.text, self.offset(position))
    }

    /// Returns the word at a position: letters, digits and the signs of ids.
    pub(super) fn word(&self, position: Position) -> &str {
        let at = self.offset(position);
        let is_part = |char: &char| char.is_alphanumeric() || "-_.\u{A7}".contains(*char);
        let (before, after) = self.text.split_at(at);
        let start: usize = before.chars().rev().take_while(is_part).map(char::len_utf8).sum();
        let end: usize = after.chars().take_while(is_part).map(char::len_utf8).sum();
        self.text.get(at - start..at + end).unwrap_or_default()
    }
}
