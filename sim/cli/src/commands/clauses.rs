//! `clrsim clauses`: the rules of the CLR.

use crate::PASSED;
use crate::args::ClausesArgs;
use crate::render::console::{Console, DIM, HEAD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::words::in_words;
use crate::render::wrap::{WIDTH, wrapped};
use clr_runtime::clause::{self, Entry};
use clr_runtime::generation::Generation;
use serde::Serialize;

/// Indentation of rule and source, below the clause's number.
const INDENT: &str = "       ";

/// Prints the clauses that `args` name and returns the exit code.
pub(crate) fn clauses(args: &ClausesArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let mut chapter = None;
    let mut entries = clause::entries().filter(|entry| args.wants(entry)).peekable();
    if entries.peek().is_none() {
        return Err(CliError::new(
            "clauses",
            "none of them meets all conditions; try fewer of CLAUSE, --generation and --chapter",
        ));
    }
    for entry in entries {
        if args.json {
            write_json(&Line::new(entry), console)?;
            continue;
        }
        if chapter != Some(entry.chapter) {
            let gap = if chapter.is_some() { "\n" } else { "" };
            writeln!(console.out, "{gap}{HEAD}{}{HEAD:#}", entry.chapter)?;
            chapter = Some(entry.chapter);
        }
        write(entry, console)?;
    }
    Ok(PASSED)
}

impl ClausesArgs {
    fn wants(&self, entry: &Entry) -> bool {
        (self.clauses.is_empty() || self.clauses.contains(&entry.clause))
            && self.generation.is_none_or(|generation| entry.generations.contains(generation))
            && self.chapter.is_none_or(|chapter| entry.chapter == chapter)
    }
}

fn write(entry: &Entry, console: &mut Console<'_>) -> Result<(), CliError> {
    let Entry { clause, rule, generations, source, evidence, .. } = entry;
    writeln!(console.out, "\n{HEAD}{clause}{HEAD:#}  {evidence:10}  {}", in_words(*generations))?;
    for line in wrapped(rule, WIDTH - INDENT.len()) {
        writeln!(console.out, "{INDENT}{line}")?;
    }
    for line in wrapped(source, WIDTH - INDENT.len()) {
        writeln!(console.out, "{INDENT}{DIM}{line}{DIM:#}")?;
    }
    Ok(())
}

/// A clause as a line of JSON.
#[derive(Serialize)]
struct Line {
    clause: String,
    chapter: &'static str,
    rule: &'static str,
    generations: Vec<&'static str>,
    evidence: &'static str,
    source: Vec<&'static str>,
}

impl Line {
    fn new(entry: &Entry) -> Self {
        let Entry { clause, chapter, rule, generations, source, evidence } = *entry;
        Self {
            clause: clause.to_string(),
            chapter: chapter.name(),
            rule,
            generations: generations.iter().map(Generation::name).collect(),
            evidence: evidence.name(),
            source: source.split("; ").collect(),
        }
    }
}
