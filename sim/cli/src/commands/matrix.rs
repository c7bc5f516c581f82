//! `clrsim matrix`: the snapshots of a text on all runtimes, side by side.

use crate::PASSED;
use crate::args::MatrixArgs;
use crate::input::Source;
use crate::input::program::ProgramFixture;
use crate::render::alignment::aligned;
use crate::render::console::{BAD, Console, DIM, GOOD, HEAD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::style::Style;
use crate::render::words::in_words;
use crate::render::wrap::{narrow, room};
use crate::report::callback::{self, Callback};
use crate::report::runtimes::{OnRuntimes, Runtimes, keep};
use crate::report::snapshot::Why;
use clr_runtime::Outcome;
use clr_runtime::clause::{Clause, Support};
use clr_runtime::explain::{StoryLine, deciding, parting};
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::{ExplainedSnapshot, RunOnError, Scenario, SnapshotAt, SnapshotResult};
use serde::Serialize;
use std::io::{self, Write};

/// Smallest width of the column of callbacks' places.
const LEAST_PLACE: usize = 20;

/// A note that all results on Windows have in common.
const UNDER_WINE: &str = "What was recorded of runtimes for Windows was recorded under wine alone.";

/// A snapshot on all runtimes.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Matrix {
    kind: &'static str,
    file: String,
    /// Number of the snapshot in the text, from 1.
    snapshot: usize,
    title: Option<String>,
    /// The call, in words.
    call: String,
    columns: Vec<Column>,
    rows: Vec<Row>,
}

/// The result of a snapshot on runtimes with the same result.
#[derive(Default, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Column {
    runtimes: Runtimes,
    /// Result of the call.
    result: String,
    /// True if the text expects this result; `None` if it expects nothing.
    as_expected: Option<bool>,
    /// The sentence of the call's story that decided the result, on the first runtime and on all that `also` does not name;
    /// numbers that differ between these are left out.
    why: Option<Why>,
    /// The sentences that decided on other runtimes of the column.
    also: Vec<OtherReason>,
    /// The sentence at which the story parts from that of the first column, if it is the same on all runtimes but for
    /// numbers.
    parts: Option<Why>,
    /// The story on each runtime.
    #[serde(skip)]
    stories: Vec<Vec<StoryLine>>,
    /// The runtimes of the column with the first reason.
    #[serde(skip)]
    reasoned: Runtimes,
    #[serde(skip)]
    callbacks: Vec<Callback>,
    #[serde(skip)]
    short: String,
}

/// The reason for a column's result on some of its runtimes.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct OtherReason {
    runtimes: Runtimes,
    #[serde(flatten)]
    why: Why,
}

/// A callback of some columns.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Row {
    #[serde(flatten)]
    callback: Callback,
    /// Number of the callback in each column, from 1.
    callbacks: Vec<Option<usize>>,
    #[serde(skip)]
    same: bool,
}

/// Prints the tables that `args` name and returns the exit code.
pub(crate) fn matrix(args: &MatrixArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let source = Source::find(&args.scenario.path)?;
    let fixture = ProgramFixture::read(&source)?;
    let scenario = &fixture.scenario;
    let wanted = wanted(scenario, args.snapshot.wanted.as_ref(), &source)?;
    let made = on_all(scenario, args.on.or_all());
    if !args.json.wanted {
        source.write_head(scenario, console.out)?;
    }
    for (n, at) in wanted {
        let exact = scenario.stack.is_some();
        let results = made.iter().filter_map(|(generation, each)| {
            Some((*generation, each.get(n)?.as_ref().map_err(ToString::to_string)))
        });
        let columns = columns(at, results, exact);
        let rows = rows(&columns, exact);
        let matrix = Matrix {
            kind: "matrix",
            file: source.name.clone(),
            snapshot: n + 1,
            title: at.call.title.clone(),
            call: callback::call(scenario, at),
            columns,
            rows,
        };
        if args.json.wanted {
            write_json(&matrix, console)?;
        } else {
            matrix.write(console.out)?;
        }
    }
    if !args.json.wanted && args.on.or_all().iter().any(|it| !it.is_unix()) {
        writeln!(console.out, "\n{DIM}{UNDER_WINE}{DIM:#}")?;
    }
    Ok(PASSED)
}

/// Returns the snapshots of that number or title, or all, with their indices in the text.
pub(crate) fn wanted<'s>(
    scenario: &'s Scenario,
    name: Option<&String>,
    source: &Source,
) -> Result<Vec<(usize, SnapshotAt<'s>)>, CliError> {
    let is_meant = |(n, at): &(usize, SnapshotAt<'_>)| {
        let is_own =
            |name: &String| *name == (n + 1).to_string() || at.call.title.as_ref() == Some(name);
        name.is_none_or(is_own)
    };
    let wanted: Vec<_> = scenario.snapshots().enumerate().filter(is_meant).collect();
    if wanted.is_empty() {
        return Err(source.error(missing(scenario)));
    }
    Ok(wanted)
}

fn missing(scenario: &Scenario) -> String {
    let titles: Vec<_> = scenario.snapshots().filter_map(|at| at.call.title.as_deref()).collect();
    match (scenario.snapshots().count(), titles.as_slice()) {
        (0, _) if scenario.stops.is_empty() => "has no snapshots: add one".to_owned(),
        (0, _) => "has no snapshots: add one, or use clrsim compare".to_owned(),
        (count, []) => format!("has no such snapshot; they are 1 to {count}"),
        (count, titles) => {
            format!("has no such snapshot; they are 1 to {count}: {}", titles.join("; "))
        }
    }
}

/// The snapshots of a text on a runtime.
type Each = Vec<Result<ExplainedSnapshot, RunOnError>>;

/// Makes the snapshots of a text on each of these runtimes, whatever the text expects of it.
pub(crate) fn on_all(scenario: &Scenario, on: Generations) -> Vec<(Generation, Each)> {
    let mut scenario = scenario.clone();
    // A snapshot without expectations is made on every runtime.
    scenario.calls_mut().for_each(|call| call.expect.clear());
    let each = |generation| {
        let each = scenario.explain_each_on(generation);
        (generation, each.into_iter().map(|(_, made)| made).collect())
    };
    on.iter().map(each).collect()
}

fn columns<'m>(
    at: SnapshotAt<'_>,
    results: impl Iterator<Item = (Generation, Result<&'m ExplainedSnapshot, String>)>,
    exact: bool,
) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for (generation, made) in results {
        let column = match made {
            Ok(explained) => Column::new(at, generation, explained),
            Err(error) => Column::impossible(generation, error),
        };
        keep(column, &mut columns, |other, column| other.is_like(column, exact));
    }
    if let Some((first, others)) = columns.split_first_mut() {
        for column in others {
            column.parts = column.parting_from(first);
        }
    }
    columns
}

impl OnRuntimes for Column {
    fn runtimes(&mut self) -> &mut Runtimes {
        &mut self.runtimes
    }

    fn join(&mut self, other: Self) {
        self.runtimes.join(other.runtimes);
        if let Some(why) = other.why {
            self.add_reason(other.runtimes, why);
        }
        self.stories.extend(other.stories);
        self.as_expected = self.as_expected.or(other.as_expected);
        for (own, other) in self.callbacks.iter_mut().zip(&other.callbacks).filter(|(a, b)| a != b)
        {
            *own = own.without_numbers(other);
        }
    }
}

impl Column {
    fn new(at: SnapshotAt<'_>, generation: Generation, explained: &ExplainedSnapshot) -> Self {
        let found: &SnapshotResult = &explained.report.found;
        let expected = at.call.expected_on(generation);
        Self {
            runtimes: Runtimes::one(generation),
            result: found.outcome.to_string(),
            as_expected: expected.map(|(_, expected)| expected.differences(found).is_empty()),
            reasoned: Runtimes::one(generation),
            why: deciding(&explained.story).map(Why::from),
            stories: vec![explained.story.clone()],
            callbacks: callback::found(found),
            short: short(found.outcome),
            ..Self::default()
        }
    }

    fn impossible(generation: Generation, error: String) -> Self {
        Self {
            runtimes: Runtimes::one(generation),
            result: error,
            short: "not made".to_owned(),
            ..Self::default()
        }
    }

    /// Adds the reason for the result on other runtimes.
    fn add_reason(&mut self, runtimes: Runtimes, why: Why) {
        let Some(first) = &mut self.why else {
            (self.why, self.reasoned) = (Some(why), runtimes);
            return;
        };
        if let Some(common) = first.common(&why) {
            *first = common;
            self.reasoned.join(runtimes);
            return;
        }
        for also in &mut self.also {
            if let Some(common) = also.why.common(&why) {
                also.why = common;
                also.runtimes.join(runtimes);
                return;
            }
        }
        self.also.push(OtherReason { runtimes, why });
    }

    /// Returns the sentence at which the story of each runtime parts from each of another column.
    fn parting_from(&self, other: &Self) -> Option<Why> {
        let pairs =
            self.stories.iter().flat_map(|own| other.stories.iter().map(move |of| (own, of)));
        let mut each = pairs.map(|(own, of)| parting(own, of).map(Why::from));
        let first = each.next()??;
        each.try_fold(first, |common, next| common.common(&next?))
    }

    fn is_like(&self, other: &Self, exact: bool) -> bool {
        self.short == other.short
            && (self.as_expected == Some(false)) == (other.as_expected == Some(false))
            && self.callbacks.len() == other.callbacks.len()
            && self.callbacks.iter().zip(&other.callbacks).all(|(a, b)| is_same(a, b, exact))
            && (self.callbacks.len() + other.callbacks.len() > 0
                || first_clause(self.why.as_ref()) == first_clause(other.why.as_ref()))
    }
}

/// Returns the rule that decided a result.
fn first_clause(why: Option<&Why>) -> Option<&str> {
    why?.clauses.first().map(String::as_str)
}

/// Returns true if two callbacks have the same place. Unless `exact` is set, the same function is
/// enough.
fn is_same(one: &Callback, other: &Callback, exact: bool) -> bool {
    if exact {
        return one == other;
    }
    one.marker == other.marker && one.function() == other.function()
}

/// Merges the callbacks of the columns in an order that keeps that of each column.
fn rows(columns: &[Column], exact: bool) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        let same =
            |row: usize, callback: usize| match (rows.get(row), column.callbacks.get(callback)) {
                (Some(row), Some(callback)) => is_same(&row.callback, callback, exact),
                _ => false,
            };
        let pairs = aligned(rows.len(), column.callbacks.len(), same);
        let mut old: Vec<_> = rows.drain(..).map(Some).collect();
        let mut new: Vec<Row> = Vec::new();
        for (row, callback) in pairs {
            let callback =
                callback.and_then(|callback| Some((callback, column.callbacks.get(callback)?)));
            let taken = row.and_then(|row| old.get_mut(row)?.take());
            let number = |callback: usize| Some(callback + 1);
            match (taken, callback) {
                (Some(mut row), Some((n, callback))) if is_same(&row.callback, callback, exact) => {
                    if row.callback != *callback {
                        row.callback = row.callback.without_numbers(callback);
                    }
                    row.callbacks.push(number(n));
                    new.push(row);
                }
                (row, callback) => {
                    if let Some(mut row) = row {
                        row.callbacks.push(None);
                        new.push(row);
                    }
                    if let Some((n, callback)) = callback {
                        let mut callbacks = vec![None; index];
                        callbacks.push(number(n));
                        new.push(Row { callback: callback.clone(), callbacks, same: false });
                    }
                }
            }
        }
        rows = new;
    }
    for row in &mut rows {
        row.same = row.callbacks.iter().all(|callback| *callback == row.callbacks[0]);
    }
    rows
}

/// Returns the result of a call, in one word if possible.
fn short(outcome: Outcome) -> String {
    match outcome {
        Outcome::Returned(result) => {
            let name = result.to_string();
            let short = name.strip_prefix("CORPROF_E_STACKSNAPSHOT_");
            short.or(name.strip_prefix("CORPROF_E_")).unwrap_or(&name).to_owned()
        }
        Outcome::ProcessKilled { .. } => "killed".to_owned(),
        Outcome::AccessViolation { .. } => "fault".to_owned(),
        Outcome::Blocked => "waits".to_owned(),
        Outcome::Endless => "endless".to_owned(),
    }
}

/// Returns the letter of a column.
pub(crate) fn letter(index: usize) -> char {
    ('A'..='Z').nth(index).unwrap_or('?')
}

impl Matrix {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let title = self.title.as_ref().map(|title| format!(" {title}")).unwrap_or_default();
        writeln!(out, "\n{HEAD}snapshot {}{title}{HEAD:#}: {}", self.snapshot, self.call)?;
        self.write_table(out)?;
        for (index, column) in self.columns.iter().enumerate() {
            column.write(index, out)?;
        }
        Ok(())
    }

    fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        let widths: Vec<_> =
            self.columns.iter().map(|column| column.short.chars().count().max(3)).collect();
        let all: usize = widths.iter().map(|width| width + 2).sum();
        let most = room().saturating_sub(all + 2).max(LEAST_PLACE);
        let texts: Vec<_> = self.rows.iter().map(|row| row.callback.text()).collect();
        let longest = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
        let place = longest.clamp("HRESULT".len(), most);
        write!(out, "  {DIM}{:place$}", "")?;
        for (index, width) in widths.iter().enumerate() {
            write!(out, "  {:>width$}", letter(index))?;
        }
        writeln!(out, "{DIM:#}")?;
        for (row, text) in self.rows.iter().zip(&texts) {
            let (mark, style) = marked(row.same);
            write!(out, "{style}{mark}{style:#} {:place$}", cut(text, place))?;
            for (callback, width) in row.callbacks.iter().zip(&widths) {
                let cell = callback.map_or_else(|| "-".to_owned(), |number| number.to_string());
                write!(out, "  {cell:>width$}")?;
            }
            writeln!(out)?;
        }
        let first = self.columns.first().map(|column| &column.short);
        let same = self.columns.iter().all(|column| Some(&column.short) == first);
        let (mark, style) = marked(same);
        write!(out, "{style}{mark}{style:#} {HEAD}{:place$}{HEAD:#}", "HRESULT")?;
        for (column, width) in self.columns.iter().zip(&widths) {
            let style = if column.short == "S_OK" { GOOD } else { BAD };
            write!(out, "  {style}{:>width$}{style:#}", column.short)?;
        }
        writeln!(out)
    }
}

fn marked(same: bool) -> (char, Style) {
    if same { (' ', Style::new()) } else { ('*', BAD) }
}

/// Shortens a text to `width` characters by leaving out its middle.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let (front, back) = (kept - kept / 2, kept / 2);
    let mut text: String = characters.iter().take(front).collect();
    text.push('…');
    text.extend(characters.iter().skip(characters.len() - back));
    text
}

impl Column {
    fn write(&self, index: usize, out: &mut dyn Write) -> io::Result<()> {
        let expected = match self.as_expected {
            None => format!(" {DIM}(nothing is expected){DIM:#}"),
            Some(true) => String::new(),
            Some(false) => format!(" {BAD}(not as expected){BAD:#}"),
        };
        let of = in_words(self.runtimes.0);
        writeln!(out, "{HEAD}{}{HEAD:#} {of}: {}{expected}", letter(index), self.result)?;
        if let Some(parts) = self.parts.as_ref().filter(|parts| self.why.as_ref() != Some(parts)) {
            write!(out, "    ")?;
            parts.write(4, narrow(), out)?;
        }
        let first = self.why.iter().map(|why| (self.reasoned, why));
        for (runtimes, why) in first.chain(self.also.iter().map(|also| (also.runtimes, &also.why)))
        {
            let of_all = runtimes == self.runtimes;
            let on = if of_all { String::new() } else { format!("on {}: ", in_words(runtimes.0)) };
            let text = format!("{on}{}", why.text);
            write!(out, "    ")?;
            Why { text, clauses: why.clauses.clone() }.write(4, narrow(), out)?;
        }
        let assumed = self.assumed();
        if assumed.iter().next().is_some() {
            writeln!(out, "    {DIM}assumed on {}{DIM:#}", in_words(assumed))?;
        }
        Ok(())
    }

    /// Returns the runtimes of the column on which nothing shows the rule that decided.
    fn assumed(&self) -> Generations {
        let is_assumed = |it: &Generation| {
            let other = self.also.iter().find(|also| also.runtimes.0.contains(*it));
            let why = other.map(|other| &other.why).or(self.why.as_ref());
            let clauses = why.iter().flat_map(|why| &why.clauses);
            let clauses: Vec<Clause> = clauses.filter_map(|clause| clause.parse().ok()).collect();
            !clauses.is_empty() && Support::of(&clauses, *it) == Support::Assumed
        };
        let assumed: Vec<_> = self.runtimes.0.iter().filter(is_assumed).collect();
        Generations::of(&assumed)
    }
}
