//! Arguments of `clrsim run`.

use super::{RulesArg, sets};
use clap::Args;
use clr_runtime::generation::Generations;
use std::num::NonZeroUsize;
use std::path::PathBuf;

const RUN_EXAMPLES: &str = "\
Examples:
  clrsim run
  clrsim run --summary
  clrsim run my/fixtures --on windows,net9-unix
  clrsim run my/stack.kdl --bless --dry-run
  clrsim run my/fixtures --filter gcc --rules coreclr
  clrsim run vec/gcc_O2.vec.gz --json --max-failures 0
  clrsim run clr/win31-sync-gc.walks.jsonl.gz

Texts (*.kdl) are stacks placed by hand, or programs, which are executed. Each snapshot of a text is
a call of DoStackSnapshot, made on each runtime that it expects something of: each is a case. So is
each expectation of a walk at a stop of a program, which names the rules of the walk; under
precise rules the walk has to find the true callers as well; and each search of
histories (clrsim explore) on each runtime that it expects something of. clrsim matrix shows what a
text gives on all runtimes, whatever it expects.

--bless writes the results of snapshots into texts that expect other ones, and prints the change as
a patch. Read it: a result of the simulator is no reason to expect it. Of searches
of histories it writes the strings of the expected failures, and no other expectation.

Vectors in DIR/vec/NAME.vec.gz are of the image DIR/img/NAME.dll or, where that is missing, of
NAME.dll beside them.

Recordings (*.walks.jsonl.gz, or uncompressed *.walks.jsonl) are calls of DoStackSnapshot in a real
CLR, which are replayed: each is a case. They are replayed by the recorded runtime; --rules has no
effect on them. A walk is skipped if the recording says that it lacks something that the walk
depends on. Recordings of one folder and runtime that pass share a line of the table.

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
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
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

    /// Number of failures of each file to explain; all are counted [default: 5]
    #[arg(long, value_name = "N")]
    pub(crate) max_failures: Option<u64>,

    /// Write into texts what their snapshots gave, in place of expectations that were not met
    #[arg(long)]
    pub(crate) bless: bool,

    /// With --bless: show the change, and write nothing
    #[arg(long, requires = "bless")]
    pub(crate) dry_run: bool,

    /// A line for each kind of case, for readers who do not know the tool
    #[arg(long, conflicts_with_all = ["json", "bless"])]
    pub(crate) summary: bool,

    /// One JSON object a line: one for each file, and a total
    #[arg(long)]
    pub(crate) json: bool,
}
