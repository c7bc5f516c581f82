//! `clrsim import`: a recorded walk as a text.

mod call;
mod place;
mod space;
mod stack;
mod text;

#[cfg(test)]
pub(crate) use text::Refusal;
pub(crate) use text::text_of;

use crate::PASSED;
use crate::args::ImportArgs;
use crate::commands::explain::recorded::{pick, recording_of};
use crate::input::{Source, slashed};
use crate::output::{Replacing, text_name};
use crate::render::console::{Console, GOOD, HEAD};
use crate::render::error::CliError;
use crate::render::words::counted;
use crate::report::recording::recorded_end;
use clr_recording::{RecordedCode, Recording, RecordingReplay, WalkLine};
use std::io;

/// Prints or writes the text of the walk that `args` name, or lists the walks, and returns the exit
/// code.
pub(crate) fn import(args: &ImportArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let source = Source::find(&args.file)?;
    let recording = recording_of(&source)?;
    let Some(n) = args.walk else {
        list(&source, &recording, console)?;
        return Ok(PASSED);
    };
    let walk = pick(&source, &recording.walks, Some(n))?;
    if let Some(path) = &args.output {
        text_name(path)?;
        Replacing::check_is_not(path, &source)?;
        args.replacing.check(path)?;
    }
    let code = RecordedCode::new(&recording);
    let mut replay =
        RecordingReplay::new(&recording, &code).map_err(|error| source.error(error))?;
    let scenario = text_of(&recording, &mut replay, walk)
        .map_err(|refusal| CliError::new(&format!("{} walk {n}", source.name), refusal))?;
    let text = head(&source, walk) + &scenario.to_string();
    let Some(path) = &args.output else {
        write!(console.out, "{text}")?;
        return Ok(PASSED);
    };
    args.replacing.write(path, &text)?;
    let name = slashed(path);
    writeln!(console.out, "{GOOD}written{GOOD:#}: {name}")?;
    writeln!(console.out, "  clrsim run {name}       compares it with what was recorded")?;
    writeln!(
        console.out,
        "  clrsim matrix {name}    shows what it gives on all runtimes, and why"
    )?;
    Ok(PASSED)
}

/// Returns the comment at the begin of a text: the recording, and what was not seen there.
fn head(source: &Source, walk: &WalkLine) -> String {
    let file = source.name.rsplit('/').next().unwrap_or(&source.name);
    let made = format!("// Made by clrsim import {file} --walk {}.\n", walk.n);
    let mut inferred = walk.state.inferred.clone();
    if walk.frames.iter().any(|frame| frame.returns_inferred) {
        inferred.push("where a Frame leads".to_owned());
    }
    if inferred.is_empty() {
        return made;
    }
    format!("{made}// Inferred from the result, not recorded: {}.\n", inferred.join(", "))
}

/// Lists the walks.
fn list(source: &Source, recording: &Recording, console: &mut Console<'_>) -> io::Result<()> {
    let (count, on) = (counted(recording.walks.len(), "walk", "walks"), recording.generation);
    writeln!(console.out, "{HEAD}{}{HEAD:#}: {count} on {on}", source.name)?;
    for walk in &recording.walks {
        let WalkLine { n, situation, variant, result, .. } = walk;
        let count = result.callback_count.map_or(result.callbacks.len(), |count| count as usize);
        let (end, count) = (recorded_end(result), counted(count, "callback", "callbacks"));
        write!(console.out, "{n:6}  {situation}, {variant}: {end}, {count}")?;
        writeln!(console.out, "{}", if walk.replayable { "" } else { "; cannot be replayed" })?;
    }
    Ok(())
}
