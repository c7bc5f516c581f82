//! Scores of a walker: sums over walks, by chapter and in total.

use super::WalkerVerdict;
use core::fmt;
use core::ops::AddAssign;
use std::collections::BTreeMap;

/// Sums over walks. Frames are managed frames that the runtime reports to profilers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Number of threads that were walked, each text's on each of its runtimes.
    pub walks: u64,
    /// Number of walks that found every frame, and claim to.
    pub complete: u64,
    /// Number of walks that ended with an error.
    pub gave_up: u64,
    /// Number of walks without an error that missed a frame, or found a wrong one.
    pub false_claims: u64,
    /// Number of frames on the stacks.
    pub frames: u64,
    /// Number of these that were found.
    pub found: u64,
    /// Number of these that were not found.
    pub missing: u64,
    /// Number of frames found that are not on the stack, or are out of order.
    pub wrong: u64,
}

impl Score {
    /// Returns the share of frames that were found, in percent, rounded down; 100 if there were none.
    pub const fn percent(&self) -> u64 {
        match (self.found * 100).checked_div(self.frames) {
            Some(percent) => percent,
            None => 100,
        }
    }
}

impl AddAssign for Score {
    fn add_assign(&mut self, other: Self) {
        self.walks += other.walks;
        self.complete += other.complete;
        self.gave_up += other.gave_up;
        self.false_claims += other.false_claims;
        self.frames += other.frames;
        self.found += other.found;
        self.missing += other.missing;
        self.wrong += other.wrong;
    }
}

/// Scores by chapter: the first folder of a text's name, as `hazards` of `hazards/h-08-log-in-suspension`.
///
/// The text form is a Markdown table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scores {
    chapters: BTreeMap<String, Score>,
}

impl Scores {
    /// Adds the walks of a text.
    pub fn add(&mut self, name: &str, verdicts: &[WalkerVerdict]) {
        let chapter = name.split_once('/').map_or("", |(chapter, _)| chapter);
        let score = self.chapters.entry(chapter.to_owned()).or_default();
        for verdict in verdicts {
            *score += verdict.score();
        }
    }

    /// Returns the scores by chapter, ascending by name. Texts outside of folders have the name "".
    pub fn chapters(&self) -> impl Iterator<Item = (&str, Score)> {
        self.chapters.iter().map(|(name, score)| (&**name, *score))
    }

    /// Returns the score of all chapters.
    pub fn total(&self) -> Score {
        let mut total = Score::default();
        for score in self.chapters.values() {
            total += *score;
        }
        total
    }
}

/// The head of the table.
const HEAD: [&str; 9] = [
    "chapter",
    "walks",
    "complete",
    "gave up",
    "false claims",
    "frames",
    "found",
    "missing",
    "wrong",
];

impl fmt::Display for Scores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.chapters().filter(|(_, score)| score.walks > 0);
        let rows: Vec<_> = rows.chain([("total", self.total())]).collect();
        let names = rows.iter().map(|(name, _)| name.chars().count());
        let width = names.chain([HEAD[0].len()]).max().unwrap_or_default();
        let [first, numbers @ ..] = HEAD;
        write!(f, "| {first:width$} |")?;
        numbers.iter().try_for_each(|name| write!(f, " {name:>8} |"))?;
        write!(f, "\n| {:-<width$} |", "")?;
        numbers
            .iter()
            .try_for_each(|name| write!(f, " {:->len$}: |", "", len = name.len().max(8) - 1))?;
        for (name, score) in rows {
            let Score { walks, complete, gave_up, false_claims, frames, found, missing, wrong } =
                score;
            let cells = [walks, complete, gave_up, false_claims, frames, found, missing, wrong];
            write!(f, "\n| {name:width$} |")?;
            for (cell, name) in cells.iter().zip(numbers) {
                write!(f, " {cell:>len$} |", len = name.len().max(8))?;
            }
        }
        writeln!(f)
    }
}
