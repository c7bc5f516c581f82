//! `clrsim clauses`: the rules of the CLR.

use crate::PASSED;
use crate::args::ClausesArgs;
use crate::console::{Console, DIM, HEAD, Trouble};
use crate::report::write_json;
use clr_runtime::clause::{self, ClauseEntry};
use clr_runtime::generation::{Generation, Generations};
use clr_sim::book::references::{self, Kind, Reference};
use serde::Serialize;

/// How wide texts are printed, as wide as the help.
pub(crate) const WIDTH: usize = 100;

/// How far they are indented: as far as a clause's number.
const INDENT: &str = "       ";

/// Prints the clauses that `args` name; the exit code.
pub(crate) fn clauses(args: &ClausesArgs, console: &mut Console<'_>) -> Result<u8, Trouble> {
    let mut chapter = None;
    let mut entries = clause::entries().filter(|entry| args.wants(entry)).peekable();
    let others: Vec<_> =
        references::all().filter(|reference| args.wants_other(reference)).collect();
    if entries.peek().is_none() && others.is_empty() {
        return Err(Trouble::with(
            "clauses",
            "none of them meets all conditions; try fewer of ID, --generation and --chapter",
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
    for (n, reference) in others.iter().enumerate() {
        if args.json {
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

impl ClausesArgs {
    fn wants(&self, entry: &ClauseEntry) -> bool {
        let id = entry.clause.to_string();
        (self.ids.is_empty() || self.ids.iter().any(|wanted| wanted.id == id))
            && self.generation.is_none_or(|generation| entry.generations.contains(generation))
            && self.chapter.is_none_or(|chapter| entry.chapter == chapter)
    }

    /// Returns true for ids of other kinds than clauses, which have neither generation nor chapter.
    fn wants_other(&self, reference: &Reference) -> bool {
        reference.kind != Kind::Clause
            && self.generation.is_none()
            && self.chapter.is_none()
            && self.ids.contains(reference)
    }
}

fn write(entry: &ClauseEntry, console: &mut Console<'_>) -> Result<(), Trouble> {
    let ClauseEntry { clause, rule, generations, source, evidence, .. } = entry;
    writeln!(console.out, "\n{HEAD}{clause}{HEAD:#}  {evidence:10}  {}", in_words(*generations))?;
    for line in wrapped(rule, WIDTH - INDENT.len()) {
        writeln!(console.out, "{INDENT}{line}")?;
    }
    for line in wrapped(source, WIDTH - INDENT.len()) {
        writeln!(console.out, "{INDENT}{DIM}{line}{DIM:#}")?;
    }
    Ok(())
}

/// Prints a rule that is no clause. Tables keep their lines.
fn write_other(reference: &Reference, console: &mut Console<'_>) -> Result<(), Trouble> {
    let Reference { id, title, text, page, .. } = reference;
    writeln!(console.out, "{HEAD}{id}{HEAD:#}  {title}")?;
    for line in text.lines() {
        let lines =
            if line.starts_with('|') { vec![line.to_owned()] } else { wrapped(line, WIDTH) };
        for line in lines {
            writeln!(console.out, "{line}")?;
        }
    }
    writeln!(console.out, "{DIM}{page}{DIM:#}")?;
    Ok(())
}

/// A set of generations in as few words as will do.
pub(crate) fn in_words(generations: Generations) -> String {
    const WORDS: [(Generations, &str); 5] = [
        (Generations::ALL, "all"),
        (Generations::WINDOWS, "windows"),
        (Generations::UNIX, "unix"),
        (Generations::CORECLR_31, "coreclr-3.1"),
        (Generations::NEW, "net9 and newer"),
    ];
    if let Some((_, word)) = WORDS.iter().find(|(set, _)| *set == generations) {
        return (*word).to_owned();
    }
    let names = |set: Generations| {
        let names: Vec<_> = set.iter().map(Generation::name).collect();
        names.join(", ")
    };
    let others = Generations::ALL.without(generations);
    if others.iter().count() < generations.iter().count() {
        return format!("all but {}", names(others));
    }
    names(generations)
}

/// The text in lines of at most so many characters, unless a word is longer.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(core::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
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
    fn new(entry: &ClauseEntry) -> Self {
        let ClauseEntry { clause, chapter, rule, generations, source, evidence } = *entry;
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

/// A rule that is no clause as a line of JSON.
#[derive(Serialize)]
struct OtherLine<'a> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use Generation::{
        CoreClr31Unix, CoreClr31Windows, Framework2, Framework4, Net9Unix,
        Net9UnixLegacyExceptions, Net10Unix, Net10Windows,
    };

    #[test]
    fn generations_are_told_in_few_words() {
        let words = |generations: &[Generation]| in_words(Generations::of(generations));
        assert_eq!(words(&Generation::ALL), "all");
        assert_eq!(words(&[Framework2, Framework4, CoreClr31Windows, Net10Windows]), "windows");
        assert_eq!(words(&[CoreClr31Windows, CoreClr31Unix]), "coreclr-3.1");
        assert_eq!(
            words(&[Net9Unix, Net9UnixLegacyExceptions, Net10Windows, Net10Unix]),
            "net9 and newer"
        );
        assert_eq!(words(&[Net9Unix]), "net9-unix");
        assert_eq!(words(&[Net10Windows, CoreClr31Windows]), "coreclr-3.1-windows, net10-windows");
        let but_2 = in_words(Generations::ALL.without(Generations::of(&[Framework2])));
        assert_eq!(but_2, "all but framework-2");
    }

    /// What words say of a set is what a reader makes of them: no two sets have the same.
    #[test]
    fn no_two_sets_are_told_alike() {
        let mut told: Vec<String> = (0_u16..256)
            .map(|bits| {
                let members = Generation::ALL.iter().enumerate();
                let members: Vec<_> =
                    members.filter(|(i, _)| bits >> i & 1 != 0).map(|(_, g)| *g).collect();
                in_words(Generations::of(&members))
            })
            .collect();
        told.sort_unstable();
        told.dedup();
        assert_eq!(told.len(), 256);
    }

    #[test]
    fn lines_are_no_wider_than_asked() {
        assert_eq!(wrapped("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrapped("one two", 6), ["one", "two"]);
        assert_eq!(wrapped("a longer one", 3), ["a", "longer", "one"]);
        assert_eq!(wrapped("", 3), [""]);
    }
}
