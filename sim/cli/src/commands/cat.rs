//! `clrsim cat`: prints a text as it is stored.

use crate::PASSED;
use crate::args::CatArgs;
use crate::commands::history::find;
use crate::input::slashed;
use crate::render::console::Console;
use crate::render::error::CliError;

/// Prints the text that `args` name and returns the exit code.
pub(crate) fn cat(args: &CatArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let source = find(&slashed(&args.name))?;
    let text = source.read_text()?;
    write!(console.out, "{text}")?;
    Ok(PASSED)
}
