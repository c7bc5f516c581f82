//! `clrsim explore`: searches the interleavings of a program for one that fails.

pub(crate) mod found;
pub(crate) mod line;
mod shard;

use crate::args::ExploreArgs;
use crate::commands::history::{Searched, find, read, refused, search, usual_but, write_smallest};
use crate::commands::smaller::Output;
use crate::commands::strategy::{self, choose};
use crate::input::program::ProgramFixture;
use crate::input::{Source, slashed};
use crate::interrupt::{Cut, INTERRUPTED};
use crate::output::Replacing;
use crate::render::console::{BAD, Console, DIM, HEAD};
use crate::render::error::CliError;
use crate::render::shell::quoted;
use crate::render::words::in_words;
use crate::report::history::{Failed, replay_arguments, write_failure};
use crate::report::walk::refuse_unchecked;
use crate::{FAILED, PASSED};
use clr_explore::{Budget, Failure, Strategy};
use clr_runtime::generation::Generations;
use clr_scenario::{Exploration, Scenario};
use found::{FailedHistory, Found, Searching};

/// Returns the settings of the search: those of the arguments, then those of the text.
fn settings(args: &ExploreArgs, scenario: &Scenario) -> Exploration {
    let usual = usual_but(scenario, args.settings);
    Exploration {
        by: choose(usual.by, &args.search),
        schedules: args.search.schedules.unwrap_or(usual.schedules),
        seed: args.search.seed.unwrap_or(usual.seed),
        faults: strategy::faults(usual.faults, &args.search),
        ..usual
    }
}

/// Returns the runtimes to search on.
fn runtimes(args: &ExploreArgs, settings: &Exploration) -> Generations {
    let expected = || Generations::of(&settings.generations().collect::<Vec<_>>());
    let on = args.on.runtimes.unwrap_or_else(expected);
    if on.is_empty() { Generations::ALL } else { on }
}

/// Searches the interleavings that `args` name and returns the exit code.
pub(crate) fn explore(args: &ExploreArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let source = find(&slashed(&args.scenario.path))?;
    let fixture = read(&source)?;
    let scenario = &fixture.scenario;
    let settings = settings(args, scenario);
    check(args, &settings)?;
    if let Some(path) = &args.minimize {
        Replacing::check_is_not(path, &source)?;
        args.replacing.check(path)?;
    }
    refuse_unchecked(&source, scenario, runtimes(args, &settings))?;
    let keep_going = args.keep_going;
    let budget = Budget { first: args.search.first, keep_going, ..settings.budget() };
    let searching =
        Searching { source: &source, scenario, settings: &settings, first: budget.first };
    console.watch_interrupts();
    if let Some(shard) = args.shard {
        let (on, limits) = (runtimes(args, &settings), (args.search.jobs, args.timeout));
        return shard::search(shard, &searching, on, &budget, limits, console);
    }
    if !args.json.wanted {
        head(&source, scenario, &settings, console)?;
    }
    let mut all: Vec<Found> = Vec::new();
    for generation in runtimes(args, &settings).iter() {
        let searched =
            search(scenario, generation, &budget, (args.search.jobs, args.timeout), console);
        let Searched { report, cut } =
            searched.map_err(|error| refused(&source, scenario, generation, error))?;
        let found = Found::new(&searching, generation, report, cut);
        found.write(&searching, args.json, console)?;
        all.push(found);
        if cut == Some(Cut::Interrupted) {
            break;
        }
    }
    if !args.json.wanted {
        stories(&all, console)?;
        for cut in all.iter().filter(|found| found.cut.is_some()) {
            write_how_to_go_on(cut, args, &budget, console)?;
        }
    }
    if let Some(path) = &args.minimize {
        let output = Output { path, replacing: args.replacing };
        minimize(&fixture, &settings, &all, output, console)?;
    }
    Ok(exit_code(&all))
}

/// Returns the exit code of searches with these results.
pub(crate) fn exit_code(all: &[Found]) -> u8 {
    if all.iter().any(Found::fails) {
        FAILED
    } else if all.iter().any(|found| found.cut == Some(Cut::Interrupted)) {
        INTERRUPTED
    } else {
        PASSED
    }
}

/// Prints the command that goes on with a search that was ended early.
fn write_how_to_go_on(
    found: &Found,
    args: &ExploreArgs,
    budget: &Budget,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    let (file, done) = (quoted(&slashed(&args.scenario.path)), found.report.schedules);
    let faults = strategy::fault_arguments(&args.search);
    let command = format!("clrsim explore {file} --on {}{faults}", found.generation);
    let (by, left) = ((budget.strategy, budget.seed), budget.schedules - done);
    Ok(strategy::write_how_to_go_on(console.out, &command, by, (budget.first + done, left))?)
}

/// Checks that the arguments fit together and fit the settings of the text.
fn check(args: &ExploreArgs, settings: &Exploration) -> Result<(), CliError> {
    strategy::check(settings.by, &args.search)?;
    if args.shard.is_some() {
        shard::check(settings)?;
    }
    if args.search.first.checked_add(settings.schedules).is_none() {
        let most = u64::MAX - settings.schedules;
        let what = format!("{} interleavings from there on have no numbers", settings.schedules);
        return Err(CliError::new("--first", format!("{what}: it is at most {most}")));
    }
    Ok(())
}

/// Writes the smallest text that fails as one of the interleavings does, or prints that no such text
/// exists.
fn minimize(
    fixture: &ProgramFixture,
    settings: &Exploration,
    all: &[Found],
    output: Output<'_>,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    let failures = all.iter().filter_map(|found| Some((found, found.report.failure.as_ref()?)));
    let mut why = "no interleaving fails";
    for (found, failure) in failures {
        if write_smallest(fixture, found.generation, settings, failure, output, console)? {
            return Ok(());
        }
        why = "no interleaving that fails could be replayed";
    }
    let name = slashed(output.path);
    writeln!(console.out, "\n{HEAD}{name}{HEAD:#} is not written: {why}")?;
    Ok(())
}

/// Prints what is searched, and how.
pub(crate) fn head(
    source: &Source,
    scenario: &Scenario,
    settings: &Exploration,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    source.write_head(scenario, console.out)?;
    let by = match settings.by {
        Strategy::Pct { depth } => format!("pct of depth {depth}"),
        Strategy::Exhaustive { preemptions: Some(preemptions) } => {
            format!("exhaustive up to {preemptions} preemptions")
        }
        other => strategy::word(other).to_owned(),
    };
    let Exploration { schedules, seed, .. } = settings;
    let rules = if settings.rules { ", rules as failures" } else { "" };
    let faults = match settings.faults {
        none if none.are_none() => String::new(),
        faults => format!(", made to fail: {}", faults.which),
    };
    let what = format!(
        "{by}, seed {seed}, at most {schedules} interleavings on each runtime{rules}{faults}"
    );
    writeln!(console.out, "  {DIM}{what}{DIM:#}")?;
    if scenario.profiler.is_none() {
        let what = "note: the scenario has no `profiler`: nothing acts beside its program, so little can fail";
        writeln!(console.out, "  {DIM}{what}{DIM:#}")?;
    }
    Ok(())
}

/// Prints each failure once.
pub(crate) fn stories(all: &[Found], console: &mut Console<'_>) -> Result<(), CliError> {
    let mut distinct: Vec<&Failed> = Vec::new();
    let histories = all.iter().flat_map(|found| found.failed.iter().zip(found.report.failures()));
    for (FailedHistory { failed, replay, flags, .. }, failure) in histories {
        if distinct.iter().any(|other| other.is_like(failed)) {
            continue;
        }
        distinct.push(failed);
        let alike = all
            .iter()
            .filter(|other| other.failed.iter().any(|other| other.failed.is_like(failed)));
        let on: Vec<_> = alike.map(|found| found.generation).collect();
        let Failure { verdict, history, repeats, .. } = failure;
        writeln!(console.out, "\n{HEAD}{}{HEAD:#}", in_words(Generations::of(&on)))?;
        write_failure(verdict, history, console)?;
        let replay = replay_arguments(flags, replay);
        writeln!(console.out, "\n  {DIM}again:{DIM:#} clrsim replay {replay}")?;
        if !repeats {
            // A text's code depends on the interleaving alone, so that this is a fault of the simulator.
            writeln!(console.out, "  {BAD}that does not replay it: please report this{BAD:#}")?;
        }
    }
    Ok(())
}
