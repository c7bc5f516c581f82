//! `clrsim generate`: texts made at random.

use crate::PASSED;
use crate::args::{GenerateArgs, GenerateKind};
use crate::console::{Console, GOOD, Trouble};
use crate::input::{PROGRAM, slashed, write_new};
use clr_sim::code::FunctionId;
use clr_sim::generation::{Generation, Generations};
use clr_sim::scenario::{
    Expectation, ExpectedFrame, FoundWalk, Scenario, SnapshotReport, Stop, StopAt, StopReport,
    WalkEnd,
};
use clr_sim::strategy::{Seeded, Size, program, staged_call};
use clr_walker::profiling::SnapshotFlags;

/// How many stops a program gets.
const STOPS: u64 = 3;

/// Prints or writes what `args` name; the exit code.
pub(crate) fn generate(args: &GenerateArgs, console: &mut Console<'_>) -> Result<u8, Trouble> {
    let made = match args.kind {
        GenerateKind::Stack => stack(args.seed),
        GenerateKind::Program => a_program(args.seed),
    };
    let scenario = made.ok_or_else(|| {
        let name = format!("--seed {}", args.seed);
        Trouble::with(&name, "makes what cannot be set up; take another number")
    })?;
    let kind = match args.kind {
        GenerateKind::Stack => "stack",
        GenerateKind::Program => "program",
    };
    let head = format!("// Made by clrsim generate --kind {kind} --seed {}.\n", args.seed);
    let text = head + GENERATED + &scenario.to_string();
    let Some(path) = &args.output else {
        write!(console.out, "{text}")?;
        return Ok(PASSED);
    };
    let name = slashed(path);
    if !name.ends_with(PROGRAM) {
        return Err(Trouble::with(&name, "texts are called *.kdl"));
    }
    write_new(path, &text)?;
    writeln!(console.out, "{GOOD}written{GOOD:#}: {name}")?;
    Ok(PASSED)
}

/// What texts say whose expectations nobody has written.
pub(crate) const GENERATED: &str = "\
// Its expectations are what the simulator gave, and no evidence of what a runtime does.\n";

/// The generations that a text can be for: those that have its Frames, where its rows fit.
pub(crate) fn fitting(scenario: &Scenario) -> Generations {
    let fits = |generation: &Generation| {
        let mut one = scenario.clone();
        one.expect_what_is_found(Generations::of(&[*generation]));
        let is_right = one.run_on(*generation).is_ok_and(|reports| {
            !reports.is_empty() && reports.iter().all(SnapshotReport::is_right)
        });
        is_right && Scenario::parse(&one.to_string()).is_ok_and(|read| read == one)
    };
    let all: Vec<_> = Generation::ALL.into_iter().filter(fits).collect();
    Generations::of(&all)
}

fn stack(seed: u64) -> Option<Scenario> {
    let mut call = staged_call(&mut Seeded::new(seed));
    let mut scenario = Scenario::of_staged(&call)?;
    let mut on = fitting(&scenario);
    if on.is_empty() {
        // No expectation can say what becomes of some registers there.
        call.stage.overwritten.clear();
        call.flags = SnapshotFlags(call.flags.0 & !SnapshotFlags::REGISTER_CONTEXT.0);
        scenario = Scenario::of_staged(&call)?;
        on = fitting(&scenario);
    }
    scenario.expect_what_is_found(on);
    (!on.is_empty()).then_some(scenario)
}

/// A program, stopped at some places on its way.
fn a_program(seed: u64) -> Option<Scenario> {
    let mut scenario = Scenario::new(program(&mut Seeded::new(seed), &Size::SMALL));
    let stop =
        |at| Stop { thread: 0, at, expect: Vec::new(), others: Vec::new(), snapshots: Vec::new() };
    scenario.stops = vec![stop(StopAt::End)];
    let executed = match scenario.run().ok()?.first()? {
        StopReport { reached: Ok(reached), .. } => reached.executed,
        StopReport { reached: Err(_), .. } => return None,
    };
    let places = (1..=STOPS).map(|part| executed.saturating_mul(part) / (STOPS + 1));
    scenario.stops = places.map(|after| stop(StopAt::After(after))).collect();
    expect_walks(&mut scenario);
    Some(scenario)
}

/// Lets each stop expect what a walk by precise rules finds there.
fn expect_walks(scenario: &mut Scenario) {
    let Ok(reports) = scenario.run() else { return };
    for report in reports {
        let Ok(reached) = report.reached else { continue };
        let walks = reached.walks.iter().map(|walk| expectation(&walk.found)).collect();
        if let Some(stop) = scenario.stops.get_mut(report.stop) {
            stop.expect = walks;
        }
    }
}

fn expectation(found: &FoundWalk) -> Expectation {
    let frame = |function: Option<FunctionId>, trust| ExpectedFrame {
        function,
        trust,
        registers: Vec::new(),
    };
    let frames = found.frames.iter().map(|found| frame(found.function, found.trust));
    Expectation {
        frames: frames.collect(),
        ends: match found.end.kind() {
            WalkEnd::Any => WalkEnd::Base,
            end => end,
        },
        ..Expectation::default()
    }
}
