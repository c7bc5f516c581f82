//! `clrsim import` of a core dump: the stack of a thread, or a hang.

use super::write::{check_output, put, write_notes};
use crate::args::ImportArgs;
use crate::input::Source;
use crate::input::dump::DumpFile;
use crate::render::console::{BAD, Console};
use crate::render::error::CliError;
use crate::render::shell::quoted;
use crate::{INCOMPLETE, PASSED};
use clr_dump::CoreDump;
use clr_import::{HangScenario, ImportError, Note, ThreadReader, generation_of_process};
use clr_inspect::{Diagnosis, Runtime, StackWalker};

/// A scenario's text, and what the dump does not say.
struct Made {
    text: String,
    notes: Vec<Note>,
}

/// Prints or writes the scenario, and returns the exit code.
pub(super) fn import(
    args: &ImportArgs,
    source: &Source,
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    check_output(args, source)?;
    let dump = DumpFile::of(source, &args.files)?;
    let process = dump.open()?;
    let made = match args.thread {
        Some(thread) => stack(args, &process, thread),
        None => hang(args, &process),
    };
    let made = match made {
        Ok(made) => made,
        Err(error @ (ImportError::NoThread(_) | ImportError::NotManaged(_))) => {
            return Err(dump.error(error));
        }
        Err(error) => {
            writeln!(console.err, "{BAD}no scenario{BAD:#}: {error}")?;
            return Ok(INCOMPLETE);
        }
    };
    let Some(name) = put(args, &made.text, console)? else { return Ok(PASSED) };
    let name = quoted(&name);
    write_notes(&made.notes, console)?;
    let (verb, what) = match args.thread {
        Some(_) => ("explain", "shows what decides the call"),
        None => ("explore", "searches for the hang, and tells its story"),
    };
    writeln!(console.out, "  clrsim run {name}       checks it")?;
    writeln!(console.out, "  clrsim {verb} {name}   {what}")?;
    Ok(PASSED)
}

/// Makes the scenario of a thread's stack.
fn stack(args: &ImportArgs, process: &CoreDump<'_>, thread: u32) -> Result<Made, ImportError> {
    let runtime = Runtime::find(process)?;
    let walker = StackWalker::new(process, process.code_map(), Some(&runtime));
    let observation = ThreadReader::new(process, &runtime, walker, args.on)?.read(thread)?;
    let text = observation
        .text("Made by clrsim import of a core dump.", vec![args.call.call_or_usual()])?;
    Ok(Made { text, notes: observation.small_notes() })
}

/// Makes the scenario of the hang.
fn hang(args: &ImportArgs, process: &CoreDump<'_>) -> Result<Made, ImportError> {
    let runtime = Runtime::find(process);
    let known = runtime.as_ref().map_err(|error| *error);
    let mut walker = StackWalker::new(process, process.code_map(), known.ok());
    let found = Diagnosis::of(process, known, &mut walker);
    let on = args.on.or_else(|| generation_of_process(process));
    let on = on.ok_or(ImportError::NoGeneration)?;
    let hang = HangScenario::new(process, known.ok(), &found, &mut walker, on)?;
    Ok(Made { text: hang.text("Made by clrsim import of a core dump."), notes: hang.notes })
}
