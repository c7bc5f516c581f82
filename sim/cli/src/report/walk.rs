//! Programs in a run: walks at their stops.

use crate::render::console::{BAD, DIM, HEAD};

use crate::input::Source;
use crate::input::program::{self, Names, OUTSIDE, ProgramFixture};
use crate::render::differences::{Pair, write_pairs};
use crate::render::error::CliError;
use crate::render::unwind_data::Hex;
use crate::render::words::in_words;
use crate::report::callback::Register;
use crate::report::expectation::Place;
use crate::report::{FileReport, Finding, snapshot};
use clr_runtime::generation::Generations;
use clr_scenario::{
    Expectation, ExpectedFrame, FoundFrame, Keyword, NotReached, Scenario, Stop, StopResult,
    UnwindDifference, WalkEnd, WalkReport,
};
use clr_unwind::{Position, Registers};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::io::{self, Write};
use std::time::Duration;

/// A failed walk, or a stop that was not reached.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct FailedWalk {
    stop: usize,
    /// Index among the stop's expectations; a stop without any is walked too.
    expectation: Option<usize>,
    /// The place of the expectation in the file; without an expectation, that of the stop.
    #[serde(flatten)]
    place: Place,
    rules: &'static str,
    thread: String,
    /// Number of instructions executed.
    executed: Option<u64>,
    rip: Option<Hex>,
    location: Option<String>,
    /// The reason why the stop was not reached.
    not_reached: Option<String>,
    frames: Vec<FrameRow>,
    ends: Option<Ends>,
    /// The difference between the walk and the execution.
    untrue: Option<String>,
}

/// An expected and a found frame.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct FrameRow {
    expected: Option<ExpectedWords>,
    found: Option<FoundWords>,
    /// Differences: found, missing, function, trust, or a register's name.
    wrong: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct ExpectedWords {
    /// Name of the function; `None` for code of no function.
    function: Option<String>,
    trust: Option<&'static str>,
    registers: Vec<Register>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct FoundWords {
    function: Option<String>,
    /// Function with the offset in bytes from its start.
    location: String,
    rip: Hex,
    rsp: Hex,
    trust: Option<&'static str>,
    role: Option<&'static str>,
    /// Registers with an expected value.
    registers: Vec<Register>,
}

/// The expected and the actual end of a walk.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Ends {
    expected: &'static str,
    found: String,
    is_wrong: bool,
}

/// Runs a text with its walks, snapshots, mixed walks and searches. The report explains at most
/// `max_failures`. Each search may take `limit`.
pub(crate) fn run(
    source: &Source,
    on: Generations,
    (max_failures, limit): (usize, Duration),
) -> Result<FileReport, CliError> {
    let fixture = ProgramFixture::read(source)?;
    let is_stack = fixture.scenario.stack.is_some();
    if let Some(needed) = missing_check(&fixture.scenario) {
        let error = source.error(format_args!("checks nothing: add {needed}"));
        return Err(error.with_code("checks-nothing"));
    }
    refuse_unchecked(source, &fixture.scenario, on)?;
    let kind = if is_stack { "stack" } else { "program" };
    let mut report = FileReport::new(&source.name, kind);
    // The walks run the program without a runtime, which is not possible for every text.
    if fixture.scenario.stops.iter().any(|stop| is_walked(&fixture.scenario, stop)) {
        walk(&fixture, source, max_failures, &mut report)?;
    }
    snapshot::run(&fixture, on, (max_failures, limit), &mut report);
    Ok(report)
}

/// Refuses a text that names one of these runtimes, and checks nothing there.
pub(crate) fn refuse_unchecked(
    source: &Source,
    scenario: &Scenario,
    on: Generations,
) -> Result<(), CliError> {
    let unchecked = scenario.unchecked().both(on);
    if unchecked.is_empty() {
        return Ok(());
    }
    let on = in_words(unchecked);
    let error = source.error(format_args!(
        "checks nothing on {on}, which it names: add an expect for that, or take it out of on="
    ));
    Err(error.with_code("checks-nothing"))
}

/// Returns what a text needs so that a run can check anything; `None` if it can.
fn missing_check(scenario: &Scenario) -> Option<&'static str> {
    let snapshots = scenario.snapshots().map(|at| at.call.expect.is_empty());
    let walks = scenario.mixed_walks().map(|at| at.says.expect.is_empty());
    let searches = scenario.explore.iter().map(|explore| explore.expect.is_empty());
    let mut expects_nothing = snapshots.chain(walks).chain(searches).peekable();
    let is_walked = scenario.stops.iter().any(|stop| is_walked(scenario, stop));
    match expects_nothing.peek() {
        _ if is_walked => None,
        Some(_) => expects_nothing.all(|nothing| nothing).then_some("an expect"),
        None if scenario.stack.is_some() => Some("a snapshot or a mixed-walk"),
        None => Some("a stop or an explore"),
    }
}

/// Returns true if a stop is for walks of its stack. In a text with snapshots, a stop without
/// expected walks is not: it may be the origin of a seed.
fn is_walked(scenario: &Scenario, stop: &Stop) -> bool {
    let has_runtime = scenario.snapshots().next().is_some()
        || scenario.mixed_walks().next().is_some()
        || !scenario.explore.is_empty();
    !stop.expect.is_empty() || !has_runtime
}

fn walk(
    fixture: &ProgramFixture,
    source: &Source,
    max_failures: usize,
    report: &mut FileReport,
) -> Result<(), CliError> {
    let scenario = &fixture.scenario;
    let linked = scenario.program.link().map_err(|error| source.error(error))?;
    let stops = scenario.run().map_err(|error| source.error(error))?;
    let names = Names { scenario, linked: &linked };
    for stop in stops {
        if !scenario.stops.get(stop.stop).is_some_and(|stop| is_walked(scenario, stop)) {
            continue;
        }
        let expect = scenario.stops.get(stop.stop).map_or(&[][..], |stop| &stop.expect);
        for case in 0..expect.len().max(1) {
            let expected = expect.get(case);
            let walk = stop.reached.as_ref().map(|reached| (reached, reached.walks.get(case)));
            report.counts.cases += 1;
            if let Ok((_, Some(walk))) = walk
                && walk.is_right()
            {
                report.counts.passed += 1;
                continue;
            }
            report.counts.failed += 1;
            if report.failures.len() < max_failures {
                let words = Words { fixture, names, stop: stop.stop, case, expected };
                let failed = match walk {
                    Ok((reached, Some(walk))) => words.walk(reached, walk),
                    Ok((_, None)) => words.outline(),
                    Err(why) => words.not_reached(why),
                };
                report.explain(failed);
            }
        }
    }
    Ok(())
}

/// The context that describes a failure.
struct Words<'w> {
    fixture: &'w ProgramFixture,
    names: Names<'w>,
    stop: usize,
    case: usize,
    expected: Option<&'w Expectation>,
}

impl Words<'_> {
    fn outline(&self) -> FailedWalk {
        let scenario = self.names.scenario;
        let place = self.fixture.place(self.stop, self.expected.map(|_| self.case)).into();
        let thread = scenario.stops.get(self.stop);
        let thread = thread.and_then(|stop| scenario.threads.get(stop.thread as usize));
        FailedWalk {
            stop: self.stop,
            expectation: self.expected.map(|_| self.case),
            place,
            rules: self.expected.map_or_else(Default::default, |e| e.rules).word(),
            thread: thread.map(|thread| thread.name.clone()).unwrap_or_default(),
            executed: None,
            rip: None,
            location: None,
            not_reached: None,
            frames: Vec::new(),
            ends: None,
            untrue: None,
        }
    }

    fn not_reached(&self, why: &NotReached) -> FailedWalk {
        FailedWalk { not_reached: Some(why.to_string()), ..self.outline() }
    }

    fn walk(&self, reached: &StopResult, walk: &WalkReport) -> FailedWalk {
        let expected = self.expected.map_or(&[][..], |expected| &expected.frames);
        let found = &walk.found.frames;
        let rows = (0..expected.len().max(found.len()))
            .map(|frame| self.row(frame, expected.get(frame), found.get(frame), &walk.differences));
        let ends = self.expected.map_or(WalkEnd::Any, |expected| expected.ends);
        FailedWalk {
            executed: Some(reached.executed),
            rip: Some(reached.rip.into()),
            location: Some(self.names.location(reached.rip, Position::Interrupted)),
            frames: rows.collect(),
            ends: Some(Ends {
                expected: ends.word(),
                found: walk.found.end.to_string(),
                is_wrong: walk.differences.contains(&UnwindDifference::End),
            }),
            untrue: walk.shadow_stack_difference.map(|difference| difference.to_string()),
            ..self.outline()
        }
    }

    fn row(
        &self,
        frame: usize,
        expected: Option<&ExpectedFrame>,
        found: Option<&FoundFrame>,
        differences: &[UnwindDifference],
    ) -> FrameRow {
        let own = differences.iter().filter(|difference| difference.frame() == Some(frame));
        let wrong = own.filter_map(|difference| match difference {
            UnwindDifference::Missing { .. } => Some("missing"),
            UnwindDifference::Surplus { .. } => Some("found"),
            UnwindDifference::Function { .. } => Some("function"),
            UnwindDifference::Trust { .. } => Some("trust"),
            UnwindDifference::Register { register, .. } => Some(register.name()),
            UnwindDifference::End => None,
        });
        let name = |id| self.names.function(id).to_owned();
        let registers = expected.map_or(&[][..], |expected| &expected.registers);
        FrameRow {
            wrong: wrong.collect(),
            expected: expected.map(|expected| ExpectedWords {
                function: expected.function.map(name),
                trust: expected.trust.map(Keyword::word),
                registers: registers.iter().map(|(r, v)| Register::new(*r, *v)).collect(),
            }),
            found: found.map(|found| {
                let Registers { rip, .. } = found.registers;
                FoundWords {
                    function: found.function.map(name),
                    location: self.names.location(rip, found.position),
                    rip: rip.into(),
                    rsp: found.registers.rsp().into(),
                    trust: found.trust.map(Keyword::word),
                    role: found.role.map(program::role),
                    registers: registers
                        .iter()
                        .map(|(r, _)| Register::new(*r, found.registers.get(*r)))
                        .collect(),
                }
            }),
        }
    }
}

impl Finding for FailedWalk {
    fn write(&self, file: &str, out: &mut dyn Write) -> io::Result<()> {
        let Self { stop, rules, thread, place, .. } = self;
        writeln!(
            out,
            "\n{BAD}failed{BAD:#} {HEAD}{file}{place}{HEAD:#} stop {stop}, {rules} rules"
        )?;
        if let Some(why) = &self.not_reached {
            return writeln!(out, "  {BAD}not reached{BAD:#} by thread {thread}: {why}");
        }
        if let (Some(rip), Some(location), Some(executed)) =
            (self.rip, &self.location, self.executed)
        {
            writeln!(
                out,
                "  thread {thread} at {rip} {location}, {executed} instructions executed"
            )?;
        }
        if self.expectation.is_some() {
            self.write_frames(out)?;
        }
        if let Some(untrue) = &self.untrue {
            writeln!(out, "  {BAD}wrong:{BAD:#} {untrue}")?;
        }
        match self.executed {
            Some(at) => {
                writeln!(
                    out,
                    "  {DIM}see: clrsim trace {file} --thread {thread} --from {at}{DIM:#}"
                )
            }
            None => Ok(()),
        }
    }

    fn json(&self) -> serde_json::Result<Box<RawValue>> {
        to_raw_value(self)
    }
}

impl FailedWalk {
    /// Writes expected and found frames side by side.
    fn write_frames(&self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        let pair = |(n, row): (usize, &FrameRow)| Pair {
            is_wrong: !row.wrong.is_empty(),
            n: Some(n),
            expected: row.expected.as_ref().map_or_else(|| "-".to_owned(), ExpectedWords::text),
            found: row.found.as_ref().map_or_else(|| "-".to_owned(), FoundWords::text),
        };
        let mut pairs: Vec<_> = self.frames.iter().enumerate().map(pair).collect();
        pairs.extend(self.ends.as_ref().map(|Ends { expected, found, is_wrong }| Pair {
            is_wrong: *is_wrong,
            n: None,
            expected: format!("ends: {expected}"),
            found: format!("ends: {found}"),
        }));
        write_pairs(&pairs, out)
    }
}

impl ExpectedWords {
    fn text(&self) -> String {
        let name = self.function.as_deref().unwrap_or("code of no function");
        sentence(name, self.trust, &self.registers)
    }
}

impl FoundWords {
    fn text(&self) -> String {
        let name = if self.function.is_none() && self.location != OUTSIDE {
            format!("{} (no function)", self.location)
        } else {
            self.location.clone()
        };
        let trust = self.trust.or(Some("no caller"));
        let text = sentence(&name, trust, &self.registers);
        format!("{text}, rip {}, rsp {}", self.rip, self.rsp)
    }
}

fn sentence(name: &str, trust: Option<&str>, registers: &[Register]) -> String {
    let mut text = name.to_owned();
    if let Some(trust) = trust {
        text = format!("{text}, {trust}");
    }
    for Register { register, value } in registers {
        text = format!("{text}, {register} {value}");
    }
    text
}
