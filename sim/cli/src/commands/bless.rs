//! `clrsim run --bless`: writes the results of snapshots and walks into texts and prints the
//! change.

use crate::args::RunArgs;
use crate::commands::history::refused;
use crate::input::Source;
use crate::input::program::ProgramFixture;
use crate::render::console::{Console, HEAD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::patch::{patch, write_patch};
use crate::report::search::within;
use crate::{PASSED, UNUSABLE};
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::{HistoryDifference, Results, RunOnError};
use serde::Serialize;
use std::time::Duration;

/// The result for one text.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Blessed<'b> {
    kind: &'static str,
    file: &'b str,
    changed: bool,
    written: bool,
    /// The change as a patch; empty if the text stays as it is.
    patch: String,
}

/// Blesses the texts among `sources` and returns the exit code.
pub(crate) fn bless(
    args: &RunArgs,
    sources: &[Source],
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    if args.paths.is_empty() {
        return Err(CliError::new(
            "--bless",
            "name the scenarios to write to; embedded ones cannot be",
        ));
    }
    let on = args.on.or_all();
    let texts: Vec<_> = sources.iter().filter(|source| source.is_program()).collect();
    let (mut changed, mut failed) = (0, 0);
    for source in &texts {
        match change(source, on, (args.dry_run, args.limit())) {
            Ok(None) if !args.json.wanted => {}
            Ok(change) => {
                changed += usize::from(change.is_some());
                let (old, new) = change.unwrap_or_default();
                if args.json.wanted {
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
            Err(error) => {
                failed += 1;
                console.print_error(&error);
            }
        }
    }
    if !args.json.wanted {
        let word = if args.dry_run { "would change" } else { "changed" };
        writeln!(console.out, "{HEAD}{word}{HEAD:#}: {changed} of {} scenarios", texts.len())?;
    }
    Ok(if failed == 0 { PASSED } else { UNUSABLE })
}

/// Returns the text before and after if it changes, and writes it unless `dry_run` is set.
fn change(
    source: &Source,
    on: Generations,
    (dry_run, limit): (bool, Duration),
) -> Result<Option<(String, String)>, CliError> {
    let fixture = ProgramFixture::read(source)?;
    let new = blessed(&fixture, source, on, limit)?;
    if new == fixture.text {
        return Ok(None);
    }
    if !dry_run {
        source.write(&new)?;
    }
    Ok(Some((fixture.text, new)))
}

/// Returns the text with the results on these runtimes in its expectations. Each search may take `limit`.
pub(super) fn blessed(
    fixture: &ProgramFixture,
    source: &Source,
    on: Generations,
    limit: Duration,
) -> Result<String, CliError> {
    let scenario = &fixture.scenario;
    let refused = |generation, error| refused(source, scenario, generation, error);
    let reports = each(on, |generation| scenario.run_on(generation), refused)?;
    let mut new = clr_scenario::bless(&fixture.text, Results::Snapshots(&reports))?;
    if scenario.mixed_walks().next().is_some() {
        let reports = each(on, |generation| scenario.mixed_on(generation), refused)?;
        new = clr_scenario::bless(&new, Results::MixedWalks(&reports))?;
    }
    if !scenario.explore.is_empty() {
        let explore = |generation| scenario.explore_on_while(generation, within(limit));
        let explored = each(on, explore, refused)?;
        let explored: Vec<_> = explored.into_iter().flat_map(|(_, explored)| explored).collect();
        let mut differences = explored.iter().flat_map(|it| &it.differences);
        if let Some(stopped) = differences.find(|it| matches!(it, HistoryDifference::Stopped(_))) {
            return Err(source.error(stopped));
        }
        new = clr_scenario::bless(&new, Results::Histories(&explored))?;
    }
    if scenario.stops.iter().any(|stop| !stop.expect.is_empty()) {
        let walks = scenario.run().map_err(|error| source.error(error))?;
        new = clr_scenario::bless(&new, Results::Walks(&walks))?;
    }
    Ok(new)
}

/// Returns the results on each of these runtimes.
fn each<T>(
    on: Generations,
    make: impl Fn(Generation) -> Result<T, RunOnError>,
    refused: impl Fn(Generation, RunOnError) -> CliError,
) -> Result<Vec<(Generation, T)>, CliError> {
    let one = |generation| match make(generation) {
        Ok(results) => Ok((generation, results)),
        Err(error) => Err(refused(generation, error)),
    };
    on.iter().map(one).collect()
}
