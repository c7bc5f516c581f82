//! `clrsim` without a command.

use crate::PASSED;
use crate::args::Cli;
use crate::render::console::{Console, DIM, HEAD};
use crate::render::error::CliError;
use clap::CommandFactory as _;

/// The first commands to try.
const FIRST: [(&str, &str); 7] = [
    ("new my.kdl", "write a scenario to start from: a stack, and a call of DoStackSnapshot"),
    ("run my.kdl", "check what it expects"),
    ("matrix gallery/seeds/c-039-stubs.kdl", "one scenario on all runtimes, and why"),
    ("explore gallery/hazards/h-08-callback-takes-a-lock.kdl", "find a profiler's deadlock"),
    ("list lock", "the embedded scenarios about something; clrsim list --print NAME prints one"),
    ("run --summary", "replay the evidence that comes with the tool"),
    ("--help", "all commands"),
];

/// Prints where to begin and returns the exit code.
pub(crate) fn begin(console: &mut Console<'_>) -> Result<u8, CliError> {
    let about = Cli::command().get_about().map(ToString::to_string).unwrap_or_default();
    for line in crate::render::wrap::wrapped(&about, crate::render::wrap::width()) {
        writeln!(console.out, "{line}")?;
    }
    writeln!(console.out)?;
    for (command, what) in FIRST {
        writeln!(console.out, "  {HEAD}clrsim {command}{HEAD:#}")?;
        writeln!(console.out, "      {DIM}{what}{DIM:#}")?;
    }
    Ok(PASSED)
}
