//! Drawings of histories: threads as lanes over time.
//!
//! [`Timeline::rows`] is for the terminal: time runs downwards, and uninteresting parts are folded.
//! [`Timeline::page`] is a self-contained HTML file: it shows the status of every thread at a
//! selected moment.

mod arrows;
mod fold;
mod json;
mod page;
mod rows;
mod state;
#[cfg(test)]
mod tests;
pub(super) mod words;
mod wrap;

pub use rows::{TimelineRow, TimelineSpan, Tone};
pub use wrap::wrapped;

use clr_explore::{Edge, History};

/// The data of a drawing.
#[derive(Clone, Copy, Debug)]
pub struct Timeline<'h> {
    /// History to draw. Without the thread statuses of its turns there are no stacks, and the other
    /// data is derived from the turn events.
    pub history: &'h History,
    /// Title of the drawing.
    pub title: &'h str,
    /// Description of the end; empty if the interleaving ended normally.
    pub ending: &'h str,
    /// Waits between threads at the end.
    pub edges: &'h [Edge],
    /// Schedule string that reproduces the interleaving.
    pub replay: Option<&'h str>,
    /// Further facts, each with its name: the runtime, the hazard, and what avoids it.
    pub facts: &'h [(&'h str, &'h str)],
}

/// Options of the rows for the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowOptions {
    /// Maximum width in characters, if the lanes leave room for some words.
    pub width: usize,
    /// Fold uninteresting parts into one row, and draw repetitions once.
    pub fold: bool,
    /// Number of frames of each stack that are printed at the end.
    pub frames: usize,
}

impl Default for RowOptions {
    fn default() -> Self {
        Self { width: 100, fold: true, frames: 8 }
    }
}

impl Timeline<'_> {
    /// Draws the interleaving for the terminal.
    #[must_use]
    pub fn rows(&self, shape: RowOptions) -> Vec<TimelineRow> {
        rows::rows(self, shape)
    }

    /// Draws the interleaving as one HTML file.
    #[must_use]
    pub fn page(&self) -> String {
        page::page(self)
    }
}
