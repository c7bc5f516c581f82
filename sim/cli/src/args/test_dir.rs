//! Arguments of `clrsim test-dir`.

use super::sets;
use crate::output::Replacing;
use clap::Args;
use clr_runtime::generation::Generations;
use std::num::NonZeroUsize;
use std::path::PathBuf;

const TEST_DIR_EXAMPLES: &str = "\
Examples:
  clrsim test-dir my/fixtures
  clrsim test-dir my/fixtures --filter hazards --skip slow
  clrsim test-dir my/fixtures --list
  clrsim test-dir my/fixtures --on windows --junit results.xml --force

Each file is a test, named by its path: *.kdl (texts of stacks and programs), *.walks.jsonl.gz and
*.walks.jsonl (recordings of walks), *.vec.gz and *.bin.gz. It passes if all of its cases come out
as they are expected, as with clrsim run; fails if one does not, or if the file cannot be read; and
is ignored if it expects nothing.

In a workflow of GitHub Actions:

  - run: clrsim test-dir tests/fixtures --junit results.xml
  - uses: actions/upload-artifact@v4
    if: always()
    with: { name: stack-walks, path: results.xml }

In CMake, as a test of CTest:

  add_test(NAME stack-walks COMMAND clrsim test-dir ${CMAKE_CURRENT_SOURCE_DIR}/fixtures)

Exit codes:
  0  every test passed, or was ignored; or the tests were listed
  1  some test failed
  2  the arguments are wrong, a path does not exist, no test is left by --filter and --skip, or
     the file of --junit is there already or cannot be written";

/// Run each file of a folder as a test: texts, recordings of walks, and vectors.
///
/// This is the test runner of a repository that is not Rust's: files are found, filtered and run side by
/// side, the results are printed as cargo test does, and written for a CI server as JUnit's XML.
#[derive(Debug, Args)]
#[command(after_help = TEST_DIR_EXAMPLES)]
pub(crate) struct TestDirArgs {
    /// Folders of files, or files
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Only tests whose name contains this; can be repeated: those that contain one of them
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Vec<String>,

    /// Without tests whose name contains this; can be repeated
    #[arg(long, value_name = "TEXT")]
    pub(crate) skip: Vec<String>,

    /// Print the names of the tests, and run none
    #[arg(long)]
    pub(crate) list: bool,

    /// The runtimes that snapshots of texts are made on: names of runtimes, or of sets of them
    /// [default: all]
    #[arg(long, value_name = "RUNTIMES", value_parser = sets)]
    pub(crate) on: Option<Generations>,

    /// Threads to run on; the output does not depend on it [default: one for each processor]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,

    /// Write the results as JUnit's XML, too
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) replacing: Replacing,
}
