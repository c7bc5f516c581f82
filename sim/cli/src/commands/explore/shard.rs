//! A shard of a search: what one of several machines does of it.

use crate::args::{Jobs, Shard, Timeout};
use crate::commands::explore::found::Searching;
use crate::commands::explore::line::{KIND, PartLine, SearchLine, ShardLine};
use crate::commands::history::{Searched, refused, search as search_range};
use crate::commands::strategy;
use crate::interrupt::{Cut, INTERRUPTED, Patience};
use crate::render::console::Console;
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::{FAILED, PASSED};
use clr_explore::{Budget, Report, Strategy};
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::{Exploration, Exploring, RunOnError};

/// Parts of a search that were searched, with the number of all parts.
struct Parts {
    searched: Vec<(u64, Report)>,
    all: u64,
    cut: Option<Cut>,
}

/// Checks that a search can be divided into shards.
pub(super) fn check(settings: &Exploration) -> Result<(), CliError> {
    let what = match settings.by {
        Strategy::Guided => {
            "guided learns from each interleaving for the next one: one machine has to execute all"
        }
        Strategy::Exhaustive { .. } if !settings.faults.are_none() => {
            "an exhaustive search that makes calls fail is not divided: leave out --faults, or choose another strategy"
        }
        _ => return Ok(()),
    };
    Err(CliError::new("--shard", what))
}

/// Searches a shard on each runtime, prints a line for each, and returns the exit code.
pub(super) fn search(
    shard: Shard,
    searching: &Searching<'_>,
    on: Generations,
    budget: &Budget,
    limits: (Jobs, Timeout),
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    let search = describe(shard, searching, on, budget);
    let mut code = PASSED;
    for generation in on.iter() {
        let parts = match budget.strategy {
            Strategy::Exhaustive { .. } => parts_of(shard, searching, generation, budget, limits.1),
            _ => range_of(shard, searching, generation, budget, limits, console),
        };
        let Parts { searched, all, cut } = parts
            .map_err(|error| refused(searching.source, searching.scenario, generation, error))?;
        let line = ShardLine {
            kind: KIND.to_owned(),
            shard: shard.number,
            generation: generation.name().to_owned(),
            search: search.clone(),
            parts: searched.iter().map(|(part, report)| PartLine::new(*part, report)).collect(),
            all_parts: all,
            interrupted: cut == Some(Cut::Interrupted),
            timed_out: cut == Some(Cut::OutOfTime),
        };
        write_json(&line, console)?;
        let fails = searched.iter().any(|(_, report)| report.failure.is_some());
        if fails || cut == Some(Cut::OutOfTime) {
            code = FAILED;
        }
        if cut == Some(Cut::Interrupted) {
            return Ok(if code == PASSED { INTERRUPTED } else { code });
        }
    }
    Ok(code)
}

/// Describes the search.
fn describe(
    shard: Shard,
    searching: &Searching<'_>,
    on: Generations,
    budget: &Budget,
) -> SearchLine {
    let Exploration { by, seed, schedules, rules, instructions, faults, .. } = *searching.settings;
    let (depth, preemptions) = match by {
        Strategy::Pct { depth } => (Some(depth), None),
        Strategy::Exhaustive { preemptions } => (None, preemptions),
        Strategy::Random | Strategy::Guided => (None, None),
    };
    SearchLine {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        file: searching.source.name.clone(),
        text: searching.scenario.whole_digest().to_string(),
        runtimes: on.iter().map(|generation| generation.name().to_owned()).collect(),
        shards: shard.of,
        strategy: strategy::word(by).to_owned(),
        depth,
        preemptions,
        seed,
        first: budget.first,
        schedules,
        rules,
        instructions,
        faults: (!faults.are_none()).then(|| faults.which.to_string()),
        most_faults: faults.most,
        keep_going: budget.keep_going,
    }
}

/// Searches the shard's range of numbers: each shard has one part.
fn range_of(
    shard: Shard,
    searching: &Searching<'_>,
    generation: Generation,
    budget: &Budget,
    limits: (Jobs, Timeout),
    console: &Console<'_>,
) -> Result<Parts, RunOnError> {
    let [begin, end] = [shard.number - 1, shard.number].map(|shards| {
        let before = u128::from(budget.schedules) * u128::from(shards) / u128::from(shard.of);
        u64::try_from(before).unwrap_or(u64::MAX)
    });
    let budget = Budget { first: budget.first + begin, schedules: end - begin, ..*budget };
    let Searched { report, cut } =
        search_range(searching.scenario, generation, &budget, limits, console)?;
    Ok(Parts { searched: vec![(shard.number - 1, report)], all: shard.of, cut })
}

/// Searches the shard's parts of an exhaustive search, in turn with the other shards, up to the first one that fails.
fn parts_of(
    shard: Shard,
    searching: &Searching<'_>,
    generation: Generation,
    budget: &Budget,
    limit: Timeout,
) -> Result<Parts, RunOnError> {
    let exploring = Exploring::new(searching.scenario, generation)?;
    let mut explorer = exploring.explorer()?;
    let patience = Patience::new(limit.limit());
    let parts = explorer.parts(&|setup| exploring.load(setup), budget);
    let mut done = Parts { searched: Vec::new(), all: parts.len() as u64, cut: None };
    for (place, part) in (0..).zip(&parts) {
        if place % shard.of != shard.number - 1 {
            continue;
        }
        let report = explorer.search_part(&|setup| exploring.load(setup), budget, part, |_| {
            done.cut = patience.cut();
            done.cut.is_none()
        });
        let fails = report.failure.is_some();
        done.searched.push((place, report));
        if done.cut.is_some() || fails && !budget.keep_going {
            break;
        }
    }
    Ok(done)
}
