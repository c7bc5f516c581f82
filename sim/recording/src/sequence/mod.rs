//! Sequences: the callbacks of a real runtime in their order, as a profiler has written them down.
//!
//! A file is a text of lines. Those before the first callback are its header: `# shape:` names the program,
//! `# runtimes:` those that gave exactly this sequence, and `# SEQ_EVENTS:` the events that the profiler had asked
//! for, and `SEQ_WALK:` the callbacks in which it walked its own stack. A callback is
//!
//! ```text
//! T1 p ExceptionSearchFunctionEnter App.Throw | S_OK App.Throw App.Main -
//! ```
//!
//! the thread, its mode (`c`, `p`, or `-` if the runtime does not know the thread), the callback with its arguments,
//! and behind ` | ` the result of the walk with its frames, leaf first; `-` is a marker. `*` behind a callback: the
//! same line, or pair of lines, came several times. Later lines with `#` are requests that the program has made of the
//! profiler.

mod compare;
mod filter;
#[cfg(test)]
mod tests;

pub use compare::SequenceDifference;

use clr_runtime::generation::{Generation, Os, Product, Version};
use core::fmt;
use thiserror::Error;

/// Words of `SEQ_EVENTS`, each with its bits of the event mask (`COR_PRF_MONITOR`); those of the upper word are 0.
const EVENTS: [(&str, u32); 19] = [
    ("exc", 0x40),
    ("elt", 0x0800_1000),
    ("jit", 0x20),
    ("cache", 0x2_0000),
    ("gc", 0x80),
    ("alloc", 0x80_0100),
    ("threads", 0x200),
    ("suspends", 0x1_0000),
    ("loads", 0x1C),
    ("classes", 0x2),
    ("trans", 0x800),
    ("rejit", 0x4_0000),
    ("unloads", 0x1),
    ("clrexc", 0x100_0000),
    ("noinline", 0x20_0000),
    ("noopt", 0x40_0000),
    ("dynamic", 0),
    ("basicgc", 0),
    ("snap", 0x1000_0000),
];

/// The first words of each file.
const BEGINNING: &str = "# shape: ";

/// The mode of a thread in a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SequenceMode {
    /// The thread is cooperative.
    Cooperative,
    /// The thread is preemptive.
    Preemptive,
    /// The runtime does not know the thread.
    Unknown,
}

/// The callbacks in which the profiler walked its own stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SequenceWalks {
    /// None.
    #[default]
    None,
    /// Those of exceptions.
    Exceptions,
    /// All.
    All,
}

/// A line of a sequence.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SequenceLine {
    /// A callback.
    Callback(SequenceCallback),
    /// A request of the program to the profiler, with the result.
    Request(String),
}

/// A callback of a sequence.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SequenceCallback {
    /// Number of the calling thread by first appearance, from 1; `None` if the callback does not say.
    pub thread: Option<u32>,
    /// Mode of that thread, if it was recorded.
    pub mode: Option<SequenceMode>,
    /// Name of the callback.
    pub name: String,
    /// The same line, or pair of lines, came several times.
    pub repeats: bool,
    /// Arguments, separated by spaces.
    pub arguments: String,
    /// Result and frames of the walk in the callback, if there was one.
    pub walk: Option<String>,
}

/// A recorded sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// Name of the program.
    pub shape: String,
    /// The runtimes that gave this sequence.
    pub runtimes: Vec<SequenceRuntime>,
    /// The words of the events that the profiler has asked for.
    pub events: Vec<String>,
    /// The callbacks with walks.
    pub walks: SequenceWalks,
    /// The lines.
    pub lines: Vec<SequenceLine>,
}

/// A runtime that a sequence was recorded in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceRuntime {
    /// Name in the header: `9.0.23-legacy`, `win-10.0.15`.
    pub name: String,
    /// The simulated runtime, if there is one.
    pub generation: Option<Generation>,
}

/// The reason why a text is not a sequence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct SequenceError {
    /// Line number, counted from 1.
    pub line: usize,
    /// Problem with the line.
    pub problem: SequenceProblem,
}

/// The problem with a line of a sequence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SequenceProblem {
    /// The header lacks a line.
    #[error("the header lacks {0:?}")]
    Missing(&'static str),
    /// The header has a line of another kind.
    #[error("not a line of the header: {0:?}")]
    Header(String),
    /// The header names a runtime in another way.
    #[error("not a runtime: {0:?}")]
    Runtime(String),
    /// The header names unknown events.
    #[error("unknown events: {0:?}")]
    Events(String),
    /// A line is neither a callback nor a request.
    #[error("not a callback: {0:?}")]
    Callback(String),
}

impl Sequence {
    /// Returns true if a text begins as a sequence does.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        text.starts_with(BEGINNING)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// Returns [`SequenceError`] at the first deviation from the format.
    pub fn parse(text: &str) -> Result<Self, SequenceError> {
        let mut lines = text.lines().zip(1..).peekable();
        let mut header = |prefix: &'static str| {
            let found = lines.next_if(|(text, _)| text.starts_with("# "));
            let Some((text, line)) = found else {
                let line = lines.peek().map_or(1, |(_, line)| *line);
                return Err(SequenceError { line, problem: SequenceProblem::Missing(prefix) });
            };
            let problem = || SequenceProblem::Header(text.to_owned());
            let rest = text.strip_prefix(prefix).ok_or_else(problem);
            rest.map(|rest| (rest, line)).map_err(|problem| SequenceError { line, problem })
        };
        let (shape, _) = header(BEGINNING)?;
        let (named, line) = header("# runtimes: ")?;
        let runtimes = runtimes(named).map_err(|problem| SequenceError { line, problem })?;
        let (asked, line) = header("# SEQ_EVENTS: ")?;
        let (events, walks) = events(asked).map_err(|problem| SequenceError { line, problem })?;
        let lines = lines
            .map(|(text, line)| {
                SequenceLine::parse(text).ok_or_else(|| SequenceError {
                    line,
                    problem: SequenceProblem::Callback(text.to_owned()),
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { shape: shape.to_owned(), runtimes, events, walks, lines })
    }

    /// Returns the lower word of the event mask that the profiler has set.
    #[must_use]
    pub fn event_mask(&self) -> u32 {
        let bits = EVENTS.iter().filter(|(word, _)| self.asks_for(word)).map(|(_, bits)| bits);
        bits.fold(0, |mask, bits| mask | bits)
    }

    /// Returns true if the sequence begins with the start of the runtime: the first thread is created.
    #[must_use]
    pub fn begins_with_start(&self) -> bool {
        self.lines.iter().any(|line| match line {
            SequenceLine::Callback(callback) => {
                callback.thread == Some(1) && callback.name == "ThreadCreated"
            }
            SequenceLine::Request(_) => false,
        })
    }

    /// Returns true if the profiler has asked for events with this word.
    #[must_use]
    pub fn asks_for(&self, word: &str) -> bool {
        self.events.iter().any(|event| event == word)
    }
}

/// Reads `CoreCLR linux-x64 3.1.3 9.0.23-legacy` or `CoreCLR win-x64 (under wine) 10.0.15`.
fn runtimes(text: &str) -> Result<Vec<SequenceRuntime>, SequenceProblem> {
    let problem = || SequenceProblem::Runtime(text.to_owned());
    let text = text.strip_prefix("CoreCLR ").ok_or_else(problem)?;
    let (os, versions) = if let Some(versions) = text.strip_prefix("linux-x64 ") {
        (Os::Unix, versions)
    } else if let Some(versions) = text.strip_prefix("win-x64 ") {
        (Os::Windows, versions.strip_prefix("(under wine) ").unwrap_or(versions))
    } else {
        return Err(problem());
    };
    let runtimes: Option<Vec<_>> = versions.split(' ').map(|name| runtime(os, name)).collect();
    runtimes.filter(|all| !all.is_empty()).ok_or_else(problem)
}

fn runtime(os: Os, name: &str) -> Option<SequenceRuntime> {
    let (version, legacy) = match name.strip_suffix("-legacy") {
        Some(version) => (version, true),
        None => (name, false),
    };
    let mut numbers = version.split('.').map(str::parse);
    let (Some(Ok(major)), Some(Ok(minor)), Some(Ok(_)), None) =
        (numbers.next(), numbers.next(), numbers.next(), numbers.next())
    else {
        return None;
    };
    let is_it = |generation: &Generation| {
        let family = generation.family();
        family.os == os
            && family.product == Product::Core
            && family.version == Version(major, minor)
            && family.legacy_exceptions == legacy
    };
    let prefix = if os == Os::Windows { "win-" } else { "" };
    let name = format!("{prefix}{name}");
    Some(SequenceRuntime { name, generation: Generation::ALL.into_iter().find(is_it) })
}

/// Reads `exc,snap,noinline  SEQ_WALK: 1`.
fn events(text: &str) -> Result<(Vec<String>, SequenceWalks), SequenceProblem> {
    let problem = || SequenceProblem::Events(text.to_owned());
    let (words, walks) = match text.split_once("  SEQ_WALK: ") {
        None => (text, SequenceWalks::None),
        Some((words, "1")) => (words, SequenceWalks::Exceptions),
        Some((words, "all")) => (words, SequenceWalks::All),
        Some(_) => return Err(problem()),
    };
    let words: Vec<_> = words.split(',').map(str::to_owned).collect();
    let is_known = |word: &String| EVENTS.iter().any(|(known, _)| known == word);
    if words.iter().all(is_known) { Ok((words, walks)) } else { Err(problem()) }
}

impl SequenceLine {
    /// Returns true for `Initialize`, with which a sequence from the start of the process may begin.
    #[must_use]
    pub fn is_initialize(&self) -> bool {
        matches!(self, Self::Callback(callback) if callback.name == "Initialize")
    }

    /// Reads a line; returns `None` if it is none.
    fn parse(text: &str) -> Option<Self> {
        if let Some(request) = text.strip_prefix("# ") {
            return Some(Self::Request(request.to_owned()));
        }
        let (event, walk) = match text.split_once(" | ") {
            Some((event, walk)) => (event, Some(walk.to_owned())),
            None => (text, None),
        };
        let (thread, rest) = event.strip_prefix('T')?.split_once(' ')?;
        let thread = match thread {
            "-" => None,
            number => Some(number.parse().ok()?),
        };
        let (mode, rest) = match rest.split_once(' ') {
            Some(("c", rest)) => (Some(SequenceMode::Cooperative), rest),
            Some(("p", rest)) => (Some(SequenceMode::Preemptive), rest),
            Some(("-", rest)) => (Some(SequenceMode::Unknown), rest),
            _ => (None, rest),
        };
        let (name, arguments) = rest.split_once(' ').unwrap_or((rest, ""));
        let (name, repeats) = match name.strip_suffix('*') {
            Some(name) => (name, true),
            None => (name, false),
        };
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric()) {
            return None;
        }
        let (name, arguments) = (name.to_owned(), arguments.to_owned());
        Some(Self::Callback(SequenceCallback { thread, mode, name, repeats, arguments, walk }))
    }
}

/// Formats the line as the file has it.
impl fmt::Display for SequenceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Callback(callback) => callback.fmt(f),
            Self::Request(request) => write!(f, "# {request}"),
        }
    }
}

impl fmt::Display for SequenceCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.thread {
            Some(thread) => write!(f, "T{thread}")?,
            None => f.write_str("T-")?,
        }
        f.write_str(match self.mode {
            Some(SequenceMode::Cooperative) => " c",
            Some(SequenceMode::Preemptive) => " p",
            Some(SequenceMode::Unknown) => " -",
            None => "",
        })?;
        write!(f, " {}{}", self.name, if self.repeats { "*" } else { "" })?;
        if !self.arguments.is_empty() {
            write!(f, " {}", self.arguments)?;
        }
        match &self.walk {
            Some(walk) => write!(f, " | {walk}"),
            None => Ok(()),
        }
    }
}
