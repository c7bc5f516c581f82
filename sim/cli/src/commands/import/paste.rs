//! `clrsim import` of stacks that a debugger printed.

use super::write::{check_output, put, write_notes};
use crate::args::ImportArgs;
use crate::input::Source;
use crate::render::console::{BAD, Console, HEAD};
use crate::render::error::CliError;
use crate::render::shell::quoted;
use crate::render::words::counted;
use crate::{INCOMPLETE, PASSED};
use clr_import::{ImportError, Paste, PastedThread};

/// Prints or writes the scenario of a thread, or lists the threads, and returns the exit code.
pub(super) fn import(
    args: &ImportArgs,
    source: &Source,
    paste: &Paste,
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    let thread = match (args.thread, paste.threads.as_slice()) {
        (Some(id), threads) => threads.iter().find(|thread| thread.id == id),
        (None, [thread]) => Some(thread),
        (None, _) => None,
    };
    let Some(thread) = thread else {
        if let Some(id) = args.thread {
            return Err(source.error(ImportError::NoThread(id)));
        }
        if args.output.path.is_some() {
            return Err(source.error("has many threads: --output needs --thread, which says one"));
        }
        list(source, paste, console)?;
        return Ok(PASSED);
    };
    check_output(args, source)?;
    let given = args.call.is_given().then(|| args.call.call());
    let head = format!("Made by clrsim import of stacks of {}.", paste.format.name());
    let made = paste.observation(thread, args.on).and_then(|observation| {
        let text = observation.text(&head, paste.calls(thread, given))?;
        Ok((text, observation.small_notes()))
    });
    let (text, notes) = match made {
        Ok(made) => made,
        Err(error) => {
            writeln!(console.err, "{BAD}no scenario{BAD:#}: {error}")?;
            return Ok(INCOMPLETE);
        }
    };
    let Some(name) = put(args, &text, console)? else { return Ok(PASSED) };
    let name = quoted(&name);
    write_notes(&notes, console)?;
    writeln!(console.out, "  clrsim run {name}       checks it")?;
    writeln!(console.out, "  clrsim explain {name}   shows what decides its calls")?;
    Ok(PASSED)
}

/// Lists the threads.
fn list(source: &Source, paste: &Paste, console: &mut Console<'_>) -> Result<(), CliError> {
    let count = counted(paste.threads.len(), "thread", "threads");
    writeln!(console.out, "{HEAD}{}{HEAD:#}: {count}, by {}", source.name, paste.format.name())?;
    for thread in &paste.threads {
        let PastedThread { id, is_cooperative, .. } = thread;
        let mode = match is_cooperative {
            Some(true) => ", cooperative",
            Some(false) => ", preemptive",
            None => "",
        };
        let frames = counted(thread.frame_count(), "frame", "frames");
        writeln!(console.out, "  {id:#8x}{mode}: {frames}")?;
    }
    Ok(())
}
