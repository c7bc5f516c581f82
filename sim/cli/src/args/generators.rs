//! Arguments of the commands that make texts: `generate`, `minimize`.

use super::{On, OutputArg, ScenarioArg, Timeout};
use crate::output::Replacing;
use clap::{Args, ValueEnum};
use clr_runtime::clause::Clause;
use clr_runtime::profiling::HResult;
use clr_scenario::{hresult, nearest};
use std::path::PathBuf;

const GENERATE_EXAMPLES: &str = "\
Examples:
  clrsim generate --seed 7
  clrsim generate --kind stack --seed 7 -o my.kdl

The scenario expects the results of the simulator. They are no evidence of the behaviour of a real
runtime, and the scenario says so.

Exit codes:
  0  the scenario was printed or written
  2  the arguments are wrong, or the file is there already or cannot be written";

const MINIMIZE_EXAMPLES: &str = "\
Examples:
  clrsim minimize my/large.kdl -o my/small.kdl
  clrsim minimize my/large.kdl --hresult 0x8013135F -o my/small.kdl
  clrsim minimize my/large.kdl --hresult E_FAIL --clause C-039 -o my/small.kdl

A scenario that fails is made smaller as long as it fails in the same way: the same kinds of
differences, decided by the same clauses, in a snapshot, a walk of a stop or a mixed walk. One of
which interleavings are searched, as clrsim explore does it, is made smaller as long as one of them
fails in the same way; the string of that interleaving is written, too. With --hresult or --clause a
scenario is made smaller as long as some snapshot ends so, or has the clause in its story, and for
the same reason: the clauses that decided it. Expectations are kept where they still hold, and never
changed.

Nothing grows: the written scenario has no more lines and no more bytes than the scenario that was
given, which is written as it is if no smaller one is found. The dropped parts are printed.

Bytes that a fuzz target fails on are made smaller by cargo fuzz tmin TARGET FILE.

Exit codes:
  0  the smallest scenario was written
  1  the scenario does not fail, or nothing in it ends so: there is nothing to keep
  2  the arguments are wrong, the scenario is missing or cannot be run, a search in it has not ended
     in its time, or the file is there already
  3  its time was over: the smallest scenario so far was written, and a smaller one may exist
130  Ctrl-C ended the search: the smallest scenario so far was written";

/// A kind of generated scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GenerateKind {
    /// A program with threads that goes through the runtime, with calls where it stops
    #[default]
    Scenario,
    /// A stack placed by hand, with a call
    Stack,
    /// A program without a runtime, with walks where it stops
    Program,
}

/// Results without an HRESULT that `--hresult` accepts too.
const WITHOUT_HRESULT: [&str; 4] = ["killed", "access-violation", "blocked", "endless"];

/// Parses an HRESULT as the tool prints it: a number or a name.
fn ending(text: &str) -> Result<String, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).map(HResult);
    let named = || hresult(text);
    let word = || WITHOUT_HRESULT.contains(&text).then(|| text.to_owned());
    let found = number.or_else(named).map(|found| found.to_string()).or_else(word);
    found.ok_or_else(|| {
        let all: Vec<_> = HResult::NAMED.iter().filter_map(|it| it.name()).collect();
        match nearest(text, &all) {
            Some(near) => format!("there is no such HRESULT; did you mean {near}?"),
            None => {
                "there is no such HRESULT; say a number, such as 0x8013135F, or a name, such as \
                     CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, UNMANAGED_CTX or E_FAIL"
                    .to_owned()
            }
        }
    })
}

/// Print a scenario that is made at random.
#[derive(Debug, Args)]
#[command(after_help = GENERATE_EXAMPLES)]
pub(crate) struct GenerateArgs {
    /// The kind of scenario to make
    #[arg(long, value_name = "KIND", default_value = "scenario")]
    pub(crate) kind: GenerateKind,

    /// The number that it is made from: the same number, the same scenario
    #[arg(long, value_name = "N")]
    pub(crate) seed: u64,

    #[command(flatten)]
    pub(crate) output: OutputArg,
}

/// Make a scenario smaller as long as it still fails.
#[derive(Debug, Args)]
#[command(after_help = MINIMIZE_EXAMPLES)]
pub(crate) struct MinimizeArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArg,

    /// The file to write (*.kdl)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) replacing: Replacing,

    /// Keep a snapshot that ends with this HRESULT: its number (0x80131360), or its name with or
    /// without the prefix (CORPROF_E_STACKSNAPSHOT_UNSAFE or UNSAFE)
    #[arg(long, value_name = "HRESULT", value_parser = ending)]
    pub(crate) hresult: Option<String>,

    /// Keep a snapshot that shows this clause at work
    #[arg(long, value_name = "CLAUSE")]
    pub(crate) clause: Option<Clause>,

    #[command(flatten)]
    pub(crate) on: On,

    #[command(flatten)]
    pub(crate) timeout: Timeout,
}
