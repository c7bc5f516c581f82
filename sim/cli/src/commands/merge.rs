//! `clrsim merge`: makes of all shards of a search the result of the whole.

mod rebuilt;

use crate::args::MergeArgs;
use crate::commands::explore::found::{Found, Searching};
use crate::commands::explore::line::{KIND, PartLine, SearchLine, ShardLine};
use crate::commands::explore::{exit_code, head, stories};
use crate::commands::history::{find, read, refused};
use crate::input::Source;
use crate::interrupt::Cut;
use crate::render::console::Console;
use crate::render::error::CliError;
use clr_explore::{Budget, Report, join_parts};
use clr_runtime::generation::Generation;
use clr_scenario::Exploring;
use std::collections::BTreeMap;

/// A line of a file.
struct Read {
    /// The name of the file.
    from: String,
    line: ShardLine,
}

/// Merges the shards that `args` name, prints what one search would have printed, and returns the exit code.
pub(crate) fn merge(args: &MergeArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let mut lines = Vec::new();
    for path in &args.files {
        read_lines(&Source::find(path)?, &mut lines)?;
    }
    let Some(first) = lines.first() else {
        return Err(CliError::Text("no file has a shard".to_owned()));
    };
    let search = first.line.search.clone();
    check_alike(&first.from, &search, &lines)?;
    let runtimes = runtimes(&first.from, &search)?;
    let shards = sorted(lines, &search)?;
    let source = find(&search.file)?;
    let fixture = read(&source)?;
    let scenario = &fixture.scenario;
    if scenario.whole_digest().to_string() != search.text {
        return Err(source.error("is not the text that the shards have searched: it was edited"));
    }
    let settings =
        rebuilt::settings(&search, scenario).map_err(|what| CliError::new("the shards", what))?;
    let budget = Budget { first: search.first, keep_going: search.keep_going, ..settings.budget() };
    let searching =
        Searching { source: &source, scenario, settings: &settings, first: budget.first };
    if !args.json.wanted {
        head(&source, scenario, &settings, console)?;
    }
    let mut all = Vec::new();
    for generation in runtimes {
        let of_runtime = shards.get(generation.name()).map(Vec::as_slice).unwrap_or_default();
        let exploring = Exploring::new(scenario, generation)
            .map_err(|error| refused(&source, scenario, generation, error))?;
        let report = joined(of_runtime, &exploring, &budget)?;
        let ended = |is: fn(&ShardLine) -> bool| of_runtime.iter().any(|read| is(&read.line));
        let cut = if ended(|line| line.interrupted) {
            Some(Cut::Interrupted)
        } else {
            ended(|line| line.timed_out).then_some(Cut::OutOfTime)
        };
        let found = Found::new(&searching, generation, report, cut);
        found.write(&searching, args.json, console)?;
        all.push(found);
    }
    if !args.json.wanted {
        stories(&all, console)?;
    }
    Ok(exit_code(&all))
}

/// Reads the lines of a file, of which each must be that of a shard.
fn read_lines(source: &Source, lines: &mut Vec<Read>) -> Result<(), CliError> {
    let text = source.read_text()?;
    let before = lines.len();
    for (number, line) in (1..).zip(text.lines()) {
        let refuse = |what: &dyn std::fmt::Display| {
            source.error(format_args!("line {number} is no shard of a search: {what}"))
        };
        let line: ShardLine = serde_json::from_str(line).map_err(|error| refuse(&error))?;
        if line.kind != KIND {
            return Err(refuse(&format_args!("its kind is \"{}\"", line.kind)));
        }
        let shards = line.search.shards;
        if !(1..=shards).contains(&line.shard) {
            return Err(refuse(&format_args!("there is no shard {} of {shards}", line.shard)));
        }
        lines.push(Read { from: source.name.clone(), line });
    }
    if lines.len() == before {
        return Err(source.error("is empty: its shard has not ended, or was not started"));
    }
    Ok(())
}

/// Checks that all lines are of one search, which this version has made.
fn check_alike(from: &str, search: &SearchLine, lines: &[Read]) -> Result<(), CliError> {
    let own = env!("CARGO_PKG_VERSION");
    if search.version != own {
        let what = format!("was written by clrsim {}, and this is {own}", search.version);
        return Err(CliError::new(from, what));
    }
    let Some(other) = lines.iter().find(|read| read.line.search != *search) else { return Ok(()) };
    let values = [search, &other.line.search].map(serde_json::to_value);
    let [Ok(serde_json::Value::Object(one)), Ok(serde_json::Value::Object(another))] = values
    else {
        return Err(CliError::new(&other.from, format!("is of another search than {from}")));
    };
    let differences = one.iter().filter(|(name, value)| another.get(*name) != Some(*value));
    let differences: Vec<_> = differences
        .map(|(name, value)| {
            let other = another.get(name).map(ToString::to_string).unwrap_or_default();
            format!("{name} is {other} instead of {value}")
        })
        .collect();
    let what = format!("is of another search than {from}: {}", differences.join(", "));
    Err(CliError::new(&other.from, what))
}

/// Returns the runtimes of a search.
fn runtimes(from: &str, search: &SearchLine) -> Result<Vec<Generation>, CliError> {
    let named = search.runtimes.iter().map(|name| {
        Generation::from_name(name)
            .ok_or_else(|| CliError::new(from, format_args!("there is no runtime {name}")))
    });
    named.collect()
}

/// Returns the lines of each runtime in the order of their shards, of which none is missing and none is there twice.
fn sorted(lines: Vec<Read>, search: &SearchLine) -> Result<BTreeMap<String, Vec<Read>>, CliError> {
    let mut all: BTreeMap<String, Vec<Read>> = BTreeMap::new();
    for read in lines {
        let of_runtime = all.entry(read.line.generation.clone()).or_default();
        let known = of_runtime.iter().find(|other| other.line.shard == read.line.shard);
        if let Some(known) = known {
            let ShardLine { shard, generation, .. } = &read.line;
            let (one, other) = (&known.from, &read.from);
            let what = format!("shard {shard} on {generation} is there twice, in {one} as well");
            return Err(CliError::new(other, what));
        }
        of_runtime.push(read);
    }
    for name in &search.runtimes {
        let of_runtime = all.entry(name.clone()).or_default();
        of_runtime.sort_by_key(|read| read.line.shard);
        let is_there = |shard: u64| of_runtime.iter().any(|read| read.line.shard == shard);
        let missing = (1..=search.shards).filter(|shard| !is_there(*shard));
        let missing: Vec<_> = missing.map(|shard| shard.to_string()).collect();
        if !missing.is_empty() {
            let what = format!("on {name} are missing: {}", missing.join(", "));
            return Err(CliError::Text(format!("of {} shards, these {what}", search.shards)));
        }
    }
    Ok(all)
}

/// Joins the reports of shards, which are all of a search on a runtime.
fn joined(shards: &[Read], exploring: &Exploring<'_>, budget: &Budget) -> Result<Report, CliError> {
    let mut explorer = exploring.explorer().map_err(|error| CliError::Text(error.to_string()))?;
    let mut parts: Vec<(&str, &PartLine)> = Vec::new();
    for Read { from, line } in shards {
        parts.extend(line.parts.iter().map(|part| (from.as_str(), part)));
    }
    parts.sort_by_key(|(_, part)| part.part);
    let count = shards.first().map_or(0, |read| read.line.all_parts);
    let was_cut = shards.iter().any(|read| read.line.interrupted || read.line.timed_out);
    let mut reports: Vec<Report> = Vec::new();
    for (expected, (from, part)) in (0..).zip(&parts) {
        if part.part != expected && !was_cut {
            return Err(CliError::new(
                from,
                format_args!("part {expected} of the search is missing"),
            ));
        }
        let report = rebuilt::report(part, exploring, &mut explorer, budget)
            .map_err(|what| CliError::new(from, what))?;
        let ends = report.failure.is_some() && !budget.keep_going;
        reports.push(report);
        if ends {
            return Ok(join(reports, count, budget));
        }
    }
    if parts.len() as u64 != count && !was_cut {
        let what = format!("the shards have {} of {count} parts", parts.len());
        return Err(CliError::Text(what));
    }
    Ok(join(reports, count, budget))
}

/// Joins reports in the order of their interleavings.
fn join(reports: Vec<Report>, count: u64, budget: &Budget) -> Report {
    if budget.strategy.can_be_shared() {
        let (start, keep_going) = (Report::default(), budget.keep_going);
        let next = |all: Report, next| if keep_going { all.and(next) } else { all.then(next) };
        return reports.into_iter().fold(start, next);
    }
    join_parts(reports, usize::try_from(count).unwrap_or(usize::MAX), budget.keep_going)
}
