//! `clrsim run --bless`: writes into texts what their snapshots gave and what their walks found, and
//! shows the change.

use crate::args::RunArgs;
use crate::console::{BAD, Console, GOOD, HEAD, Trouble};
use crate::input::Source;
use crate::program::ProgramFixture;
use crate::report::write_json;
use crate::{PASSED, UNUSABLE};
use anstyle::Style;
use clr_runtime::generation::Generations;

use serde::Serialize;
use similar::{ChangeTag, TextDiff};
use std::io::{self, Write};

/// What became of a text.
#[derive(Serialize)]
struct Blessed<'b> {
    kind: &'static str,
    file: &'b str,
    changed: bool,
    written: bool,
    /// The change as a patch; empty if there is none.
    patch: String,
}

/// Blesses the texts among `sources`; the exit code.
pub(crate) fn bless(
    args: &RunArgs,
    sources: &[Source],
    console: &mut Console<'_>,
) -> Result<u8, Trouble> {
    if args.paths.is_empty() {
        return Err(Trouble::with(
            "--bless",
            "name the texts to write to; embedded ones cannot be",
        ));
    }
    let on = args.on.unwrap_or(Generations::ALL);
    let texts: Vec<_> = sources.iter().filter(|source| source.is_program()).collect();
    let (mut changed, mut failed) = (0, 0);
    for source in &texts {
        match change(source, on, args.dry_run) {
            Ok(None) if !args.json => {}
            Ok(change) => {
                changed += usize::from(change.is_some());
                let (old, new) = change.unwrap_or_default();
                if args.json {
                    let blessed = Blessed {
                        kind: "blessed",
                        file: &source.name,
                        changed: old != new,
                        written: old != new && !args.dry_run,
                        patch: patch(&source.name, &old, &new),
                    };
                    write_json(&blessed, console)?;
                } else {
                    write_patch(&source.name, &old, &new, console.out)?;
                }
            }
            Err(trouble) => {
                failed += 1;
                console.complain(&trouble);
            }
        }
    }
    if !args.json {
        let word = if args.dry_run { "would change" } else { "changed" };
        writeln!(console.out, "{HEAD}{word}{HEAD:#}: {changed} of {} texts", texts.len())?;
    }
    Ok(if failed == 0 { PASSED } else { UNUSABLE })
}

/// The text before and after, if it changes; written unless it is a dry run.
fn change(
    source: &Source,
    on: Generations,
    dry_run: bool,
) -> Result<Option<(String, String)>, Trouble> {
    let fixture = ProgramFixture::read(source)?;
    let reports = on.iter().map(|generation| {
        let reports = fixture.scenario.run_on(generation);
        reports
            .map(|reports| (generation, reports))
            .map_err(|error| source.trouble(format_args!("cannot be run on {generation}: {error}")))
    });
    let reports: Vec<_> = reports.collect::<Result<_, _>>()?;
    let mut new = clr_scenario::bless(&fixture.text, &reports)?;
    if fixture.scenario.mixed_walks().next().is_some() {
        let reports = on.iter().map(|generation| {
            let reports = fixture.scenario.mixed_on(generation);
            reports.map(|reports| (generation, reports)).map_err(|error| {
                source.trouble(format_args!("cannot be run on {generation}: {error}"))
            })
        });
        let reports: Vec<_> = reports.collect::<Result<_, _>>()?;
        new = clr_scenario::bless_mixed(&new, &reports)?;
    }
    if !fixture.scenario.explore.is_empty() {
        let mut explored = Vec::new();
        for generation in on.iter() {
            explored.extend(fixture.scenario.explore_on(generation).map_err(|error| {
                source.trouble(format_args!("cannot be run on {generation}: {error}"))
            })?);
        }
        new = clr_scenario::bless_histories(&new, &explored)?;
    }
    if fixture.scenario.stops.iter().any(|stop| !stop.expect.is_empty()) {
        let walks = fixture.scenario.run().map_err(|error| source.trouble(error))?;
        new = clr_scenario::bless_walks(&new, &walks)?;
    }
    if new == fixture.text {
        return Ok(None);
    }
    if !dry_run {
        source.write(&new)?;
    }
    Ok(Some((fixture.text, new)))
}

/// The change as a patch.
pub(crate) fn patch(name: &str, old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    let (before, after) = (format!("a/{name}"), format!("b/{name}"));
    diff.unified_diff().context_radius(3).header(&before, &after).to_string()
}

/// Writes the change as a patch, with colours.
pub(crate) fn write_patch(name: &str, old: &str, new: &str, out: &mut dyn Write) -> io::Result<()> {
    let diff = TextDiff::from_lines(old, new);
    let unified = diff.unified_diff();
    writeln!(out, "{HEAD}--- a/{name}\n+++ b/{name}{HEAD:#}")?;
    for hunk in unified.iter_hunks() {
        writeln!(out, "{}", hunk.header())?;
        for change in hunk.iter_changes() {
            let style = match change.tag() {
                ChangeTag::Equal => Style::new(),
                ChangeTag::Delete => BAD,
                ChangeTag::Insert => GOOD,
            };
            let line = change.value().trim_end_matches(['\r', '\n']);
            writeln!(out, "{style}{}{line}{style:#}", change.tag())?;
        }
    }
    Ok(())
}
