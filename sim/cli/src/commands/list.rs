//! `clrsim list`: lists texts by chapter.

use crate::PASSED;
use crate::args::ListArgs;
use crate::commands::history::find;
use crate::input::program::ProgramFixture;
use crate::input::{self, PROGRAM, slashed};
use crate::render::console::{Console, DIM, HEAD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::words::counted;
use crate::render::wrap::{width, wrapped};
use crate::report::snapshot::chapter;
use clr_runtime::clause::Clause;
use clr_scenario::meaning;
use serde::Serialize;
use std::iter;
use std::path::PathBuf;

/// Indentation of a text's description.
const INDENT: &str = "      ";

/// The error if nothing is listed.
const NOTHING: &str =
    "no scenario meets all conditions; try fewer of PATH, WORD, --chapter, --tag and --clause";

/// A text.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Listed {
    kind: &'static str,
    chapter: String,
    file: String,
    /// The text's description, if it has one.
    shows: Option<String>,
    tags: Vec<String>,
    /// Clauses that the expectations name.
    clauses: Vec<String>,
    /// Outcomes that snapshots are expected to have.
    results: Vec<String>,
    snapshots: usize,
    mixed_walks: usize,
    searches: usize,
    stops: usize,
}

impl Listed {
    fn new(name: &str, fixture: &ProgramFixture) -> Self {
        let scenario = &fixture.scenario;
        let clauses = clauses(fixture).iter().map(ToString::to_string).collect();
        Self {
            kind: if scenario.stack.is_some() { "stack" } else { "program" },
            chapter: chapter(name).to_owned(),
            file: name.to_owned(),
            shows: scenario.about.shows.clone(),
            tags: scenario.about.tags.clone(),
            clauses,
            results: results(fixture),
            snapshots: scenario.snapshots().count(),
            mixed_walks: scenario.mixed_walks().count(),
            searches: scenario.explore.len(),
            stops: scenario.stops.len(),
        }
    }
}

/// Returns the clauses that the expectations name, in order.
fn clauses(fixture: &ProgramFixture) -> Vec<Clause> {
    let calls = fixture.scenario.snapshots().flat_map(|at| &at.call.expect);
    let walks = fixture.scenario.mixed_walks().flat_map(|at| &at.says.expect);
    let of_calls = calls.flat_map(|expect| &expect.clauses);
    let of_walks = walks.flat_map(|expect| &expect.clauses);
    let searches = fixture.scenario.explore.iter().flat_map(|explore| &explore.expect);
    let of_searches = searches.flat_map(|expect| &expect.clauses);
    let mut clauses: Vec<_> = of_calls.chain(of_walks).chain(of_searches).copied().collect();
    clauses.sort_unstable();
    clauses.dedup();
    clauses
}

/// Returns the outcomes that snapshots are expected to have, in order.
fn results(fixture: &ProgramFixture) -> Vec<String> {
    let calls = fixture.scenario.snapshots().flat_map(|at| &at.call.expect);
    let mut results: Vec<_> = calls.map(|expect| expect.result.to_string()).collect();
    results.sort_unstable();
    results.dedup();
    results
}

impl ListArgs {
    /// Returns the paths among the arguments, and the words. A word is neither there nor
    /// has the form of a path.
    fn paths_and_words(&self) -> (Vec<PathBuf>, Vec<String>) {
        let is_path = |path: &PathBuf| {
            let name = slashed(path);
            path.exists()
                || name.ends_with(PROGRAM)
                || name.contains('/') && meaning(&name).is_none()
        };
        let (paths, words): (Vec<_>, Vec<_>) = self.paths.iter().cloned().partition(is_path);
        let words = words.iter().map(|word| word.to_string_lossy().into_owned());
        (paths, words.collect())
    }

    fn wants(&self, name: &str, fixture: &ProgramFixture) -> bool {
        self.chapter.as_ref().is_none_or(|wanted| chapter(name) == *wanted)
            && self.tag.as_ref().is_none_or(|tag| fixture.scenario.about.tags.contains(tag))
            && self.clause.is_none_or(|clause| clauses(fixture).contains(&clause))
    }
}

impl Listed {
    /// Returns true if the text has one of the words, given in lower case, in its name, description, tags,
    /// clauses or outcomes.
    fn has(&self, words: &Wanted) -> bool {
        let parts = [Some(&self.file), self.shows.as_ref()].into_iter().flatten();
        let mut parts = parts.chain(&self.tags).chain(&self.clauses).chain(&self.results);
        parts.any(|part| words.is_in(part))
    }
}

/// A word, and what this project calls the same thing.
struct Wanted(Vec<String>);

impl Wanted {
    fn new(word: &str) -> Self {
        let others = meaning(word).map(|meaning| meaning.find).unwrap_or_default();
        let words = iter::once(word).chain(others).map(str::to_lowercase);
        Self(words.collect())
    }

    /// Returns true if one of the words is part of a text.
    fn is_in(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.0.iter().any(|word| text.contains(word))
    }
}

/// The texts that meet all conditions.
struct Found {
    listed: Vec<Listed>,
    /// True if the words are in what the texts say, and not in what is said of them.
    by_content: bool,
}

/// Returns the texts that `args` name. Words that are in the description of no text are looked for in all of each.
fn find_all(args: &ListArgs) -> Result<Found, CliError> {
    let (paths, words) = args.paths_and_words();
    let words: Vec<_> = words.iter().map(|word| Wanted::new(word)).collect();
    let (mut listed, mut by_content) = (Vec::new(), Vec::new());
    for source in input::sources(&paths)?.iter().filter(|source| source.is_program()) {
        let fixture = ProgramFixture::read(source)?;
        if !args.wants(&source.name, &fixture) {
            continue;
        }
        let text = Listed::new(&source.name, &fixture);
        if words.iter().all(|word| text.has(word)) {
            listed.push(text);
        } else if listed.is_empty() {
            let content = source.read_text()?;
            by_content.extend(words.iter().all(|word| word.is_in(&content)).then_some(text));
        }
    }
    if listed.is_empty() && !by_content.is_empty() {
        return Ok(Found { listed: by_content, by_content: true });
    }
    Ok(Found { listed, by_content: false })
}

/// Lists the texts that `args` name and returns the exit code.
pub(crate) fn list(args: &ListArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    if let Some(name) = &args.print {
        write!(console.out, "{}", find(&slashed(name))?.read_content()?)?;
        return Ok(PASSED);
    }
    let Found { mut listed, by_content } = find_all(args)?;
    if listed.is_empty() {
        let (_, words) = args.paths_and_words();
        let meaning =
            words.iter().find_map(|word| Some(format!("{word}: {}", meaning(word)?.here)));
        return Err(CliError::new("list", meaning.unwrap_or_else(|| NOTHING.to_owned())));
    }
    if by_content && !args.json.wanted {
        writeln!(
            console.out,
            "{DIM}no description has these words; in these scenarios they are written:{DIM:#}\n"
        )?;
    }
    // Folders may be given in any order; within one, texts keep theirs.
    listed.sort_by(|one, other| one.chapter.cmp(&other.chapter));
    let mut last = None;
    for text in &listed {
        if args.json.wanted {
            write_json(text, console)?;
            continue;
        }
        if last != Some(&text.chapter) {
            let count = listed.iter().filter(|other| other.chapter == text.chapter).count();
            let gap = if last.is_some() { "\n" } else { "" };
            let texts = counted(count, "scenario", "scenarios");
            writeln!(console.out, "{gap}{HEAD}{}{HEAD:#}, {texts}", text.chapter)?;
            last = Some(&text.chapter);
        }
        write(text, console)?;
    }
    Ok(PASSED)
}

fn write(text: &Listed, console: &mut Console<'_>) -> Result<(), CliError> {
    let Listed { file, shows, tags, clauses, .. } = text;
    writeln!(console.out, "  {file}")?;
    for line in wrapped(shows.as_deref().unwrap_or_default(), width() - INDENT.len()) {
        if !line.is_empty() {
            writeln!(console.out, "{INDENT}{line}")?;
        }
    }
    let about: Vec<_> = clauses.iter().chain(tags).map(String::as_str).collect();
    for line in wrapped(&about.join(" "), width() - INDENT.len()) {
        if !line.is_empty() {
            writeln!(console.out, "{INDENT}{DIM}{line}{DIM:#}")?;
        }
    }
    Ok(())
}
