//! `clrsim replay`: prints or draws one interleaving.

use crate::args::{DrawArgs, Jobs, ReplayArgs};
use crate::commands::history::{Named, Searched, find, read, refused, search, usual_but};
use crate::input::{Source, slashed};
use crate::output::Replacing;
use crate::render::console::{BAD, Console, DIM, GOOD, HEAD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::report::history::{
    Facts, Failed, flags, name, replay_arguments, usual, write_failure, write_row,
};
use crate::{FAILED, PASSED};
use clr_explore::headline;
use clr_explore::{Budget, History, ScheduleString, Verdict};
use clr_runtime::generation::Generation;
use clr_scenario::{Exploration, Exploring, Scenario};
use clr_story::timeline::{RowOptions, Timeline};
use serde::Serialize;
use std::io;

/// Note for an interleaving of a text with another digest.
const EDITED: &str = "the scenario was edited after this interleaving was found";

/// A replayed interleaving, for JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Replayed<'r> {
    kind: &'static str,
    file: &'r str,
    generation: &'static str,
    replay: &'r str,
    replay_flags: Vec<&'static str>,
    text_edited: Option<bool>,
    turns: usize,
    #[serde(flatten)]
    failed: Option<Failed>,
}

/// A replayed interleaving and its verdict.
struct Made {
    verdict: Option<Verdict>,
    history: History,
}

fn make(
    source: &Source,
    scenario: &Scenario,
    generation: Generation,
    schedule: &ScheduleString,
    budget: &Budget,
    is_edited: Option<bool>,
) -> Result<Made, CliError> {
    let refused = |error| refused(source, scenario, generation, error);
    let exploring = Exploring::new(scenario, generation).map_err(refused)?;
    let made = exploring.replay(schedule, budget).map_err(refused)?;
    let (verdict, history) = made.ok_or_else(|| {
        let switched = "every instruction was a switch point (--instructions), or was not \
                        (--instructions=false)";
        let why = match is_edited {
            Some(true) => EDITED.to_owned(),
            Some(false) => switched.to_owned(),
            None => format!("the scenario has changed, or {switched}"),
        };
        source.error(format_args!("has no interleaving {schedule} on {generation}: {why}"))
    })?;
    Ok(Made { verdict, history })
}

/// Replays the interleaving that `args` name and returns the exit code.
pub(crate) fn replay(args: &ReplayArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let draws = args.draw.draw || args.draw.html.is_some();
    let is_text = draws && !args.history.contains('@');
    let named = if is_text { None } else { Some(Named::parse(&args.history)?) };
    let source = find(named.as_ref().map_or(&args.history, |named| &named.file))?;
    if let Some(page) = &args.draw.html {
        Replacing::check_is_not(page, &source)?;
        args.draw.replacing.check_page(page)?;
    }
    let fixture = read(&source)?;
    let scenario = &fixture.scenario;
    let settings = usual_but(scenario, args.settings);
    let is_edited = named.as_ref().and_then(|named| named.is_edited(scenario));
    let (generation, schedule) = match named {
        Some(named) => (named.generation, named.schedule),
        None => first_that_fails(args, &source, scenario, &settings, console)?,
    };
    let budget = settings.budget();
    let made = make(&source, scenario, generation, &schedule, &budget, is_edited)?;
    warn(&source, is_edited, console)?;
    let Made { verdict, history } = &made;
    let needed = needed(scenario, &settings, verdict.as_ref());
    if draws {
        let name = name(&source.name, scenario, generation, &schedule);
        let title = scenario.about.shows.as_deref().unwrap_or(&source.name);
        draw(&args.draw, &made, (title, generation), (&name, &needed), console)?;
        return Ok(PASSED);
    }
    let turns = history.turns.len();
    if args.json.wanted {
        let replayed = Replayed {
            kind: "replayed",
            file: &source.name,
            generation: generation.name(),
            replay: &args.history,
            replay_flags: needed,
            text_edited: is_edited,
            turns,
            failed: verdict.as_ref().map(|verdict| Failed::new(verdict, history)),
        };
        write_json(&replayed, console)?;
    } else {
        let name = &source.name;
        writeln!(console.out, "{HEAD}{name}{HEAD:#} on {generation}, {turns} turns")?;
        match verdict {
            Some(verdict) => write_failure(verdict, history, console)?,
            None => writeln!(console.out, "  {GOOD}ends well{GOOD:#}")?,
        }
    }
    Ok(if verdict.is_some() { FAILED } else { PASSED })
}

/// Returns the first interleaving of a text that fails, or the one in which nothing is chosen, with its runtime.
fn first_that_fails(
    args: &ReplayArgs,
    source: &Source,
    scenario: &Scenario,
    settings: &Exploration,
    console: &Console<'_>,
) -> Result<(Generation, ScheduleString), CliError> {
    let first = || settings.generations().next().unwrap_or(Generation::Net10Windows);
    let generation = args.on.runtimes.and_then(|on| on.iter().next()).unwrap_or_else(first);
    let budget = settings.budget();
    let searched = search(scenario, generation, &budget, (Jobs::default(), args.timeout), console);
    let Searched { report, cut } =
        searched.map_err(|error| refused(source, scenario, generation, error))?;
    if cut.is_some() && report.failure.is_none() {
        let after = format!("{}, of at most {}", report.schedules, budget.schedules);
        let what = format!("the search on {generation} has not ended, after {after} interleavings");
        return Err(source.error(what));
    }
    Ok((generation, report.failure.map(|failure| failure.schedule).unwrap_or_default()))
}

/// Writes a note on stderr if the text was edited after its interleaving was found.
fn warn(source: &Source, is_edited: Option<bool>, console: &mut Console<'_>) -> io::Result<()> {
    if is_edited == Some(true) {
        writeln!(console.err, "{BAD}note:{BAD:#} {}: {EDITED}; this is another one", source.name)?;
    }
    Ok(())
}

/// Returns the flags without which the replay would differ.
fn needed(
    scenario: &Scenario,
    settings: &Exploration,
    verdict: Option<&Verdict>,
) -> Vec<&'static str> {
    let breaks_rule = matches!(verdict, Some(Verdict::Broken { .. }));
    flags(&usual(scenario), settings, breaks_rule)
}

/// Draws an interleaving, in the terminal or as a page.
fn draw(
    args: &DrawArgs,
    Made { verdict, history }: &Made,
    (title, generation): (&str, Generation),
    (name, flags): (&str, &[&'static str]),
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    let replay = replay_arguments(flags, name);
    let ending = verdict.as_ref().map(|verdict| headline(verdict, history));
    let facts = Facts::new(generation.name(), verdict.as_ref(), history);
    let drawn = Timeline {
        history,
        title,
        ending: ending.as_deref().unwrap_or_default(),
        edges: match verdict {
            Some(Verdict::Deadlock(edges)) => edges,
            _ => &[],
        },
        replay: Some(&replay),
        facts: &facts.as_pairs(),
    };
    if let Some(path) = &args.html {
        args.replacing.write_page(path, &drawn.page())?;
        let page = slashed(path);
        writeln!(console.out, "{GOOD}written{GOOD:#}: {HEAD}{page}{HEAD:#}")?;
        return Ok(());
    }
    writeln!(console.out, "{DIM}{name}{DIM:#}")?;
    let options = RowOptions { width: args.width, fold: !args.all, ..RowOptions::default() };
    for row in drawn.rows(options) {
        write_row(&row, 0, console.out)?;
    }
    Ok(())
}
