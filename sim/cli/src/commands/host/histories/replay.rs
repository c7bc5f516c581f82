//! An interleaving of a guest, executed once more: explained, drawn, or stopped for a debugger.

use super::coverage::Covered;
use super::description::{Description, Drawing};
use super::executor::with_fixed_addresses;
use super::guest::{ENDS, Guest, Output, fingerprint};
use super::name::HistoryName;
use crate::args::HostArgs;
use crate::input::{Source, slashed};
use crate::render::console::{BAD, Console, DIM, GOOD, HEAD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::style::Style;
use crate::render::wrap::write_wrapped;
use crate::{FAILED, PASSED};
use clr_explore::{ReplaySearch, Search as _};
use serde::Serialize;
use std::process::Command;

/// A replayed interleaving.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Replayed {
    kind: &'static str,
    library: String,
    file: String,
    runtime: &'static str,
    replay: String,
    /// `None` if the name does not say with which text the interleaving was found.
    text_edited: Option<bool>,
    /// The same for the library.
    library_changed: Option<bool>,
    /// True if a thread could not go on where the interleaving has it go on: this is another interleaving.
    strayed: bool,
    turns: u64,
    /// The fingerprint of the verdict; `ends` if the interleaving does not fail.
    end: String,
    #[serde(flatten)]
    description: Description,
}

/// Replays an interleaving. Returns the exit code.
pub(in super::super) fn replay(
    args: &HostArgs,
    name: &str,
    source: &Source,
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    let name = HistoryName::parse(name)?;
    if args.on.runtimes.is_some_and(|on| on.iter().all(|it| it != name.generation)) {
        let problem = format!("the interleaving was found on {}", name.generation.name());
        return Err(CliError::new("--on", problem));
    }
    if cfg!(windows) && args.gdb.is_some() {
        return Err(CliError::new("--gdb", "is for Linux: here no process stops for a debugger"));
    }
    with_fixed_addresses();
    let mut guest = Guest::new(args, source, name.generation)?;
    let mut replay = ReplaySearch::new(name.schedule.clone());
    replay.begin(0);
    let drawing = Drawing {
        rows: args.draw.draw.then_some((args.draw.width, !args.draw.all)),
        page: args.draw.html.is_some(),
        replay: format!("{} --replay {name}", guest.command()),
        runtime: name.generation.name().to_owned(),
    };
    let debug = |process: u32| debug(process, args.gdb.as_deref().unwrap_or_default());
    let output = match &args.gdb {
        Some(_) => Output::PrintAndStop(&debug),
        None if args.json.wanted => Output::Capture,
        None => Output::Print,
    };
    let (ended, mut description) = guest.describe(&mut replay, &drawing, output);
    let changed = guest.is_changed(&name);
    let page = description.page.take();
    let replayed = Replayed {
        kind: "guest-history",
        library: guest.library.clone(),
        file: guest.text.clone(),
        runtime: name.generation.name(),
        replay: name.to_string(),
        text_edited: changed.map(|(text, _)| text),
        library_changed: changed.map(|(_, library)| library),
        strayed: ended.as_ref().is_ok_and(|ending| ending.strayed),
        turns: ended.as_ref().map_or(0, |ending| ending.turns),
        end: fingerprint(&ended),
        description,
    };
    let code = if replayed.end == ENDS { PASSED } else { FAILED };
    if let (Some(path), Some(page)) = (&args.draw.html, page) {
        args.draw.replacing.write_page(path, &page)?;
        let name = slashed(path);
        writeln!(console.err, "{GOOD}written{GOOD:#}: {HEAD}{name}{HEAD:#}")?;
    }
    if args.json.wanted {
        write_json(&replayed, console)?;
    } else {
        replayed.write(console)?;
    }
    Ok(code)
}

/// Runs the debugger on a process that has stopped: with commands, or on the terminal.
fn debug(process: u32, commands: &str) {
    let mut gdb = Command::new("gdb");
    gdb.arg("-q").arg("-p").arg(process.to_string());
    if !commands.is_empty() {
        gdb.arg("-batch");
        for command in commands.split(';') {
            gdb.arg("-ex").arg(command.trim());
        }
    }
    if let Err(error) = gdb.status() {
        eprintln!("gdb cannot be started: {error}");
    }
}

impl Replayed {
    fn write(&self, console: &mut Console<'_>) -> Result<(), CliError> {
        let Self { library, file, runtime, turns, end, description, .. } = self;
        let note = |is_so: Option<bool>, what: &str| {
            (is_so == Some(true)).then(|| format!("{what} after this interleaving was found"))
        };
        let notes = [
            note(self.library_changed, "the library was built again"),
            note(self.text_edited, "the text was edited"),
            self.strayed.then(|| {
                "this is another interleaving: a thread could not go on where it did".to_owned()
            }),
        ];
        for note in notes.into_iter().flatten() {
            writeln!(console.err, "{BAD}note:{BAD:#} {note}")?;
        }
        let out = &mut *console.out;
        writeln!(out, "{HEAD}{library}{HEAD:#} over {file} on {runtime}, {turns} turns")?;
        if !description.rows.is_empty() {
            for row in &description.rows {
                writeln!(out, "{row}")?;
            }
            return Ok(());
        }
        for line in &description.story {
            writeln!(out, "{}", format!("  {line}").trim_end())?;
        }
        if description.story.is_empty() {
            let style = if end == ENDS { GOOD } else { BAD };
            let words = if end == ENDS { "ends well" } else { end };
            writeln!(out, "  {style}{words}{style:#}")?;
        }
        for found in &description.findings {
            writeln!(out, "  {BAD}{}{BAD:#} {}", found.finding, found.text)?;
        }
        for Covered { what, text } in &description.covered {
            write!(out, "  {DIM}{what}:{DIM:#} ")?;
            write_wrapped(out, 4, Style::new(), text, "")?;
        }
        super::super::write::write_walks(&description.walks, out)?;
        Ok(())
    }
}
