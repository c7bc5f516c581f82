//! A history drawn: threads as lanes over time.
//!
//! [`Timeline::rows`] is for the terminal: time goes downwards, what is dull is folded.
//! [`Timeline::page`] is one HTML file that needs nothing beside itself: a moment is chosen, and how
//! every thread stands at that moment is shown.

mod arrows;
mod fold;
mod json;
mod page;
mod rows;
mod state;
pub(super) mod words;
mod wrap;

pub use rows::{Row, Span, Tone};

use crate::{Edge, History};

/// What is to be drawn.
#[derive(Clone, Copy, Debug)]
pub struct Timeline<'h> {
    /// What happened. Without the standings of its slices there are no stacks, and the rest is worked
    /// out from what happened.
    pub history: &'h History,
    /// What it is a history of.
    pub title: &'h str,
    /// How it ended, in words; empty if it went well.
    pub ending: &'h str,
    /// Who waits for whom at the end.
    pub edges: &'h [Edge],
    /// What makes it again.
    pub replay: Option<&'h str>,
}

/// How the rows for the terminal are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How wide they are at most, in characters, if the lanes leave room for some words.
    pub width: usize,
    /// What is dull is put together in one row, and what repeats itself is drawn once.
    pub fold: bool,
    /// How many frames of each stack are shown at the end.
    pub frames: usize,
}

impl Default for Shape {
    fn default() -> Self {
        Self { width: 100, fold: true, frames: 8 }
    }
}

impl Timeline<'_> {
    /// It for the terminal.
    #[must_use]
    pub fn rows(&self, shape: Shape) -> Vec<Row> {
        rows::rows(self, shape)
    }

    /// It as one HTML file.
    #[must_use]
    pub fn page(&self) -> String {
        page::page(self)
    }
}
