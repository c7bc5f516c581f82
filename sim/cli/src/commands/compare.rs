//! `clrsim compare`: the frames that mixed walks find by each policy, beside the true stack.

use crate::PASSED;
use crate::args::CompareArgs;
use crate::commands::matrix::{cut, letter};
use crate::input::Source;
use crate::input::program::ProgramFixture;
use crate::render::console::{BAD, Console, DIM, GOOD, HEAD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::style::Style;
use crate::render::unwind_data::Hex;
use crate::render::words::in_words;
use crate::render::wrap::{narrow, room, wrapped};
use crate::report::runtimes::{OnRuntimes, Runtimes, keep};
use clr_runtime::generation::{Generation, Generations};
use clr_runtime::profiling::Policy;
use clr_scenario::{
    Compared, FoundMixed, FoundMixedFrame, Keyword, MixedClaim, MixedFrameKind, PlacedStack,
    ReasonKind, RunOnError, Scenario,
};
use clr_walker::mixed::SeenBy;
use serde::Serialize;
use std::io::{self, Write};

/// Smallest width of the column of frames.
const LEAST_PLACE: usize = 20;
/// Width of the column of a policy.
const CELL: usize = 5;

/// A thread, on runtimes where all policies find the same.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Comparison {
    kind: &'static str,
    file: String,
    /// Index of the stop; `None` in a stack placed by hand.
    stop: Option<usize>,
    /// The place of the thread, in words.
    place: String,
    runtimes: Runtimes,
    columns: Vec<Column>,
    rows: Vec<Row>,
    /// The reason why nothing can be compared.
    error: Option<String>,
}

/// The result of a walk by one policy.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Column {
    policy: &'static str,
    /// The profiler that works by this policy, in words.
    profiler: &'static str,
    /// Result of `DoStackSnapshot`, if it was called, or the fault that ended the process.
    result: Option<String>,
    /// The walk's claim of completeness, as texts spell it.
    complete: Option<&'static str>,
    gaps: Vec<GapWords>,
    #[serde(skip)]
    claim: Option<MixedClaim>,
}

/// A gap of a walk, in words.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct GapWords {
    /// Number of rows before the gap.
    before: usize,
    /// The reason, as texts spell it.
    reason: &'static str,
    text: String,
}

/// A frame.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Row {
    /// Kind of the frame's code.
    code: &'static str,
    /// Place of the ip: a function and the offset in bytes from its start.
    frame: String,
    rsp: Hex,
    /// True if the frame is on the stack.
    is_there: bool,
    /// The side that found the frame, for each policy.
    seen_by: Vec<Option<&'static str>>,
}

/// Returns the profiler that works by a policy, in words.
const fn profiler(policy: Policy) -> &'static str {
    match policy {
        Policy::Unseeded => "naive: DoStackSnapshot without a seed, nothing else",
        Policy::Seeded => "as documented: suspends, unwinds, gives a seed",
        Policy::RuntimeSuspended => "as OpenTelemetry: SuspendRuntime, no seed",
        Policy::Signal => "in a signal handler, asking the runtime nothing",
        Policy::SignalSnapshot => "in a signal handler, seeded with what was interrupted",
        Policy::Synchronous => "in a callback of the runtime",
        Policy::FramePointers => "frame pointers only",
    }
}

/// Prints the tables that `args` name and returns the exit code.
pub(crate) fn compare(args: &CompareArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let source = Source::find(&args.scenario.path)?;
    let fixture = ProgramFixture::read(&source)?;
    let scenario = &fixture.scenario;
    let stops: Vec<_> = match (&scenario.stack, args.stop) {
        (Some(_), None) => vec![None],
        (Some(_), Some(_)) => return Err(source.error("is a stack, and stops nowhere")),
        (None, None) => (0..scenario.stops.len()).map(Some).collect(),
        (None, Some(stop)) if stop < scenario.stops.len() => vec![Some(stop)],
        (None, Some(_)) => {
            let count = scenario.stops.len();
            return Err(source.error(format_args!("has {count} stops, counted from 0")));
        }
    };
    if stops.is_empty() {
        return Err(source.error("stops nowhere: there is nothing to compare"));
    }
    let wanted = |policy: &Policy| {
        args.policy.is_empty() || args.policy.iter().any(|word| word == policy.word())
    };
    let policies: Vec<_> = Policy::ALL.into_iter().filter(wanted).collect();
    let on = args.on.runtimes.unwrap_or_else(|| usual(scenario));
    if !args.json.wanted {
        source.write_head(scenario, console.out)?;
    }
    for stop in stops {
        let mut all: Vec<Comparison> = Vec::new();
        for generation in on.iter() {
            let compared = scenario.compare_on(generation, stop, &policies);
            let new = Comparison::new(scenario, &source.name, stop, generation, compared);
            keep(new, &mut all, |other, new| other.is_like(new, stop.is_none()));
        }
        for comparison in &all {
            if args.json.wanted {
                write_json(comparison, console)?;
            } else {
                comparison.write(console.out)?;
            }
        }
    }
    Ok(PASSED)
}

/// Returns the runtimes that a text is for.
fn usual(scenario: &Scenario) -> Generations {
    scenario.stack.as_ref().map_or(Generations::ALL, PlacedStack::generations)
}

/// Returns the place of the thread of a stop.
fn place(scenario: &Scenario, stop: Option<usize>) -> String {
    match stop.and_then(|index| Some((index, scenario.stops.get(index)?))) {
        Some((index, stop)) => format!("stop {index}, {}", scenario.place_in_words(stop.at)),
        None => "the stack".to_owned(),
    }
}

impl OnRuntimes for Comparison {
    fn runtimes(&mut self) -> &mut Runtimes {
        &mut self.runtimes
    }
}

impl Comparison {
    fn new(
        scenario: &Scenario,
        file: &str,
        stop: Option<usize>,
        generation: Generation,
        compared: Result<Compared, RunOnError>,
    ) -> Self {
        let mut comparison = Self {
            kind: "comparison",
            file: file.to_owned(),
            stop,
            place: place(scenario, stop),
            runtimes: Runtimes::one(generation),
            columns: Vec::new(),
            rows: Vec::new(),
            error: None,
        };
        match compared {
            Ok(compared) => comparison.fill(&compared),
            Err(error) => comparison.error = Some(scenario.named(error).to_string()),
        }
        comparison
    }

    fn fill(&mut self, compared: &Compared) {
        let row = |frame: &clr_scenario::ShadowFrame| Row {
            code: frame.kind.word(),
            frame: frame.label.clone(),
            rsp: frame.sp.into(),
            is_there: true,
            seen_by: Vec::new(),
        };
        self.rows = compared.shadow_frames.iter().map(row).collect();
        for (policy, found) in &compared.walks {
            self.add(*policy, found, &compared.places(found));
        }
    }

    /// Adds the result of a walk. `places` are the indices of its frames in the true stack.
    fn add(&mut self, policy: Policy, found: &FoundMixed, places: &[Option<usize>]) {
        let count = self.columns.len();
        for row in &mut self.rows {
            row.seen_by.push(None);
        }
        // The rows of the true stack; rows of stray frames may lie between them.
        let there: Vec<_> = (0..self.rows.len()).filter(|at| self.rows[*at].is_there).collect();
        let mut moved = 0;
        let mut at_of = Vec::with_capacity(found.frames.len());
        let mut behind = 0;
        for (frame, place) in found.frames.iter().zip(places) {
            let seen_by = Some(frame.frame.seen_by().word());
            let at = if let Some(at) = place.and_then(|place| there.get(place)) {
                at + moved
            } else {
                let before = self.rows.len();
                let at = self.stray(frame, behind);
                moved += self.rows.len() - before;
                at
            };
            if let Some(cell) = self.rows[at].seen_by.get_mut(count) {
                *cell = seen_by;
            }
            at_of.push(at);
            behind = at + 1;
        }
        let gap = |gap: &clr_walker::mixed::Gap| GapWords {
            before: gap.at.checked_sub(1).and_then(|last| at_of.get(last)).map_or(0, |at| at + 1),
            reason: ReasonKind::from(gap.reason).word(),
            text: gap.reason.to_string(),
        };
        self.columns.push(Column {
            policy: policy.word(),
            profiler: profiler(policy),
            result: found.outcome.map(|outcome| outcome.to_string()),
            complete: found.claim().map(MixedClaim::word),
            gaps: found.gaps.iter().map(gap).collect(),
            claim: found.claim(),
        });
    }

    /// Returns the row, from `first` on, of a frame that is not on the stack. Adds one if no other
    /// walk has found the frame.
    fn stray(&mut self, found: &FoundMixedFrame, first: usize) -> usize {
        let row = Row {
            code: MixedFrameKind::from(found.frame.kind).word(),
            frame: found.label.clone(),
            rsp: found.frame.sp.into(),
            is_there: false,
            seen_by: vec![None; self.columns.len() + 1],
        };
        let is = |other: &Row| !other.is_there && other.frame == row.frame && other.rsp == row.rsp;
        if let Some(known) = self.rows.iter().skip(first).position(is) {
            return first + known;
        }
        self.rows.insert(first, row);
        let gaps = self.columns.iter_mut().flat_map(|column| &mut column.gaps);
        gaps.filter(|gap| gap.before > first).for_each(|gap| gap.before += 1);
        first
    }

    /// Returns true if both show the same frames. Addresses count if `exact` is set: those of
    /// programs differ.
    fn is_like(&self, other: &Self, exact: bool) -> bool {
        let frame = |row: &Row| {
            let function =
                row.frame.rsplit_once("+0x").map_or(&*row.frame, |(function, _)| function);
            let numbers = exact.then(|| (row.frame.clone(), row.rsp));
            (row.code, function.to_owned(), numbers, row.seen_by.clone())
        };
        let column = |column: &Column| {
            let gaps: Vec<_> = column.gaps.iter().map(|gap| (gap.before, gap.reason)).collect();
            (column.policy, column.result.clone(), column.complete, gaps)
        };
        self.rows.iter().map(frame).eq(other.rows.iter().map(frame))
            && self.columns.iter().map(column).eq(other.columns.iter().map(column))
            && self.error == other.error
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let of = in_words(self.runtimes.0);
        writeln!(out, "\n{HEAD}{}{HEAD:#} on {of}", self.place)?;
        if let Some(error) = &self.error {
            return writeln!(out, "  {BAD}{error}{BAD:#}");
        }
        self.write_table(out)?;
        for (index, column) in self.columns.iter().enumerate() {
            column.write(index, &self.rows, out)?;
        }
        Ok(())
    }

    fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        let most = room().saturating_sub(self.columns.len() * (CELL + 2) + 2).max(LEAST_PLACE);
        let texts: Vec<_> = self.rows.iter().map(Row::text).collect();
        let longest = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
        let place = longest.clamp(LEAST_PLACE, most);
        write!(out, "  {DIM}{:place$}", "what is there, leaf first")?;
        for index in 0..self.columns.len() {
            write!(out, "  {:>CELL$}", letter(index))?;
        }
        writeln!(out, "{DIM:#}")?;
        for (row, text) in self.rows.iter().zip(&texts) {
            let (mark, style) = if row.is_there { (' ', Style::new()) } else { ('!', BAD) };
            write!(out, "{style}{mark} {:place$}{style:#}", cut(text, place))?;
            for seen_by in &row.seen_by {
                let (cell, style) = mark_of(*seen_by, row.is_there);
                write!(out, "  {style}{cell:>CELL$}{style:#}")?;
            }
            writeln!(out)?;
        }
        write!(out, "  {HEAD}{:place$}{HEAD:#}", "complete")?;
        for column in &self.columns {
            let (cell, style) = match column.claim {
                Some(MixedClaim::Whole) => ("whole", GOOD),
                Some(MixedClaim::Reportable) => ("most", GOOD),
                Some(MixedClaim::WithoutLeaf) => ("but leaf", GOOD),
                Some(MixedClaim::Guessed) => ("guessed", BAD),
                Some(MixedClaim::Partial(_)) => ("no", BAD),
                None => ("dies", BAD),
            };
            write!(out, "  {style}{cell:>CELL$}{style:#}")?;
        }
        writeln!(out)
    }
}

/// Returns the mark for the side that found a frame.
fn mark_of(seen_by: Option<&str>, is_there: bool) -> (&'static str, Style) {
    let word = seen_by.and_then(SeenBy::from_word);
    let style = match word {
        Some(_) if !is_there => BAD,
        Some(SeenBy::Both) => GOOD,
        None if is_there => BAD,
        _ => Style::new(),
    };
    let mark = match word {
        Some(SeenBy::Both) => "RU",
        Some(SeenBy::Snapshot) => "R",
        Some(SeenBy::Unwinder) => "U",
        None => "-",
    };
    (mark, style)
}

impl Row {
    fn text(&self) -> String {
        let there = if self.is_there { "" } else { " (not there)" };
        match self.code {
            "managed" => format!("{}{there}", self.frame),
            code => format!("{code}: {}{there}", self.frame),
        }
    }
}

impl Column {
    fn write(&self, index: usize, rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
        let there = rows.iter().filter(|row| row.is_there);
        let count = there.clone().count();
        let seen = there.filter(|row| row.seen_by.get(index).is_some_and(Option::is_some)).count();
        let (letter, policy, profiler) = (letter(index), self.policy, self.profiler);
        writeln!(out, "{HEAD}{letter} {policy}{HEAD:#}, {profiler}: {seen} of {count} frames")?;
        // A gap may have the result already.
        let is_said = |result: &&String| self.gaps.iter().any(|gap| gap.text.ends_with(*result));
        if let Some(result) = self.result.as_ref().filter(|result| !is_said(result)) {
            writeln!(out, "    DoStackSnapshot: {result}")?;
        }
        for gap in &self.gaps {
            let place = match gap.before.checked_sub(1).and_then(|at| rows.get(at)) {
                Some(row) => format!("behind {}", row.frame),
                None => "at the leaf".to_owned(),
            };
            let text = format!("gap {place}: {}", gap.text);
            for (n, line) in wrapped(&text, narrow() - 6).iter().enumerate() {
                let indent = if n == 0 { "    " } else { "      " };
                writeln!(out, "{indent}{line}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
