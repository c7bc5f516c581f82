//! `clrsim explain`: prints the decisions behind a recorded walk or the snapshots of a text.

pub(crate) mod recorded;
pub(crate) mod text;

use crate::PASSED;
use crate::args::ExplainArgs;
use crate::input::Source;
use crate::render::console::{BAD, Console, DIM, GOOD, HEAD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::style::Style;
use crate::render::unwind_data::Hex;
use crate::render::wrap::write_wrapped;
use crate::report::recording::DifferentWalk;
use clr_recording::WalkVerdict;
use clr_runtime::explain::{StoryLine, Topic};
use recorded::ReplayedWalk;
use serde::Serialize;
use std::io::{self, Write};

/// Indentation of the lines of a story, and of each nested call.
const INDENT: usize = 2;

/// Explains the walk or the snapshots that `args` name and returns the exit code.
pub(crate) fn explain(args: &ExplainArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let source = Source::find(&args.file)?;
    if source.is_program() {
        if args.walk.number.is_some() {
            return Err(
                source.error("is a scenario: it has snapshots, not walks; name one by --snapshot")
            );
        }
        text::explain(args, &source, console)?;
        return Ok(PASSED);
    }
    if args.snapshot.wanted.is_some() || args.on.runtimes.is_some() {
        return Err(
            source.error("is not a scenario: --snapshot and --on are for scenarios (*.kdl)")
        );
    }
    recorded::with_walk(&source, args.walk.number, |replayed| {
        if args.json.wanted {
            return write_json(&Explained::new(replayed), console);
        }
        replayed.write_header(console.out)?;
        writeln!(console.out)?;
        for line in replayed.story() {
            write_line(&line, console.out)?;
        }
        writeln!(console.out)?;
        Ok(write_verdict(replayed, console.out)?)
    })?;
    Ok(PASSED)
}

pub(crate) fn write_line(line: &StoryLine, out: &mut dyn Write) -> io::Result<()> {
    let indent = INDENT * (line.depth + 1);
    let style = match line.kind {
        Topic::Callback | Topic::End => HEAD,
        Topic::Refusal => BAD,
        Topic::Call | Topic::Check | Topic::Start | Topic::Walk => Style::new(),
    };
    write!(out, "{:indent$}", "")?;
    write_wrapped(out, indent + INDENT, style, &line.text, &line.brackets())
}

/// Writes the comparison with the recorded result.
pub(crate) fn write_verdict(replayed: &ReplayedWalk<'_>, out: &mut dyn Write) -> io::Result<()> {
    let walk = replayed.walk;
    match &replayed.verdict {
        WalkVerdict::Same => writeln!(out, "{GOOD}as recorded{GOOD:#}")?,
        WalkVerdict::Different(difference) => {
            writeln!(out, "{BAD}not as recorded{BAD:#}")?;
            DifferentWalk::new(replayed.recording, walk, difference).write_differences(out)?;
        }
    }
    if !walk.replayable {
        let why = walk.why.as_deref().unwrap_or("the recording does not say why");
        writeln!(out, "{DIM}not expected to come out as recorded:{DIM:#} {why}")?;
    }
    Ok(())
}

/// A walk and its story, for JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Explained<'w> {
    file: &'w str,
    walk: u32,
    generation: &'static str,
    situation: &'w str,
    variant: &'w str,
    workload: &'w str,
    call: Call<'w>,
    story: Vec<Sentence>,
    replayable: bool,
    why: Option<&'w str>,
    as_recorded: bool,
    differences: Option<DifferentWalk>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Call<'w> {
    thread: &'w str,
    walker: &'w str,
    flags: Hex,
    /// Origin of the seed.
    seed: Option<&'w str>,
}

/// A line of a story, for JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Sentence {
    kind: &'static str,
    depth: usize,
    callback: Option<u32>,
    text: String,
    clauses: Vec<String>,
}

impl<'w> Explained<'w> {
    fn new(replayed: &'w ReplayedWalk<'_>) -> Self {
        let walk = replayed.walk;
        let differences = match &replayed.verdict {
            WalkVerdict::Same => None,
            WalkVerdict::Different(difference) => {
                Some(DifferentWalk::new(replayed.recording, walk, difference))
            }
        };
        Self {
            file: &replayed.source.name,
            walk: walk.n,
            generation: replayed.recording.generation.name(),
            situation: &walk.situation,
            variant: &walk.variant,
            workload: &walk.workload,
            call: Call {
                thread: &walk.call.thread,
                walker: &walk.walker,
                flags: walk.call.flags.0.into(),
                seed: walk.call.seed.as_ref().map(|seed| seed.made.as_str()),
            },
            story: replayed.story().into_iter().map(Sentence::from).collect(),
            replayable: walk.replayable,
            why: walk.why.as_deref(),
            as_recorded: differences.is_none(),
            differences,
        }
    }
}

impl From<StoryLine> for Sentence {
    fn from(line: StoryLine) -> Self {
        Self {
            kind: line.kind.name(),
            depth: line.depth,
            callback: line.callback,
            clauses: line.clauses.iter().map(ToString::to_string).collect(),
            text: line.text,
        }
    }
}
