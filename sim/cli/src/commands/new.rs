//! `clrsim new`: writes a text to start from.

use crate::PASSED;
use crate::args::{NewArgs, NewKind};
use crate::output::text_name;
use crate::render::console::{Console, GOOD};
use crate::render::error::CliError;
use crate::render::shell::quoted;

/// A stack placed by hand.
const STACK: &str = include_str!("new/stack.kdl");
/// A program with a runtime, which is executed.
const A_PROGRAM: &str = include_str!("new/program.kdl");

/// Writes the text that `args` name and returns the exit code.
pub(crate) fn new(args: &NewArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let name = text_name(&args.file)?;
    let text = match args.kind {
        NewKind::Program => A_PROGRAM,
        NewKind::Stack => STACK,
    };
    args.replacing.write(&args.file, text)?;
    writeln!(console.out, "{GOOD}written{GOOD:#}: {name}")?;
    let name = quoted(&name);
    writeln!(console.out, "  clrsim run {name}       checks what it expects")?;
    writeln!(
        console.out,
        "  clrsim matrix {name}    shows what it gives on all runtimes, and why"
    )?;
    Ok(PASSED)
}
