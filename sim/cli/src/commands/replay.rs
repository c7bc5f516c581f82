//! `clrsim replay` and `clrsim timeline`: print and draw one history.

use crate::args::{ReplayArgs, TimelineArgs};
use crate::commands::history::{Named, find, read, search, usual_but};
use crate::input::{Source, slashed};
use crate::output::Replacing;
use crate::render::console::{BAD, Console, DIM, GOOD, HEAD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::progress::Progress;
use crate::report::history::{
    Facts, Failed, flags, name, replay_arguments, usual, write_failure, write_row,
};
use crate::{FAILED, PASSED};
use clr_explore::story::headline;
use clr_explore::timeline::{RowOptions, Timeline};
use clr_explore::{Budget, History, ScheduleString, Verdict};
use clr_runtime::generation::Generation;
use clr_scenario::{Exploration, Exploring, Scenario};
use serde::Serialize;
use std::io;

/// Note for a history of a text with another digest.
const EDITED: &str = "the text was edited after this history was found";

/// A replayed history, for JSON.
#[derive(Serialize)]
struct Replayed<'r> {
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

/// A replayed history and its verdict.
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
    let refused = |error| {
        source.error(format_args!("cannot be run on {generation}: {}", scenario.named(error)))
    };
    let exploring = Exploring::new(scenario, generation).map_err(refused)?;
    let made = exploring.replay(schedule, budget).map_err(refused)?;
    let (verdict, history) = made.ok_or_else(|| {
        let switched = "every instruction was a switch point (--instructions), or was not \
                        (--instructions=false)";
        let why = match is_edited {
            Some(true) => EDITED.to_owned(),
            Some(false) => switched.to_owned(),
            None => format!("the text has changed, or {switched}"),
        };
        source.error(format_args!("has no history {schedule} on {generation}: {why}"))
    })?;
    Ok(Made { verdict, history })
}

/// Replays the history that `args` name and returns the exit code.
pub(crate) fn replay(args: &ReplayArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let named = Named::parse(&args.history)?;
    let Named { file, generation, schedule, .. } = &named;
    let generation = *generation;
    let source = find(file)?;
    let fixture = read(&source)?;
    let is_edited = named.is_edited(&fixture.scenario);
    let settings = usual_but(&fixture.scenario, &args.found);
    let budget = settings.budget();
    let made = make(&source, &fixture.scenario, generation, schedule, &budget, is_edited)?;
    warn(&source, is_edited, console)?;
    let Made { verdict, history } = &made;
    if args.json {
        let replayed = Replayed {
            kind: "replayed",
            file: &source.name,
            generation: generation.name(),
            replay: &args.history,
            replay_flags: needed(&fixture.scenario, &settings, verdict.as_ref()),
            text_edited: is_edited,
            turns: history.turns.len(),
            failed: verdict.as_ref().map(|verdict| Failed::new(verdict, history)),
        };
        write_json(&replayed, console)?;
    } else {
        let turns = history.turns.len();
        let name = &source.name;
        writeln!(console.out, "{HEAD}{name}{HEAD:#} on {generation}, {turns} turns")?;
        match verdict {
            Some(verdict) => write_failure(verdict, history, console)?,
            None => writeln!(console.out, "  {GOOD}ends well{GOOD:#}")?,
        }
    }
    Ok(if verdict.is_some() { FAILED } else { PASSED })
}

/// Writes a note on stderr if the text was edited after its history was found.
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

/// Draws the history that `args` name and returns the exit code.
pub(crate) fn timeline(args: &TimelineArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let named = if args.history.contains('@') { Some(Named::parse(&args.history)?) } else { None };
    let source = find(named.as_ref().map_or(&args.history, |named| &named.file))?;
    if let Some(page) = &args.html {
        Replacing::check_is_not(page, &source)?;
        args.replacing.check_page(page)?;
    }
    let fixture = read(&source)?;
    let scenario = &fixture.scenario;
    let settings = usual_but(scenario, &args.found);
    let budget = settings.budget();
    let is_edited = named.as_ref().and_then(|named| named.is_edited(scenario));
    let generation = named.as_ref().map(|named| named.generation).or(args.on);
    let first = || settings.generations().next().unwrap_or(Generation::Net10Windows);
    let generation = generation.unwrap_or_else(first);
    let schedule = if let Some(named) = named {
        named.schedule
    } else {
        let message = generation.to_string();
        let progress = Progress::with_rate(console.progress, budget.schedules, message);
        let report = search(scenario, generation, &budget, None, &progress);
        progress.finish();
        let report = report.map_err(|error| {
            source.error(format_args!("cannot be run on {generation}: {}", scenario.named(error)))
        })?;
        report.report.failure.map(|failure| failure.schedule).unwrap_or_default()
    };
    let Made { verdict, history } =
        make(&source, scenario, generation, &schedule, &budget, is_edited)?;
    warn(&source, is_edited, console)?;
    let name = name(&source.name, scenario, generation, &schedule);
    let replay = replay_arguments(&needed(scenario, &settings, verdict.as_ref()), &name);
    let ending = verdict.as_ref().map(|verdict| headline(verdict, &history));
    let title = scenario.about.shows.as_deref().unwrap_or(&source.name);
    let facts = Facts::new(generation.name(), verdict.as_ref(), &history);
    let drawn = Timeline {
        history: &history,
        title,
        ending: ending.as_deref().unwrap_or_default(),
        edges: match &verdict {
            Some(Verdict::Deadlock(edges)) => edges,
            _ => &[],
        },
        replay: Some(&replay),
        facts: &facts.as_pairs(),
    };
    if let Some(path) = &args.html {
        args.replacing.write_page(path, &drawn.page())?;
        let name = slashed(path);
        writeln!(console.out, "{GOOD}written{GOOD:#}: {HEAD}{name}{HEAD:#}")?;
        return Ok(PASSED);
    }
    writeln!(console.out, "{DIM}{name}{DIM:#}")?;
    for row in
        drawn.rows(RowOptions { width: args.width, fold: !args.all, ..RowOptions::default() })
    {
        write_row(&row, 0, console.out)?;
    }
    Ok(PASSED)
}
