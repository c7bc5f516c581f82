//! Inputs made smaller as long as a command fails on them in the same way.

use super::finding::Runner;
use super::how_to_go_on;
use super::input::{target, text_of};
use crate::FAILED;
use crate::args::{FuzzTarget, MinimizeArgs};
use crate::commands::smaller::{
    Output, fewer_characters, head, smaller_text, write_bytes, write_text,
};
use crate::input::{PROGRAM, Source};
use crate::interrupt::is_interrupted;
use crate::render::console::Console;
use crate::render::error::CliError;
use clr_generate::minimize as smallest;
use clr_scenario::Scenario;
use std::ffi::OsString;

/// A program and its first arguments.
type CommandLine<'a> = (&'a OsString, &'a [OsString]);

/// Runs of a command on smaller inputs, each compared with the run on the original. After an error
/// nothing is run any more.
struct Runs<'a> {
    runner: Runner<'a>,
    wanted: String,
    error: Option<CliError>,
}

impl Runs<'_> {
    /// Returns true if the command fails as it did on the original, and the search is to go on.
    fn fails_still(&mut self, input: &[u8]) -> bool {
        !is_interrupted() && self.fails(input)
    }

    /// Returns true if the command fails as it did on the original.
    fn fails(&mut self, input: &[u8]) -> bool {
        if self.error.is_some() {
            return false;
        }
        match self.runner.finding(input) {
            Ok(found) => found.is_some_and(|found| found == self.wanted),
            Err(error) => {
                self.error = Some(error);
                false
            }
        }
    }
}

/// Runs the command on the original, `bytes`, in a file whose name ends with `ending`. Returns `None`, after
/// saying so, if it does not fail.
fn on_original<'a>(
    source: &Source,
    bytes: &[u8],
    args: &MinimizeArgs,
    (command, ending): (CommandLine<'a>, &str),
    console: &mut Console<'_>,
) -> Result<Option<Runs<'a>>, CliError> {
    console.watch_interrupts();
    let runner = Runner::new(command, &args.output, ending)?;
    let Some(wanted) = runner.finding(bytes)? else {
        let name = &source.name;
        writeln!(console.out, "{name}: the command does not fail, so there is nothing to keep")?;
        return Ok(None);
    };
    let place = wanted.replace('\n', ": ");
    writeln!(console.out, "keeps: {place}")?;
    Ok(Some(Runs { runner, wanted, error: None }))
}

/// Makes the bytes of the input smaller.
pub(super) fn minimize_bytes(
    source: &Source,
    args: &MinimizeArgs,
    command: CommandLine<'_>,
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    let bytes = source.read()?;
    let Some(mut runs) = on_original(source, &bytes, args, (command, ""), console)? else {
        return Ok(FAILED);
    };
    let small = clr_generate::minimize_bytes(bytes.to_vec(), |bytes| runs.fails_still(bytes));
    if let Some(error) = runs.error {
        return Err(error);
    }
    write_bytes(Output::from(args), &bytes, &small, console)?;
    how_to_go_on(args, console)
}

/// Makes the input smaller as a text: as the model that it describes, or by lines and characters.
pub(super) fn minimize_text(
    source: &Source,
    args: &MinimizeArgs,
    command: CommandLine<'_>,
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    let bytes = source.read()?;
    let Some(mut runs) = on_original(source, &bytes, args, (command, PROGRAM), console)? else {
        return Ok(FAILED);
    };
    let target = target(source, args);
    let given = str::from_utf8(&bytes)
        .ok()
        .filter(|text| target == FuzzTarget::FixtureText || Scenario::parse(text).is_ok());
    let of_bytes = || text_of(target, &bytes).map(|scenario| scenario.to_string());
    let Some(original) = given.map(ToOwned::to_owned).or_else(of_bytes) else {
        let target = target.name();
        return Err(source.error(format_args!(
            "is no text, and none can stand for it: bytes of {target} become a file that is not \
             called *.kdl"
        )));
    };
    if given.is_none() && !runs.fails(original.as_bytes()) {
        let name = &source.name;
        writeln!(
            console.out,
            "{name}: as a text it does not fail in the same way; it becomes smaller bytes in a file \
             that is not called *.kdl"
        )?;
        return Ok(FAILED);
    }
    let scenario = Scenario::parse(&original).ok();
    let scenario = scenario.filter(|parsed| runs.fails(parsed.to_string().as_bytes()));
    let smaller = if let Some(scenario) = scenario {
        let small =
            smallest(scenario.clone(), |small| runs.fails_still(small.to_string().as_bytes()));
        let is_changed = small != scenario;
        let small = small.to_string();
        let candidates = [head(&original) + &small, small];
        // Without a change of the model only its layout could be another one.
        let holds = |text: &str| runs.fails(text.as_bytes());
        is_changed.then(|| smaller_text(&original, &candidates, holds)).flatten()
    } else {
        // The command fails for the text, not for what it says.
        let holds = |text: &str| runs.fails_still(text.as_bytes());
        Some(fewer_characters(&original, holds)).filter(|text| *text != original)
    };
    if let Some(error) = runs.error {
        return Err(error);
    }
    write_text(Output::from(args), &original, smaller.as_deref(), console)?;
    how_to_go_on(args, console)
}
