//! Arguments of the commands for texts: `matrix`, `compare`, `list`, `new`, `fmt`.

use super::{Json, On, ScenarioArg, SnapshotArg};
use crate::output::Replacing;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use clr_runtime::clause::Clause;
use clr_runtime::profiling::Policy;
use std::path::PathBuf;

const MATRIX_EXAMPLES: &str = "\
Examples:
  clrsim matrix my.kdl
  clrsim matrix my.kdl --snapshot unseeded
  clrsim matrix my.kdl --snapshot 2 --on windows --json

Each snapshot is made on every runtime, whatever the scenario expects. Runtimes that give the same
share a column. A row is a callback, with the place of its ip and its rsp; in the columns is which
callback it was, from 1. A * marks rows that are not the same in all columns. Below, the reason for
each column: a sentence of the call's story, and in brackets its clauses; clrsim rules C-044 prints
a clause.

In programs, addresses differ between runtimes for reasons of their own: there, columns are the same
if they have the same functions in the same order.

Exit codes:
  0  the snapshots were made, with or without the expected results
  2  the arguments are wrong, the file is missing or no scenario, or has no such snapshot";

const COMPARE_EXAMPLES: &str = "\
Examples:
  clrsim compare gallery/seeds/hole-at-the-leaf.kdl --on windows
  clrsim compare my.kdl --stop 0 --policy seeded,signal --on net9 --json

A row is a frame of the stack, leaf first; without a word before it, it is managed. A column is a
walk of the whole stack by a policy:

  RU     the runtime reports the frame, and the unwinder finds it
  R      only the runtime reports it
  U      only the unwinder finds it
  -      neither does
  whole  every frame is claimed to be there
  most   so are all that may be reported, and the native ones between them
  no     something is missing, or may be
  dies   the call ends the process, or never returns

A ! marks a frame that a walk finds and that is not on the stack. Below are the gaps of each walk,
with the reasons.
Runtimes with the same frames share a table; in programs, addresses do not count.

Exit codes:
  0  the stacks were compared
  2  the arguments are wrong, or the file is missing, is no scenario or stops nowhere";

const LIST_EXAMPLES: &str = "\
Examples:
  clrsim list
  clrsim list --chapter programs
  clrsim list lock callback
  clrsim list UNMANAGED_CTX seed
  clrsim list my/fixtures --clause C-044 --json
  clrsim list --print gallery/seeds/hole-at-the-leaf.kdl > my.kdl
  clrsim list --print clr/win31-async-alloc.walks.jsonl.gz

Exit codes:
  0  the scenarios were listed, or the scenario was printed
  2  the arguments are wrong, a file is missing or no scenario, or none meets all conditions";

const NEW_EXAMPLES: &str = "\
Examples:
  clrsim new my.kdl
  clrsim new --kind program my/program.kdl

The written scenario passes: clrsim run my.kdl. The format is described in
sim/scenario/src/scenario/grammar.md.

Exit codes:
  0  the scenario was written
  2  the arguments are wrong, or the file is there already or cannot be written";

const FMT_EXAMPLES: &str = "\
Examples:
  clrsim fmt my.kdl
  clrsim fmt --check my/fixtures
  clrsim fmt --upgrade my/fixtures

One node stands in a line, indented by four spaces for each block around it. Comments, numbers and
the order stay. With --upgrade, words that have other names by now are renamed before.

Exit codes:
  0  the scenarios are laid out
  1  with --check: some are not, and the change was shown
  2  the arguments are wrong, or a file is missing, cannot be written or is no KDL, or, with
     --upgrade, no scenario";

/// Show what a scenario's snapshots give on all runtimes, side by side, and why.
#[derive(Debug, Args)]
#[command(after_help = MATRIX_EXAMPLES)]
pub(crate) struct MatrixArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArg,

    #[command(flatten)]
    pub(crate) snapshot: SnapshotArg,

    #[command(flatten)]
    pub(crate) on: On,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// Compare the frames that each walking policy finds with the true stack.
#[derive(Debug, Args)]
#[command(after_help = COMPARE_EXAMPLES)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArg,

    /// Only this stop of a program, from 0 [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) stop: Option<usize>,

    /// Only these policies [default: all]
    #[arg(long, value_name = "POLICIES", value_delimiter = ',', value_parser = policies())]
    pub(crate) policy: Vec<String>,

    #[command(flatten)]
    pub(crate) on: On,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// Returns a parser of the names of policies.
fn policies() -> PossibleValuesParser {
    PossibleValuesParser::new(Policy::ALL.map(Policy::name))
}

/// List scenarios by chapter, with what each shows, or print one.
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct ListArgs {
    /// Scenarios (*.kdl), or folders of them [default: the embedded ones]; words that are no paths:
    /// only scenarios with all of these in their names, descriptions, tags, clauses or results
    #[arg(value_name = "PATH|WORD")]
    pub(crate) paths: Vec<PathBuf>,

    /// Only this chapter: the folder that a scenario lies in
    #[arg(long, value_name = "NAME")]
    pub(crate) chapter: Option<String>,

    /// Only scenarios with this tag
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,

    /// Only scenarios that expect something by this clause
    #[arg(long, value_name = "CLAUSE")]
    pub(crate) clause: Option<Clause>,

    /// Print the scenario of this name as it is stored, or this recording of walks decompressed
    #[arg(long, value_name = "NAME", exclusive = true)]
    pub(crate) print: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// A kind of scenario to start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NewKind {
    /// A stack placed by hand, with a call
    Stack,
    /// A program that goes through the runtime, with calls where it stops
    Program,
}

/// Write a scenario to start from, with comments.
#[derive(Debug, Args)]
#[command(after_help = NEW_EXAMPLES)]
pub(crate) struct NewArgs {
    /// The file to write
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The kind of scenario to write
    #[arg(long, value_name = "KIND", default_value = "stack")]
    pub(crate) kind: NewKind,

    #[command(flatten)]
    pub(crate) replacing: Replacing,
}

/// Lay out scenarios in the usual form.
#[derive(Debug, Args)]
#[command(after_help = FMT_EXAMPLES)]
pub(crate) struct FmtArgs {
    /// Scenarios (*.kdl), or folders of them
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Write nothing, and show what would change
    #[arg(long)]
    pub(crate) check: bool,

    /// Rewrite scenarios that were written for an earlier version of the format
    #[arg(long)]
    pub(crate) upgrade: bool,
}
