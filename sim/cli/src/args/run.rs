//! Arguments of `clrsim run`.

use super::{Jobs, Json, Limit, On, RulesArg};
use crate::report::as_tests::TestFormat;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

const RUN_EXAMPLES: &str = "\
Examples:
  clrsim run
  clrsim run --summary
  clrsim run my/fixtures --on windows,net9-unix
  clrsim run my/stack.kdl --bless --dry-run
  clrsim run my/fixtures --filter gcc --unwind-rules coreclr
  clrsim run vec/gcc_O2.vec.gz --json --limit 0
  clrsim run clr/win31-sync-gc.walks.jsonl.gz
  clrsim run my/fixtures --format libtest
  clrsim run my/fixtures --format junit > results.xml

Scenarios (*.kdl) are stacks placed by hand, or programs, which are executed. Each snapshot of a
scenario is a call of DoStackSnapshot, made on each runtime that it expects something of: each is a
case. So is each expectation of a walk at a stop of a program, which names the rules of the walk;
under precise rules the walk has to find the true callers as well; and each search of interleavings
(clrsim explore) on each runtime that it expects something of. clrsim matrix shows what a scenario
gives on all runtimes, whatever it expects.

--bless writes the results of snapshots into scenarios that expect other ones, and prints the change
as a patch. Read it: a result of the simulator is no reason to expect it. Of searches of
interleavings it writes the strings of the expected failures, and no other expectation.

Vectors in DIR/vec/NAME.vec.gz are of the image DIR/img/NAME.dll or, where that is missing, of
NAME.dll beside them.

Recordings (*.walks.jsonl.gz, or uncompressed *.walks.jsonl) are calls of DoStackSnapshot in a real
CLR, which are replayed: each is a case. They are replayed by the recorded runtime; --unwind-rules
has no effect on them. A walk is skipped if the recording says that it lacks something that the walk
depends on. Recordings of one folder and runtime that pass share a line of the table.

With --format each file is a test, named by its path, for repositories that are not Rust's. It
passes if all of its cases do; fails if one does not, or if the file cannot be read; and is ignored
if it expects nothing. In a workflow of GitHub Actions:

  - run: clrsim run tests/fixtures --format junit > results.xml
  - uses: actions/upload-artifact@v4
    if: always()
    with: { name: stack-walks, path: results.xml }

In CMake, as a test of CTest:

  add_test(NAME stack-walks
           COMMAND clrsim run --format libtest ${CMAKE_CURRENT_SOURCE_DIR}/fixtures)

Exit codes:
  0  every case passed, or was skipped because no answer is expected
  1  some case failed, or with --format some test
  2  the arguments are wrong, or an input is missing or cannot be read; the others are replayed";

/// Run scenarios of stacks and programs, replay recorded walks and unwinds, and compare the answers
/// with what is known.
///
/// A case passes if all that is known of it comes out: registers, results, callbacks. It is skipped
/// if no answer is expected, because its code cannot be unwound or because too little is known of
/// it: then it is replayed all the same, and only has to come to an end.
#[derive(Debug, Default, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    /// Scenarios, recordings of walks, files of vectors or fuzz records, or folders of them: in
    /// folders, *.kdl, *.walks.jsonl.gz, *.walks.jsonl, *.vec.gz and *.bin.gz. Without any: the
    /// embedded fixtures
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) on: On,

    #[command(flatten)]
    pub(crate) rules: RulesArg,

    /// Only files whose path contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,

    #[command(flatten)]
    pub(crate) jobs: Jobs,

    /// Maximum number of failures of each file that are explained, or all; all are counted
    #[arg(long, value_name = "N|all", default_value = "5")]
    pub(crate) limit: Limit,

    /// The longest time of each search of interleavings; one that has not ended fails
    #[arg(long, value_name = "SECONDS", default_value = "600")]
    pub(crate) timeout: u64,

    /// Write into scenarios what their snapshots gave, in place of expectations that were not met
    #[arg(long)]
    pub(crate) bless: bool,

    /// With --bless: show the change, and write nothing
    #[arg(long, requires = "bless")]
    pub(crate) dry_run: bool,

    /// A line for each kind of case, for readers who do not know the tool
    #[arg(long, conflicts_with_all = ["json", "bless"])]
    pub(crate) summary: bool,

    /// A test for each file, in the form of other tools
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["json", "bless", "summary"])]
    pub(crate) format: Option<TestFormat>,

    #[command(flatten)]
    pub(crate) json: Json,
}

impl RunArgs {
    /// Returns the longest time of a search.
    pub(crate) const fn limit(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}
