//! What becomes of a scenario that was made: it is printed, or written to a file.

use crate::args::ImportArgs;
use crate::input::{Source, slashed};
use crate::output::{Replacing, text_name};
use crate::render::console::{Console, GOOD};
use crate::render::error::CliError;
use clr_import::Note;

/// Checks that the scenario can be written where it is wanted.
pub(super) fn check_output(args: &ImportArgs, source: &Source) -> Result<(), CliError> {
    let Some(path) = &args.output.path else { return Ok(()) };
    text_name(path)?;
    Replacing::check_is_not(path, source)?;
    args.output.replacing.check(path)
}

/// Prints a scenario, or writes it and returns the name of its file.
pub(super) fn put(
    args: &ImportArgs,
    text: &str,
    console: &mut Console<'_>,
) -> Result<Option<String>, CliError> {
    let Some(path) = &args.output.path else {
        write!(console.out, "{text}")?;
        return Ok(None);
    };
    args.output.replacing.write(path, text)?;
    let name = slashed(path);
    writeln!(console.out, "{GOOD}written{GOOD:#}: {name}")?;
    Ok(Some(name))
}

/// Prints what a source does not have.
pub(super) fn write_notes(notes: &[Note], console: &mut Console<'_>) -> Result<(), CliError> {
    for note in notes {
        writeln!(console.out, "  not in the source: {note}")?;
    }
    Ok(())
}
