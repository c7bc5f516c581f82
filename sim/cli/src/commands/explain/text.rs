//! `clrsim explain` of texts: the decisions behind the result of each snapshot.

use crate::args::ExplainArgs;
use crate::commands::explain::{Sentence, write_line};
use crate::commands::matrix::{on_all, wanted};
use crate::input::Source;
use crate::input::program::ProgramFixture;
use crate::render::console::{BAD, Console, DIM, GOOD, HEAD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::words::in_words;
use crate::report::callback;
use crate::report::runtimes::{OnRuntimes, Runtimes, keep};
use clr_runtime::explain::StoryLine;
use clr_runtime::generation::Generation;
use clr_scenario::{ExplainedSnapshot, RunOnError, Scenario, SnapshotAt};
use serde::Serialize;
use std::io::{self, Write};

/// A snapshot on runtimes with the same story.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct SnapshotStory<'s> {
    kind: &'static str,
    file: &'s str,
    /// Number of the snapshot in the text, from 1.
    snapshot: usize,
    title: Option<&'s str>,
    /// The call, in words.
    call: String,
    runtimes: Runtimes,
    story: Vec<Sentence>,
    /// Result of the call.
    result: String,
    /// True if the text expects this result; `None` if it expects nothing.
    as_expected: Option<bool>,
    /// Differences from the expectation.
    differences: Vec<String>,
    #[serde(skip)]
    lines: Vec<StoryLine>,
    /// The story without numbers, because those of a program differ on each runtime.
    #[serde(skip)]
    outline: Vec<String>,
    #[serde(skip)]
    is_made: bool,
}

/// Explains the snapshots that `args` name.
pub(crate) fn explain(
    args: &ExplainArgs,
    source: &Source,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    let fixture = ProgramFixture::read(source)?;
    let wanted = wanted(&fixture.scenario, args.snapshot.wanted.as_ref(), source)?;
    let made = on_all(&fixture.scenario, args.on.or_all());
    if !args.json.wanted {
        source.write_head(&fixture.scenario, console.out)?;
    }
    for (n, at) in wanted {
        let mut all: Vec<SnapshotStory<'_>> = Vec::new();
        for (generation, each) in &made {
            let Some(made) = each.get(n) else { continue };
            let explained =
                SnapshotStory::new((n, at), &fixture.scenario, source, *generation, made.as_ref());
            keep(explained, &mut all, SnapshotStory::is_like);
        }
        if args.json.wanted {
            all.iter().try_for_each(|explained| write_json(explained, console))?;
            continue;
        }
        let title = at.call.title.as_ref().map(|title| format!(" {title}")).unwrap_or_default();
        let call = callback::call(&fixture.scenario, at);
        writeln!(console.out, "\n{HEAD}snapshot {}{title}{HEAD:#}: {call}", n + 1)?;
        for explained in &all {
            explained.write(console.out)?;
        }
    }
    Ok(())
}

impl OnRuntimes for SnapshotStory<'_> {
    fn runtimes(&mut self) -> &mut Runtimes {
        &mut self.runtimes
    }
}

impl<'s> SnapshotStory<'s> {
    fn new(
        (n, at): (usize, SnapshotAt<'s>),
        scenario: &Scenario,
        source: &'s Source,
        generation: Generation,
        made: Result<&ExplainedSnapshot, &RunOnError>,
    ) -> Self {
        let expected = at.call.expected_on(generation);
        let differences = match (made, expected) {
            (Ok(explained), Some((_, expected))) => {
                Some(expected.differences(&explained.report.found))
            }
            _ => None,
        };
        let lines = made.map_or_else(|_| Vec::new(), |explained| explained.story.clone());
        let outline = |line: &StoryLine| match &scenario.stack {
            Some(_) => line.text.clone(),
            None => without_numbers(&line.text),
        };
        Self {
            kind: "story",
            file: &source.name,
            snapshot: n + 1,
            title: at.call.title.as_deref(),
            call: callback::call(scenario, at),
            runtimes: Runtimes::one(generation),
            story: lines.iter().cloned().map(Sentence::from).collect(),
            result: made.map_or_else(
                |error| scenario.named(*error).to_string(),
                |explained| explained.report.found.outcome.to_string(),
            ),
            as_expected: differences.as_ref().map(Vec::is_empty),
            differences: differences.iter().flatten().map(ToString::to_string).collect(),
            outline: lines.iter().map(outline).collect(),
            lines,
            is_made: made.is_ok(),
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let clauses = |explained: &Self| -> Vec<_> {
            explained.lines.iter().map(|line| line.clauses.clone()).collect()
        };
        self.outline == other.outline
            && clauses(self) == clauses(other)
            && self.result == other.result
            && self.as_expected == other.as_expected
            && self.differences == other.differences
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Runtimes(runtimes) = self.runtimes;
        let Some(first) = runtimes.iter().next() else { return Ok(()) };
        let words = in_words(runtimes);
        // Numbers of a program are those of the first of the runtimes.
        let differ = runtimes.iter().count() > 1 && self.has_own_numbers();
        let of = if differ { format!("{words}; numbers of {first}") } else { words };
        writeln!(out, "\n{HEAD}{of}{HEAD:#}")?;
        for line in &self.lines {
            write_line(line, out)?;
        }
        if !self.is_made {
            writeln!(out, "  {BAD}cannot be made{BAD:#}: {}", self.result)?;
        }
        match self.as_expected {
            None => writeln!(out, "  {DIM}nothing is expected{DIM:#}"),
            Some(true) => writeln!(out, "  {GOOD}as expected{GOOD:#}"),
            Some(false) => {
                writeln!(out, "  {BAD}not as expected{BAD:#}")?;
                self.differences.iter().try_for_each(|one| writeln!(out, "    {one}"))
            }
        }
    }

    /// Returns true if the outline leaves numbers out.
    fn has_own_numbers(&self) -> bool {
        self.lines.iter().zip(&self.outline).any(|(line, outline)| line.text != *outline)
    }
}

/// Replaces each hexadecimal number of a sentence by `#`.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split("0x");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        all + "#" + part.trim_start_matches(|c: char| c.is_ascii_hexdigit())
    })
}
