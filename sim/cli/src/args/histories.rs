//! Arguments of the commands for histories: `explore`, `replay`.

use super::{Jobs, Json, On};
use crate::output::Replacing;
use clap::{Args, ValueEnum};
use clr_runtime::generation::Generation;
use std::path::PathBuf;

const EXPLORE_EXAMPLES: &str = "\
Examples:
  clrsim explore my.kdl
  clrsim explore my.kdl --on net10-windows --schedules 100000 --jobs 8
  clrsim explore my.kdl --strategy exhaustive --preemptions 2
  clrsim explore my.kdl --strategy pct --depth 4 --seed 7 --first 100000
  clrsim explore my.kdl --rules --json
  clrsim explore my.kdl --keep-going
  clrsim explore my.kdl --minimize my/small.kdl

The text is a program, mostly with a profiler. Options that are not given are those of its first
explore node; the runtimes are those that it expects something of there, or all. In a history one
thread at a time goes on, up to its next switch point: a lock, a wait, a suspension, a change of
mode, a call of the runtime. The search chooses the next thread. The first history that fails is
explained: the waiting threads, the last steps of each thread, the hazard and how to avoid it, and
the string with which clrsim replay replays the history.

The histories of random and pct depend on their number and the seed alone: machines can share them
by --first and --schedules, and the result does not depend on --jobs. The others go from one
history to the next, on one thread.

Ctrl-C ends a search with what was found so far, and prints how to go on; once more, at once.

Exit codes:
  0    no history failed
  1    some history failed
  2    the arguments are wrong, the input is missing or is no program, or cannot be run
  130  Ctrl-C ended the search, and no history had failed";

const REPLAY_EXAMPLES: &str = "\
Examples:
  clrsim replay my.kdl@net10-windows:clr1:14b3a:5d0c71e2
  clrsim replay --rules my.kdl@net10-windows:clr1:14b3a:5d0c71e2
  clrsim replay gallery/hazards/h-08-callback-takes-a-lock.kdl@net10-windows:clr1:
  clrsim replay my.kdl@net10-windows:clr1:14b3a --draw --width 160
  clrsim replay my.kdl --on net10-windows --html my.html

The string names the text, the runtime and the history, as clrsim explore prints it. The history
says where another thread went on than would have by itself: 14b3a is, the second thread at the 14th
turn, and the first one 3 turns later. It holds as long as the text stays as it is. The last part is
a digest of the text's program, threads and profiler: if they were edited, a note says so, and the
replay is another history. Without that part nothing is compared.

The first explore node of the text says whether a broken rule is a failure, and whether every
instruction is a switch point. A history that was found otherwise, with flags of clrsim explore or
by another explore node, needs --rules or --instructions, or --instructions=false; what clrsim
explore and run print after \"again:\" has them.

With --draw threads are lanes over time; the page of --html is one file that needs no other: a
moment is chosen with the mouse or the keys, and it shows the step, the locks and the wait of every
thread. Either draws the history of a string; or of a text, without a string, the first history that
fails, found as its first explore node says, or if none fails the one in which nothing is chosen.

Exit codes:
  0  the history ends well, or was drawn
  1  it fails
  2  the arguments are wrong, the text is missing or cannot be run, or has no such history; or the
     page cannot be written";

/// A strategy of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyChoice {
    /// Chooses at random: sometimes often, sometimes rarely
    Random,
    /// Gives threads priorities at random, and changes them less than --depth times
    Pct,
    /// Goes through all, up to the order of steps that have nothing to do with each other
    Exhaustive,
    /// Chooses at random, more often after new behaviour
    Guided,
}

/// Search the histories of a program with a profiler in it for one that fails.
#[derive(Debug, Args)]
#[command(after_help = EXPLORE_EXAMPLES)]
pub(crate) struct ExploreArgs {
    /// A program (*.kdl), or the name of an embedded one
    #[arg(value_name = "FIXTURE")]
    pub(crate) fixture: PathBuf,

    /// Maximum number of histories on each runtime
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) schedules: Option<u64>,

    /// The way to search
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) strategy: Option<StrategyChoice>,

    /// With pct: in how many steps in order a bug may lie
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=255))]
    pub(crate) depth: Option<u32>,

    /// With exhaustive: the most preemptions of a history
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=255))]
    pub(crate) preemptions: Option<u32>,

    /// The same seed makes the same histories
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// With random and pct: the number of the first history
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) first: u64,

    #[command(flatten)]
    pub(crate) on: On,

    /// A documented rule that is broken is a failure, even if nothing came of it
    #[arg(long)]
    pub(crate) rules: bool,

    /// Every instruction is a switch point
    #[arg(long)]
    pub(crate) instructions: bool,

    #[command(flatten)]
    pub(crate) jobs: Jobs,

    /// Go on after a history that fails, and print each fault once
    #[arg(long)]
    pub(crate) keep_going: bool,

    /// Write the smallest text that still fails so to this file, with the string of its history
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) minimize: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) replacing: Replacing,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// The settings with which a history was found, as far as they differ from the first explore node.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// A documented rule that is broken is a failure, even if nothing came of it, or is not
    /// [default: as the text's first explore node says]
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", hide_possible_values = true
    )]
    pub(crate) rules: Option<bool>,

    /// Every instruction is a switch point, or is not, as it was when the history was found
    /// [default: as the text's first explore node says]
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", hide_possible_values = true
    )]
    pub(crate) instructions: Option<bool>,
}

/// Replay a history that clrsim explore has found, or draw it.
#[derive(Debug, Args)]
#[command(after_help = REPLAY_EXAMPLES)]
pub(crate) struct ReplayArgs {
    /// Text, runtime and history: TEXT@RUNTIME:clr1:…, and the digest of the text, if it is known;
    /// to be drawn also a text alone
    #[arg(value_name = "STRING")]
    pub(crate) history: String,

    #[command(flatten)]
    pub(crate) found: HistoryArgs,

    /// Draw the history: threads as lanes over time
    #[arg(long, conflicts_with = "json")]
    pub(crate) draw: bool,

    /// Draw it as a page, and write that to this file
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) replacing: Replacing,

    /// Of a text alone: the runtime [default: the first one that it is for]
    #[arg(long, value_name = "NAME", value_parser = super::generations())]
    pub(crate) on: Option<Generation>,

    /// With --draw: its width in characters
    #[arg(long, value_name = "N", default_value_t = 100, requires = "draw")]
    pub(crate) width: usize,

    /// With --draw: every turn; put none together
    #[arg(long, requires = "draw")]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) json: Json,
}
