//! `clrsim rules`: the rules of the CLR.

use crate::PASSED;
use crate::args::RulesArgs;
use crate::render::console::{Console, DIM, HEAD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::words::in_words;
use crate::render::wrap::{width, wrapped};
use clr_runtime::clause::{self, ClauseEntry, Support, Witness};
use clr_runtime::generation::{Generation, Generations};
use clr_sim::book::references::{self, Kind, Reference};
use serde::Serialize;

/// Indentation of rule and source, below the clause's number.
const INDENT: &str = "       ";

/// Prints the rules that `args` name and returns the exit code.
pub(crate) fn rules(args: &RulesArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let mut chapter = None;
    let mut entries = clause::entries().filter(|entry| args.wants(entry)).peekable();
    let others: Vec<_> =
        references::all().iter().filter(|reference| args.wants_other(reference)).collect();
    if entries.peek().is_none() && others.is_empty() {
        return Err(CliError::new(
            "rules",
            "none of them meets all conditions; try fewer of ID, --on and --chapter",
        ));
    }
    for entry in entries {
        if args.json.wanted {
            write_json(&Line::new(entry), console)?;
            continue;
        }
        if chapter != Some(entry.chapter) {
            let gap = if chapter.is_some() { "\n" } else { "" };
            writeln!(console.out, "{gap}{HEAD}{}{HEAD:#}", entry.chapter)?;
            chapter = Some(entry.chapter);
        }
        write(entry, console)?;
        if !args.ids.is_empty() {
            write_witnesses(entry, console)?;
        }
    }
    for (n, reference) in others.iter().enumerate() {
        if args.json.wanted {
            write_json(&OtherLine::new(reference), console)?;
            continue;
        }
        if n > 0 || chapter.is_some() {
            writeln!(console.out)?;
        }
        write_other(reference, console)?;
    }
    Ok(PASSED)
}

impl RulesArgs {
    fn wants(&self, entry: &ClauseEntry) -> bool {
        let id = entry.clause.to_string();
        (self.ids.is_empty() || self.ids.iter().any(|wanted| wanted.id == id))
            && self.on.runtimes.is_none_or(|on| on.iter().all(|it| entry.generations.contains(it)))
            && self.chapter.is_none_or(|chapter| entry.chapter == chapter)
    }

    /// Returns true for ids of other kinds than clauses, which have neither generation nor chapter.
    fn wants_other(&self, reference: &Reference) -> bool {
        reference.kind != Kind::Clause
            && self.on.runtimes.is_none()
            && self.chapter.is_none()
            && self.ids.contains(&reference)
    }
}

fn write(entry: &ClauseEntry, console: &mut Console<'_>) -> Result<(), CliError> {
    let ClauseEntry { clause, rule, generations, source, .. } = entry;
    writeln!(console.out, "\n{HEAD}{clause}{HEAD:#}  {}", in_words(*generations))?;
    for line in wrapped(rule, width() - INDENT.len()) {
        writeln!(console.out, "{INDENT}{line}")?;
    }
    for line in wrapped(source, width() - INDENT.len()) {
        writeln!(console.out, "{INDENT}{DIM}{line}{DIM:#}")?;
    }
    for (support, on) in grades(entry) {
        for line in wrapped(&format!("{support} on {}", in_words(on)), width() - INDENT.len()) {
            writeln!(console.out, "{INDENT}{line}")?;
        }
    }
    Ok(())
}

/// Returns the grades of a clause, each with its runtimes, strongest first.
fn grades(entry: &ClauseEntry) -> impl Iterator<Item = (Support, Generations)> {
    Support::ALL.into_iter().filter_map(|support| {
        let is_so = |it: &Generation| entry.support(*it) == Some(support);
        let on: Vec<_> = entry.generations.iter().filter(is_so).collect();
        (!on.is_empty()).then(|| (support, Generations::of(&on)))
    })
}

/// Prints the witness of a clause on each runtime.
fn write_witnesses(entry: &ClauseEntry, console: &mut Console<'_>) -> Result<(), CliError> {
    for generation in entry.generations.iter() {
        if let Some(witness) = entry.witness(generation) {
            let wine = if witness.is_under_wine(generation) { ", under wine" } else { "" };
            let words = format!("{generation}: {} in {}{wine}", witness.support(), witness.name());
            for line in wrapped(&words, width() - INDENT.len()) {
                writeln!(console.out, "{INDENT}{DIM}{line}{DIM:#}")?;
            }
        }
    }
    Ok(())
}

/// Prints a rule that is no clause. Tables keep their lines.
fn write_other(reference: &Reference, console: &mut Console<'_>) -> Result<(), CliError> {
    let Reference { id, title, text, page, .. } = reference;
    writeln!(console.out, "{HEAD}{id}{HEAD:#}  {title}")?;
    for line in text.lines() {
        let lines =
            if line.starts_with('|') { vec![line.to_owned()] } else { wrapped(line, width()) };
        for line in lines {
            writeln!(console.out, "{line}")?;
        }
    }
    writeln!(console.out, "{DIM}{page}{DIM:#}")?;
    Ok(())
}

/// A clause as a line of JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Line {
    clause: String,
    chapter: &'static str,
    rule: &'static str,
    generations: Vec<&'static str>,
    support: Vec<Supported>,
    source: Vec<&'static str>,
}

/// The support of a clause on a runtime.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Supported {
    runtime: &'static str,
    grade: &'static str,
    /// The recording, the source or the page.
    by: Option<&'static str>,
    /// True if it was seen under wine, and not on Windows itself.
    wine: bool,
}

impl Supported {
    fn new(entry: &ClauseEntry, generation: Generation) -> Self {
        let witness = entry.witness(generation);
        Self {
            runtime: generation.name(),
            grade: witness.map_or(Support::Assumed, Witness::support).word(),
            by: witness.map(Witness::name),
            wine: witness.is_some_and(|witness| witness.is_under_wine(generation)),
        }
    }
}

impl Line {
    fn new(entry: &ClauseEntry) -> Self {
        let ClauseEntry { clause, chapter, rule, generations, source, .. } = *entry;
        Self {
            clause: clause.to_string(),
            chapter: chapter.name(),
            rule,
            generations: generations.iter().map(Generation::name).collect(),
            support: generations.iter().map(|it| Supported::new(entry, it)).collect(),
            source: source.split("; ").collect(),
        }
    }
}

/// A rule that is no clause as a line of JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct OtherLine<'a> {
    kind: &'static str,
    id: &'a str,
    title: &'a str,
    text: &'a str,
    page: &'static str,
}

impl<'a> OtherLine<'a> {
    fn new(reference: &'a Reference) -> Self {
        let Reference { id, kind, title, text, page } = reference;
        Self { kind: kind.name(), id, title, text, page }
    }
}
