//! `clrsim coverage`: which clauses are exercised, on which generations, and by what.

use crate::args::CoverageArgs;
use crate::console::{BAD, Console, HEAD, Trouble};
use crate::input::Source;
use crate::report::write_json;
use crate::{FAILED, PASSED};
use anstyle::Style;
use clr_fixtures::Fixture;
use clr_sim::clause;
use clr_sim::coverage::{By, Cover, Coverage, HOLES};
use clr_sim::generation::Generation;
use clr_sim::recording::Recording;
use clr_sim::scenario::Scenario;
use serde::Serialize;
use std::io::{self, Write};

/// Width of a generation's column.
const COLUMN: usize = 6;

/// A clause on a generation, for machines.
#[derive(Serialize)]
struct Cell {
    clause: String,
    generation: &'static str,
    /// `exercised`, `excused` or `missing`.
    cover: &'static str,
    /// How many recorded calls show it.
    recordings: u64,
    /// How many calls of scenarios show it.
    scenarios: u64,
    /// Whether a test names it.
    tested: bool,
    /// Why nothing exercises it.
    reason: Option<&'static str>,
}

/// Measures the coverage and prints it.
pub(crate) fn coverage(args: &CoverageArgs, console: &mut Console<'_>) -> Result<u8, Trouble> {
    let coverage = measure()?;
    if args.json {
        for (clause, generation, cover) in coverage.cells() {
            write_json(&Cell::new(clause.to_string(), generation, &cover), console)?;
        }
    } else {
        write(&coverage, console.out)?;
    }
    let missing = coverage.cells().any(|(.., cover)| cover == Cover::Missing);
    Ok(if missing { FAILED } else { PASSED })
}

/// By the embedded recordings and the gallery.
fn measure() -> Result<Coverage, Trouble> {
    let mut coverage = Coverage::new();
    for fixture in clr_fixtures::all().iter().filter(|fixture| fixture.name.starts_with("clr/")) {
        let text = Source::find(fixture.name.as_ref())?.read_recording()?;
        let trouble = |error: &dyn std::fmt::Display| Trouble::with(fixture.name, error);
        let recording = Recording::parse(&text).map_err(|error| trouble(&error))?;
        coverage.add_recording(&recording).map_err(|error| trouble(&error))?;
    }
    for Fixture { name, bytes } in clr_fixtures::gallery() {
        let trouble = |error: &dyn std::fmt::Display| Trouble::with(name, error);
        let text = core::str::from_utf8(bytes).map_err(|error| trouble(&error))?;
        let scenario = Scenario::parse(text).map_err(|error| trouble(&error))?;
        coverage.add_scenario(&scenario).map_err(|error| trouble(&error))?;
    }
    Ok(coverage)
}

impl Cell {
    fn new(clause: String, generation: Generation, cover: &Cover) -> Self {
        let count = |wanted: By| match cover {
            Cover::Exercised(by) => {
                by.iter().find(|(by, _)| *by == wanted).map_or(0, |(_, count)| *count)
            }
            _ => 0,
        };
        Self {
            clause,
            generation: generation.name(),
            cover: match cover {
                Cover::Exercised(_) => "exercised",
                Cover::Excused(_) => "excused",
                Cover::Missing | Cover::DoesNotHold => "missing",
            },
            recordings: count(By::Recording),
            scenarios: count(By::Scenario),
            tested: count(By::Test) != 0,
            reason: if let Cover::Excused(reason) = cover { Some(reason) } else { None },
        }
    }
}

/// A column for each generation.
fn write(coverage: &Coverage, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    writeln!(
        out,
        "{HEAD}What exercises each clause:{HEAD:#} r recorded calls, s scenarios, t a test;"
    )?;
    writeln!(
        out,
        "- nothing yet, for the reason below; ! nothing; a blank where it does not hold\n"
    )?;
    for (n, generation) in Generation::ALL.iter().enumerate() {
        writeln!(out, "       {}{generation}", "    | ".repeat(n))?;
    }
    let (mut exercised, mut excused, mut missing) = (0, 0, 0);
    for entry in clause::entries() {
        write!(out, "{}", entry.clause)?;
        // Nothing stands behind the last cell of a row.
        let mut blanks = 2;
        for generation in Generation::ALL {
            let text = match coverage.cover(entry.clause, generation) {
                Cover::DoesNotHold => String::new(),
                Cover::Exercised(by) => {
                    exercised += 1;
                    by.iter().map(|(by, _)| letter(*by)).collect()
                }
                Cover::Excused(_) => {
                    excused += 1;
                    "-".to_owned()
                }
                Cover::Missing => {
                    missing += 1;
                    "!".to_owned()
                }
            };
            if text.is_empty() {
                blanks += COLUMN;
            } else {
                let style = if text == "!" { BAD } else { Style::new() };
                write!(out, "{:blanks$}{style}{text}{style:#}", "")?;
                blanks = COLUMN - text.len();
            }
        }
        writeln!(out)?;
    }
    if !HOLES.is_empty() {
        writeln!(out, "\n{HEAD}Not exercised yet:{HEAD:#}")?;
    }
    for hole in HOLES {
        let clauses: Vec<_> =
            hole.clauses.iter().map(|number| clause::Clause::new(*number).to_string()).collect();
        writeln!(out, "  {}: {}", clauses.join(", "), hole.reason)?;
    }
    writeln!(out, "\n{exercised} exercised, {excused} excused, {missing} missing")
}

const fn letter(by: By) -> char {
    match by {
        By::Recording => 'r',
        By::Scenario => 's',
        By::Test => 't',
    }
}
