//! Arguments of `clrsim run`.

use super::{RulesArg, sets};
use clap::Args;
use clr_runtime::generation::Generations;
use std::num::NonZeroUsize;
use std::path::PathBuf;

const RUN_EXAMPLES: &str = "\
Examples:
  clrsim run
  clrsim run my/fixtures --on windows,net9-unix
  clrsim run my/stack.kdl --bless --dry-run
  clrsim run my/fixtures --filter gcc --rules windows
  clrsim run vec/gcc_O2.vec.gz --json --max-failures 0
  clrsim run clr/win31-sync-gc.walks.jsonl.gz

Texts (*.kdl) are stacks placed by hand, or programs, which are executed. Each snapshot of a text is
a call of DoStackSnapshot, made on each runtime that it expects something of: each is a case. So is
each expectation of a walk at a stop of a program, which says itself by which rules the stack is
walked; under precise rules what really called what has to be found as well; and each search of
histories (clrsim explore) on each runtime that it expects something of. clrsim matrix shows what a
text gives on all runtimes, whatever it expects.

--bless writes into texts what their snapshots gave where they expect something else, and shows
that as a patch. Read it: that the simulator does something is no reason to expect it. Of searches
of histories it writes the strings of those that failed as they should, and never what to expect.

Vectors in DIR/vec/NAME.vec.gz are of the image DIR/img/NAME.dll or, where that is missing, of
NAME.dll beside them.

Recordings (*.walks.jsonl.gz, or uncompressed *.walks.jsonl) are calls of DoStackSnapshot in a real
CLR, which are made again: each is a case. The runtime that they were recorded in decides how they
are walked, whatever --rules says. A walk is skipped if the recording lacks something that it
depends on, and says so. Recordings of one folder and runtime that pass share a line of the table.

Exit codes:
  0  every case passed, or was skipped because no answer is expected
  1  some case failed
  2  the arguments are wrong, or an input is missing or cannot be read; the others are replayed";

/// Run texts of stacks and programs, replay recorded walks and unwinds, and compare the answers
/// with what is known.
///
/// A case passes if all that is known of it comes out: registers, results, callbacks. It is skipped
/// if no answer is expected, because its code cannot be unwound or because too little is known of
/// it: then it is replayed all the same, and only has to come to an end.
#[derive(Debug, Default, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    /// Texts, recordings of walks, files of vectors or fuzz records, or folders of them: in
    /// folders, *.kdl, *.walks.jsonl.gz, *.walks.jsonl, *.vec.gz and *.bin.gz. Without any: the
    /// embedded fixtures
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// The runtimes that snapshots of texts are made on: names of runtimes, or windows, unix, clr4,
    /// new, framework, coreclr-3.1, net9, net10 [default: all]
    #[arg(long, value_name = "RUNTIMES", value_parser = sets)]
    pub(crate) on: Option<Generations>,

    #[command(flatten)]
    pub(crate) rules: RulesArg,

    /// Only files whose path contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,

    /// Threads to replay on; the output does not depend on it [default: one for each processor]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,

    /// How many failures of each file to explain; all are counted [default: 5]
    #[arg(long, value_name = "N")]
    pub(crate) max_failures: Option<u64>,

    /// Write into texts what their snapshots gave, in place of expectations that were not met
    #[arg(long)]
    pub(crate) bless: bool,

    /// With --bless: show the change, and write nothing
    #[arg(long, requires = "bless")]
    pub(crate) dry_run: bool,

    /// One JSON object a line: one for each file, and a total
    #[arg(long)]
    pub(crate) json: bool,
}
