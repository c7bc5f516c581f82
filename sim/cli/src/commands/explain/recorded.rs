//! A replayed walk of a recording, with its events.

use crate::input::Source;
use crate::render::console::HEAD;
use crate::render::error::CliError;
use crate::render::style::Style;
use crate::render::wrap::write_wrapped;
use crate::report::recording;
use clr_recording::{
    RecordedCode, RecordedMemory, RecordedNames, Recording, RecordingReplay, WalkLine, WalkVerdict,
};
use clr_runtime::Runtime;
use clr_runtime::explain::{ChainFrame, Event, Names, StoryLine, StoryWriter, target_chain};
use std::fmt::Display;
use std::io::{self, Write};

/// A replayed walk.
pub(crate) struct ReplayedWalk<'w> {
    pub(crate) source: &'w Source,
    pub(crate) recording: &'w Recording,
    pub(crate) walk: &'w WalkLine,
    /// The runtime after the walk.
    pub(crate) runtime: &'w Runtime<'w, RecordedMemory>,
    pub(crate) names: &'w dyn Names,
    pub(crate) events: Vec<Event>,
    /// The explicit Frames of the target thread.
    pub(crate) chain: Vec<ChainFrame>,
    /// Reads of the call: address (VA) and size in bytes.
    pub(crate) reads: Vec<(u64, u32)>,
    pub(crate) verdict: WalkVerdict,
}

/// Replays walk number `n`, or the first one, and calls `act` with it.
pub(crate) fn with_walk<T>(
    source: &Source,
    n: Option<u32>,
    act: impl FnOnce(&ReplayedWalk<'_>) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let recording = recording_of(source)?;
    let walk = pick(source, &recording.walks, n)?;
    let code = RecordedCode::new(&recording);
    let mut replay =
        RecordingReplay::new(&recording, &code).map_err(|error| source.error(error))?;
    replay.note_reads();
    replay.runtime().log.listen();
    let verdict = replay.walk(walk, |_| {});
    let runtime = replay.runtime();
    let events = runtime.log.take();
    let reads = runtime.memory.borrow().take_reads();
    act(&ReplayedWalk {
        source,
        recording: &recording,
        walk,
        runtime,
        names: &RecordedNames::new(&recording, runtime),
        chain: target_chain(runtime, &events),
        events,
        reads,
        verdict,
    })
}

/// Reads a recording of walks.
pub(crate) fn recording_of(source: &Source) -> Result<Recording, CliError> {
    if !source.is_recording() {
        return Err(source.error("is not a recording of walks: *.walks.jsonl.gz or *.walks.jsonl"));
    }
    parse_recording(source, &source.read_content()?)
}

/// Parses the text of a recording of walks.
pub(crate) fn parse_recording(source: &Source, text: &str) -> Result<Recording, CliError> {
    Recording::parse(text).map_err(|error| source.error(recording::problem(&error)))
}

/// Returns walk number `n`, or the first one.
pub(crate) fn pick<'r>(
    source: &Source,
    walks: &'r [WalkLine],
    n: Option<u32>,
) -> Result<&'r WalkLine, CliError> {
    let [first, ..] = walks else { return Err(source.error("has no walks")) };
    let Some(n) = n else { return Ok(first) };
    if let Some(walk) = walks.iter().find(|walk| walk.n == n) {
        return Ok(walk);
    }
    let last = walks.last().map_or(first.n, |last| last.n);
    Err(source.error(format_args!("has no walk {n}; its walks are {} to {last}", first.n)))
}

impl ReplayedWalk<'_> {
    /// Returns the story of the call.
    pub(crate) fn story(&self) -> Vec<StoryLine> {
        let teller = StoryWriter {
            generation: self.recording.generation,
            names: self.names,
            chain: &self.chain,
        };
        teller.write(&self.events)
    }

    /// Writes the walk's number, runtime, situation and call.
    pub(crate) fn write_header(&self, out: &mut dyn Write) -> io::Result<()> {
        let WalkLine { n, situation, variant, workload, .. } = self.walk;
        writeln!(out, "{HEAD}{} walk {n}{HEAD:#}", self.source.name)?;
        field(out, "runtime", self.recording.generation)?;
        field(out, "situation", situation)?;
        field(out, "variant", variant)?;
        if !workload.is_empty() {
            field(out, "workload", workload)?;
        }
        write!(out, "  {:9}  ", "call")?;
        write_wrapped(out, 13, Style::new(), &self.call(), "")
    }

    /// Returns the call in words.
    fn call(&self) -> String {
        let WalkLine { call, walker, .. } = self.walk;
        let of = match call.thread.as_str() {
            "null" => "of the calling thread (0)",
            "own" => "of the calling thread, by its id",
            "other" => "of another thread",
            _ => "of what is no thread",
        };
        let by = match walker.as_str() {
            "managed" => "made by a thread with a Thread object",
            "native" => "made by a thread without a Thread object",
            _ => "made by some thread",
        };
        let seed = match &call.seed {
            Some(seed) => format!("seed: {}", seed.made),
            None => "no seed".to_owned(),
        };
        format!("{of}, {by}; {seed}")
    }
}

fn field(out: &mut dyn Write, name: &str, value: impl Display) -> io::Result<()> {
    writeln!(out, "  {name:9}  {value}")
}
