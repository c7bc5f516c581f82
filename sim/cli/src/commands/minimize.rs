//! `clrsim minimize`: finds the smallest input that still fails, or has the same result.

mod by_command;
mod finding;
mod input;
mod keep;
mod text;

use crate::args::MinimizeArgs;
use crate::input::{PROGRAM, Source, slashed};
use crate::output::Replacing;
use crate::render::console::Console;
use crate::render::error::CliError;
use crate::{PASSED, interrupt};

/// Makes the input that `args` name smaller and returns the exit code.
pub(crate) fn minimize(args: &MinimizeArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let source = Source::find(&args.input)?;
    let name = slashed(&args.output);
    let becomes_text = name.ends_with(PROGRAM);
    if !becomes_text && args.command.is_empty() {
        return Err(CliError::new(&name, "texts are called *.kdl"));
    }
    Replacing::check_is_not(&args.output, &source)?;
    args.replacing.check(&args.output)?;
    match (args.command.split_first(), becomes_text) {
        (Some(command), true) => by_command::minimize_text(&source, args, command, console),
        (Some(command), false) => by_command::minimize_bytes(&source, args, command, console),
        (None, _) => text::minimize(&source, args, console),
    }
}

/// Returns the exit code of a search that has written its result, and prints how to go on if it was interrupted.
fn how_to_go_on(args: &MinimizeArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    if !interrupt::is_interrupted() {
        return Ok(PASSED);
    }
    let output = slashed(&args.output);
    writeln!(
        console.out,
        "interrupted: {output} is what was found so far; the same command with it as its input goes on"
    )?;
    Ok(interrupt::INTERRUPTED)
}
