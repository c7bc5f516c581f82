//! What `DoStackSnapshot` would return for a thread of a dump.

use crate::args::InspectArgs;
use crate::commands::explain::write_line;
use crate::render::console::{BAD, Console, HEAD};
use crate::render::error::CliError;
use crate::report::callback;
use crate::{INCOMPLETE, PASSED};
use clr_dump::CoreDump;
use clr_import::{ImportError, Observation, ThreadReader};
use clr_inspect::{Runtime, StackWalker};
use clr_runtime::generation::Generation;

/// Prints the decisions of a call on a thread, and its result. Returns the exit code.
pub(super) fn snapshot(
    args: &InspectArgs,
    process: &CoreDump<'_>,
    thread: u32,
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    let (observation, on) = match read(args, process, thread) {
        Ok(read) => read,
        Err(error) => {
            writeln!(console.out, "{BAD}cannot be said{BAD:#}: {error}")?;
            return Ok(INCOMPLETE);
        }
    };
    let scenario = match observation.scenario(vec![args.call.call()]) {
        Ok(scenario) => scenario,
        Err(error) => {
            writeln!(console.out, "{BAD}cannot be said{BAD:#}: {error}")?;
            return Ok(INCOMPLETE);
        }
    };
    writeln!(console.out, "{HEAD}thread {thread}{HEAD:#} on {on}")?;
    if let Some(base) = observation.bounds.map(|(_, base)| base) {
        let small = observation.small(base).unwrap_or(base);
        writeln!(console.out, "  the end of its stack, {base:#x}, is {small:#x} here")?;
    }
    for note in observation.small_notes() {
        writeln!(console.out, "  not in the dump: {note}")?;
    }
    for (at, made) in scenario.explain_each_on(on) {
        writeln!(console.out, "\n{HEAD}snapshot{HEAD:#} {}", callback::call(&scenario, at))?;
        match made {
            Ok(made) => made.story.iter().try_for_each(|line| write_line(line, console.out))?,
            Err(error) => writeln!(console.out, "  {}", scenario.named(error))?,
        }
    }
    Ok(PASSED)
}

/// Reads the thread.
fn read(
    args: &InspectArgs,
    process: &CoreDump<'_>,
    thread: u32,
) -> Result<(Observation, Generation), ImportError> {
    let runtime = Runtime::find(process)?;
    let walker = StackWalker::new(process, process.code_map(), Some(&runtime));
    let mut reader = ThreadReader::new(process, &runtime, walker, args.on)?;
    Ok((reader.read(thread)?, reader.generation()))
}
