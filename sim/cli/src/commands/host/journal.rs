//! The lines of a journal: what the process of a profiler writes, and its parent reads.

use clr_runtime::Outcome;
use clr_runtime::explain::{StoryLine, Topic, deciding};
use clr_walker::profiling::HResult;
use clrsim::{Entry, Journal};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A line.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line {
    Begins(String),
    Loaded {
        step: String,
        result: u32,
    },
    Unloadable(String),
    Enters {
        callback: String,
        /// The thread in the text; empty for others.
        thread: String,
    },
    Leaves {
        callback: String,
        result: u32,
    },
    Calls(String),
    Returns {
        method: String,
        /// The thread in the text; empty for others.
        thread: String,
        result: u32,
    },
    NotSimulated(String),
    NotRaised(String),
    AskedToWalk,
    Found(Found),
    Walked(Walked),
    Released(u32),
    Kept(String),
    /// The text's program cannot go on.
    Stuck(String),
    Over,
    /// The process was ended: it did not return in time.
    Hung,
    /// The process was ended beyond this limit.
    Limit(String),
    /// Number of processes that it had started, and that were ended after it.
    Left(usize),
}

/// A mistake of the profiler, or the end of the simulated process.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(super) struct Found {
    /// Its kind: `leak`.
    pub(super) finding: String,
    /// The sentence.
    pub(super) text: String,
}

/// A walk.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(super) struct Walked {
    /// The callback in which it was made.
    pub(super) within: Option<String>,
    /// The ThreadID.
    pub(super) thread: String,
    /// infoFlags.
    pub(super) flags: u32,
    /// True if there was a seed.
    pub(super) seeded: bool,
    /// The outcome.
    pub(super) result: String,
    /// The frames that the profiler's callback got.
    pub(super) frames: Vec<Frame>,
    /// The runtime's decisions.
    pub(super) story: Vec<Sentence>,
}

/// A frame of a walk.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(super) struct Frame {
    /// True if FunctionID is 0.
    pub(super) marker: bool,
    /// The method, or the place of a marker's ip.
    pub(super) place: String,
}

/// A sentence of a story.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(super) struct Sentence {
    /// 1 in a call that a callback has made.
    pub(super) depth: usize,
    pub(super) text: String,
    pub(super) clauses: Vec<String>,
    /// True for the sentence that decided the result.
    pub(super) decides: bool,
}

impl Line {
    /// Returns the line of an entry.
    pub(super) fn new(entry: &Entry<'_>) -> Option<Self> {
        Some(match *entry {
            Entry::Begins(step) => Self::Begins(step.to_owned()),
            Entry::Loaded { step, result } => {
                Self::Loaded { step: step.to_owned(), result: result.0 }
            }
            Entry::Unloadable(why) => Self::Unloadable(why.to_owned()),
            Entry::Enters { callback, thread } => {
                Self::Enters { callback: callback.to_owned(), thread: thread.to_owned() }
            }
            Entry::Leaves { callback, result } => {
                Self::Leaves { callback: callback.to_owned(), result: result.0 }
            }
            Entry::Calls(method) => Self::Calls(method.to_owned()),
            Entry::Returns { method, thread, result } => {
                let (method, thread) = (method.to_owned(), thread.to_owned());
                Self::Returns { method, thread, result: result.0 }
            }
            Entry::NotSimulated(method) => Self::NotSimulated(method.to_owned()),
            Entry::NotRaised(callback) => Self::NotRaised(callback.to_owned()),
            Entry::AskedToWalk => Self::AskedToWalk,
            Entry::Found(finding) => {
                Self::Found(Found { finding: finding.kind().to_owned(), text: finding.to_string() })
            }
            Entry::Walked(walk) => Self::Walked(Walked::new(walk)),
            Entry::Released(left) => Self::Released(left),
            Entry::Kept(leak) => Self::Kept(leak.to_string()),
            Entry::Over => Self::Over,
            _ => return None,
        })
    }
}

impl Walked {
    fn new(walk: &clrsim::Walk) -> Self {
        let is_ok = walk.outcome == Outcome::Returned(HResult::OK);
        // The start decides nothing of a walk that the profiler has ended.
        let deciding = deciding(&walk.story).filter(|line| is_ok || line.kind != Topic::Start);
        // The last line only repeats the result.
        let before_end = || walk.story.iter().rev().filter(|line| line.depth == 0).nth(1);
        let deciding = deciding.or_else(before_end);
        let sentence = |line: &StoryLine| Sentence {
            depth: line.depth,
            text: line.text.clone(),
            clauses: line.clauses.iter().map(ToString::to_string).collect(),
            decides: deciding.is_some_and(|deciding| std::ptr::eq(deciding, line)),
        };
        let frame =
            |frame: &clrsim::WalkedFrame| Frame { marker: frame.marker, place: frame.name.clone() };
        Self {
            within: walk.within.map(str::to_owned),
            thread: format!("{:#x}", walk.thread.0),
            flags: walk.flags,
            seeded: walk.seeded,
            result: walk.outcome.to_string(),
            frames: walk.frames.iter().map(frame).collect(),
            story: walk.story.iter().map(sentence).collect(),
        }
    }
}

/// A journal in a file. Each entry is in the file before the profiler goes on.
pub(super) struct JournalFile(Mutex<File>);

impl JournalFile {
    /// Opens a file that exists.
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        Ok(Self(Mutex::new(File::options().append(true).open(path)?)))
    }

    /// Writes a line. A failure is ignored: the parent misses the end of the journal.
    pub(super) fn line(&self, line: &Line) {
        let Ok(mut text) = serde_json::to_string(line) else { return };
        text.push('\n');
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _: std::io::Result<()> = file.write_all(text.as_bytes());
    }
}

impl Journal for JournalFile {
    fn write(&self, entry: &Entry<'_>) {
        if let Some(line) = Line::new(entry) {
            self.line(&line);
        }
    }
}

/// Reads the lines of a journal. One that is cut off is left out, and what the profiler has written between them.
pub(super) fn read(text: &str) -> Vec<Line> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
