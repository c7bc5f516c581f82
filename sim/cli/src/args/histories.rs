//! Arguments of the commands for interleavings: `explore`, `replay`.

use super::{Jobs, Json, On, ScenarioArg, Timeout};
use crate::output::Replacing;
use clap::{Args, ValueEnum};
use clr_runtime::profiling::CallFaults;
use std::path::PathBuf;
use std::str::FromStr;

const EXPLORE_EXAMPLES: &str = "\
Examples:
  clrsim explore my.kdl
  clrsim explore my.kdl --on net10-windows --schedules 100000 --jobs 8
  clrsim explore my.kdl --strategy exhaustive --preemptions 2
  clrsim explore my.kdl --strategy pct --depth 4 --seed 7 --first 100000
  clrsim explore my.kdl --rules --json
  clrsim explore my.kdl --keep-going
  clrsim explore my.kdl --minimize my/small.kdl
  clrsim explore my.kdl --schedules 1000000 --shard 2/8 --json > 2.jsonl

The scenario is a program, mostly with a profiler. Options that are not given are those of its first
explore node; the runtimes are those that it expects something of there, or all. One thread at a
time runs, up to its next switch point: a lock, a wait, a suspension, a change of mode, a call of
the runtime. The search chooses the next thread. The first interleaving that fails is explained: the
waiting threads, the last steps of each thread, the hazard and how to avoid it, and the string with
which clrsim replay replays it.

The interleavings of random and pct depend on their number and the seed alone: machines can share
them by --first and --schedules, and the result does not depend on --jobs. The others go from one
interleaving to the next, on one thread.

With --shard this is one of several machines, with the same arguments but for its number: it prints
a line for each runtime, and clrsim merge makes of the lines of all shards the result of the whole.
Of random and pct each shard has a range of the numbers. An exhaustive search has parts by the first
choices of its interleavings, which the shards take in turn: parts learn nothing from each other, so
that together they execute more than a search without shards, and --schedules is the most for each.

Ctrl-C ends a search with what was found so far, and prints how to go on; once more, at once.

Exit codes:
  0    no interleaving failed
  1    some interleaving failed, or a search has not ended in its --timeout; with --shard, in this
       shard
  2    the arguments are wrong, the input is missing or is no program, or cannot be run
  130  Ctrl-C ended the search, and no interleaving had failed";

const MERGE_EXAMPLES: &str = "\
Examples:
  clrsim merge 1.jsonl 2.jsonl 3.jsonl
  clrsim merge shards/*.jsonl --json

The files are what clrsim explore --shard has printed, of all shards of one search, in any order.
The output is that of clrsim explore for the whole, whatever the number of shards. What was to be
covered is judged here: no shard sees all of it. The scenario must be there, as the shards had it;
each interleaving that failed is executed again, and must fail here, too.

A shard that is missing, there twice, of another search, text or version, is an error that names it.

Exit codes: those of clrsim explore
  0    no interleaving failed
  1    some interleaving failed, something was not looked at, or a shard has not ended in its time
  2    the arguments are wrong, or the files are not all shards of one search
  130  Ctrl-C ended a shard, and no interleaving had failed";

const REPLAY_EXAMPLES: &str = "\
Examples:
  clrsim replay my.kdl@net10-windows:clr1:14b3a:5d0c71e2
  clrsim replay --rules my.kdl@net10-windows:clr1:14b3a:5d0c71e2
  clrsim replay gallery/hazards/h-08-callback-takes-a-lock.kdl@net10-windows:clr1:
  clrsim replay my.kdl@net10-windows:clr1:14b3a --draw --width 160
  clrsim replay my.kdl --on net10-windows --html my.html

The string names the scenario, the runtime and the schedule, as clrsim explore prints it. A schedule
lists the preemptions. 14b3a: thread b runs at turn 14, thread a three turns later. +b2.80131360.0
behind them: call 2 of thread b, of those that may fail, was made to fail. It holds as long
as the scenario stays as it is. The last part is a digest of its program, threads and profiler: if
they were edited, a note says so, and the replay is another interleaving. Without that part nothing
is compared.

The first explore node of the scenario says whether a broken rule is a failure, and whether every
instruction is a switch point. An interleaving that was found otherwise, with options of clrsim
explore or by another explore node, needs --rules or --instructions, or --instructions=false; what
clrsim explore and run print after \"again:\" has them.

With --draw threads are lanes over time; the page of --html is one file that needs no other: a
moment is chosen with the mouse or the keys, and it shows the step, the locks and the wait of every
thread. Either draws the interleaving of a string; or of a scenario, without a string, the first one
that fails on the first of its runtimes, or of --on, found as its first explore node says, or if
none fails the one in which nothing is chosen.

Exit codes:
  0  the interleaving ends well, or was drawn
  1  it fails
  2  the arguments are wrong, the scenario is missing or cannot be run, or has no such interleaving;
     the search for one to draw has not ended; or the page cannot be written";

/// A strategy of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyChoice {
    /// Preempts at random, with a different probability in each run
    Random,
    /// Gives threads priorities at random, and changes them less than --depth times
    Pct,
    /// Explores every interleaving, treating independent steps as unordered
    Exhaustive,
    /// Preempts at random, more often after new behaviour
    Guided,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct SearchArgs {
    /// Maximum number of interleavings to execute on each runtime
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) schedules: Option<u64>,

    /// The strategy of the search
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) strategy: Option<StrategyChoice>,

    /// With pct: the number of steps whose order a bug depends on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=255))]
    pub(crate) depth: Option<u32>,

    /// With exhaustive: the most preemptions of an interleaving
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=255))]
    pub(crate) preemptions: Option<u32>,

    /// The seed of the search: the same seed gives the same interleavings
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// With random and pct: the number of the first interleaving
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) first: u64,

    /// Make calls of the runtime fail, where a CLR may: METHOD, METHOD=HRESULT, or all, separated by commas
    #[arg(long, value_name = "CALLS", value_parser = CallFaults::from_words)]
    pub(crate) faults: Option<CallFaults>,

    /// With --faults: the most failures in an interleaving [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=255))]
    pub(crate) most_faults: Option<u32>,

    #[command(flatten)]
    pub(crate) jobs: Jobs,
}

/// The settings of a search that decide what fails and where threads switch.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct SettingsArgs {
    /// A documented rule that is broken is a failure, even if nothing came of it, or is not
    /// [default: as the scenario's first explore node says]
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", hide_possible_values = true
    )]
    pub(crate) rules: Option<bool>,

    /// Every instruction is a switch point, or is not [default: as the scenario's first explore node
    /// says]
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", hide_possible_values = true
    )]
    pub(crate) instructions: Option<bool>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DrawArgs {
    /// Draw the interleaving: threads as lanes over time
    #[arg(long)]
    pub(crate) draw: bool,

    /// With --draw: its width in characters
    #[arg(long, value_name = "N", default_value_t = 100, requires = "draw")]
    pub(crate) width: usize,

    /// With --draw: every turn; put none together
    #[arg(long, requires = "draw")]
    pub(crate) all: bool,

    /// Draw it as a page, and write that to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) replacing: Replacing,
}

/// Search the interleavings of a program with a profiler in it for one that fails.
#[derive(Debug, Args)]
#[command(after_help = EXPLORE_EXAMPLES)]
pub(crate) struct ExploreArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArg,

    #[command(flatten)]
    pub(crate) search: SearchArgs,

    #[command(flatten)]
    pub(crate) timeout: Timeout,

    #[command(flatten)]
    pub(crate) on: On,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Go on after an interleaving that fails, and print each fault once
    #[arg(long)]
    pub(crate) keep_going: bool,

    /// Search one of N parts of the whole, with number I from 1; clrsim merge joins all
    #[arg(long, value_name = "I/N", requires = "json")]
    pub(crate) shard: Option<Shard>,

    /// Write the smallest scenario that still fails so to this file, with the string of its schedule
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) minimize: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) replacing: Replacing,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// A shard of a search: one of several machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    /// Its number, from 1.
    pub(crate) number: u64,
    /// Number of shards.
    pub(crate) of: u64,
}

impl FromStr for Shard {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = "is not the number of a shard and the number of all, as 2/8";
        let (number, of) = text.split_once('/').ok_or(form)?;
        let number = number.parse().map_err(|_| form)?;
        let of = of.parse().map_err(|_| form)?;
        if (1..=of).contains(&number) {
            Ok(Self { number, of })
        } else {
            Err("is no shard: they are 1/N to N/N")
        }
    }
}

/// Merge the shards of a search into the result of the whole.
#[derive(Debug, Args)]
#[command(after_help = MERGE_EXAMPLES)]
pub(crate) struct MergeArgs {
    /// What clrsim explore --shard has printed, of all shards
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// Replay an interleaving that clrsim explore has found, or draw it.
#[derive(Debug, Args)]
#[command(
    after_help = REPLAY_EXAMPLES,
    mut_args(|arg| if DRAWS.contains(&arg.get_id().as_str()) { arg.conflicts_with("json") } else { arg })
)]
pub(crate) struct ReplayArgs {
    /// Scenario, runtime and schedule: FILE@RUNTIME:clr1:…, and the digest of the scenario, if it is
    /// known; to be drawn also a scenario alone
    #[arg(value_name = "STRING")]
    pub(crate) history: String,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    #[command(flatten)]
    pub(crate) draw: DrawArgs,

    #[command(flatten)]
    pub(crate) timeout: Timeout,

    #[command(flatten)]
    pub(crate) on: On,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// Options that draw.
const DRAWS: [&str; 2] = ["draw", "html"];
