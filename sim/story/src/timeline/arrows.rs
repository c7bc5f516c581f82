//! The lanes of one row: a glyph for the status of each thread, and arrows between threads.

use super::fold::Link;
use super::rows::{TimelineSpan, Tone};
use super::state::{Life, State};
use clr_explore::ThreadIndex;

/// The lanes of a row, as characters.
pub(super) struct Lanes {
    /// Width of a lane in characters.
    pitch: usize,
    characters: Vec<(char, Tone)>,
}

impl Lanes {
    /// Returns the width of each lane, for this number of lanes and this total width of a row.
    pub(super) const fn pitch(lanes: usize, width: usize) -> usize {
        match width / 3 / (if lanes == 0 { 1 } else { lanes }) {
            0..=2 => 2,
            3 => 3,
            _ => 4,
        }
    }

    /// Draws the status of the threads. The threads in `running` have a turn.
    pub(super) fn new(pitch: usize, states: &[State<'_>], running: &[ThreadIndex]) -> Self {
        let mut characters = vec![(' ', Tone::Plain); pitch * states.len()];
        for (lane, state) in states.iter().enumerate() {
            let runs = running.contains(&ThreadIndex(lane as u32));
            if let Some(cell) = characters.get_mut(lane * pitch) {
                *cell = glyph(state, runs);
            }
            if let Some(cell) = characters.get_mut(lane * pitch + 1) {
                *cell = (mark(state.holds.len()), Tone::Lock);
            }
        }
        Self { pitch, characters }
    }

    /// Draws an arrow from one lane to another.
    pub(super) fn draw(&mut self, link: Link) {
        let (from, to) = (link.from.index() * self.pitch, link.to.index() * self.pitch);
        let (dash, to_right, to_left, tone) = if link.waits {
            ('┄', '▷', '◁', Tone::Waiting)
        } else {
            ('─', '▶', '◀', Tone::Suspended)
        };
        for place in from.min(to) + 1..from.max(to) {
            let Some(cell) = self.characters.get_mut(place) else { continue };
            let head = if from < to { place + 1 == to } else { place == to + 1 };
            let crossing = place % self.pitch == 0;
            let char = match cell.0 {
                _ if head && from < to => to_right,
                _ if head => to_left,
                '│' if crossing => '┼',
                there if crossing && there != ' ' => there,
                _ => dash,
            };
            *cell = (char, tone);
        }
    }

    /// Returns the lanes as spans.
    pub(super) fn spans(&self) -> Vec<TimelineSpan> {
        let mut spans: Vec<TimelineSpan> = Vec::new();
        for (char, tone) in &self.characters {
            match spans.last_mut() {
                Some(span) if span.tone == *tone => span.text.push(*char),
                _ => spans.push(TimelineSpan::new(char.to_string(), *tone)),
            }
        }
        spans
    }
}

const fn mark(locks: usize) -> char {
    match locks {
        0 => ' ',
        1 => '\'',
        2 => '"',
        _ => '*',
    }
}

fn glyph(state: &State<'_>, runs: bool) -> (char, Tone) {
    match state.life {
        _ if runs && state.inside.is_empty() => ('●', Tone::Running),
        _ if runs => ('◆', Tone::Callback),
        Life::Waiting | Life::Ended => (' ', Tone::Plain),
        Life::Lives if state.is_suspended() => ('▒', Tone::Suspended),
        Life::Lives if state.is_waiting() => ('┊', Tone::Waiting),
        Life::Lives if state.inside.is_empty() => ('│', Tone::Dim),
        Life::Lives => ('║', Tone::Callback),
    }
}
