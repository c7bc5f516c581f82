//! Descriptions of interleavings, made in the copy of the process in which an interleaving is executed.

use super::super::journal::{Found, Line, Walked};
use super::coverage::Covered;
use crate::report::history::{Facts, Failed, write_row};
use clr_explore::headline;
use clr_explore::{Edge, History, Verdict};
use clr_guest::scheduled::Executed;
use clr_story::story;
use clr_story::timeline::{RowOptions, Timeline, TimelineRow};
use clrsim::{Entry, Journal};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// An interleaving.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(super) struct Description {
    /// The verdict with its waits and its hazard, if there is one: an object of JSON.
    pub(super) failed: Option<Box<RawValue>>,
    /// Mistakes of the profiler that are no verdict of the search.
    pub(super) findings: Vec<Found>,
    /// The walks of stacks, with the runtime's decisions.
    pub(super) walks: Vec<Walked>,
    /// The calls and threads of the interleaving, in words.
    pub(super) covered: Vec<Covered>,
    /// The story of the failure in lines, with colours.
    pub(super) story: Vec<String>,
    /// The drawing, with colours.
    pub(super) rows: Vec<String>,
    /// The drawing as a page.
    pub(super) page: Option<String>,
}

/// The drawings of an interleaving that are wanted.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(super) struct Drawing {
    /// The width of the rows in characters, if there are to be any, and true if turns are put together.
    pub(super) rows: Option<(usize, bool)>,
    pub(super) page: bool,
    /// The command that replays the interleaving.
    pub(super) replay: String,
    /// The name of the runtime.
    pub(super) runtime: String,
}

/// The walks of an interleaving, written down in the copy of the process.
#[derive(Clone, Default)]
pub(super) struct Walks(Arc<(AtomicBool, Mutex<Vec<Walked>>)>);

impl Walks {
    /// Says whether walks are to be written down.
    pub(super) fn write_down(&self, are: bool) {
        self.0.0.store(are, Ordering::Relaxed);
    }

    fn take(&self) -> Vec<Walked> {
        std::mem::take(&mut self.0.1.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Journal for Walks {
    fn write(&self, entry: &Entry<'_>) {
        if !self.0.0.load(Ordering::Relaxed) {
            return;
        }
        if let Some(Line::Walked(walk)) = Line::new(entry) {
            self.0.1.lock().unwrap_or_else(PoisonError::into_inner).push(walk);
        }
    }
}

impl Description {
    /// Describes an interleaving of a text with this title.
    pub(super) fn new(
        executed: &Executed<'_>,
        walks: &Walks,
        title: &str,
        drawing: &Drawing,
    ) -> Self {
        let verdict = executed.ending.verdict.as_ref();
        let empty = History::default();
        let history = executed.ending.history.as_ref().unwrap_or(&empty);
        let failed = verdict.map(|verdict| Failed::new(verdict, history));
        let failed = failed.and_then(|failed| serde_json::value::to_raw_value(&failed).ok());
        let found = |finding: &clrsim::Finding| Found {
            finding: finding.kind().to_owned(),
            text: finding.to_string(),
        };
        let covered = Covered::of(executed.coverage);
        let (rows, page) = drawing.draw(verdict, history, &covered, title);
        Self {
            failed,
            findings: executed.findings.iter().map(found).collect(),
            walks: walks.take(),
            covered,
            story: lines(&verdict.map(|verdict| story(verdict, history)).unwrap_or_default()),
            rows,
            page,
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a description. One that was lost with its process is empty.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let (failed, page) = (None, None);
        let (findings, walks, covered, story, rows) = Default::default();
        let empty = Self { failed, findings, walks, covered, story, rows, page };
        serde_json::from_slice(bytes).unwrap_or(empty)
    }
}

impl Drawing {
    fn draw(
        &self,
        verdict: Option<&Verdict>,
        history: &History,
        covered: &[Covered],
        title: &str,
    ) -> (Vec<String>, Option<String>) {
        let edges: &[Edge] = match verdict {
            Some(Verdict::Deadlock(edges)) => edges,
            _ => &[],
        };
        let ending = verdict.map(|verdict| headline(verdict, history)).unwrap_or_default();
        let facts = Facts::new(&self.runtime, verdict, history);
        let mut facts = facts.as_pairs();
        facts.extend(covered.iter().map(|covered| (covered.what.as_str(), covered.text.as_str())));
        let (ending, replay) = (ending.as_str(), Some(self.replay.as_str()));
        let drawn = Timeline { history, title, ending, edges, replay, facts: &facts };
        let options = |(width, fold)| RowOptions { width, fold, ..RowOptions::default() };
        let rows = self.rows.map(|rows| lines(&drawn.rows(options(rows)))).unwrap_or_default();
        (rows, self.page.then(|| drawn.page()))
    }
}

/// Returns rows with colours, which the console drops where they are not wanted.
fn lines(rows: &[TimelineRow]) -> Vec<String> {
    let line = |row: &TimelineRow| {
        let mut line = Vec::new();
        let written = write_row(row, 0, &mut line);
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        written.map(|()| line).unwrap_or_default()
    };
    rows.iter().map(line).collect()
}
