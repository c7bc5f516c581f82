//! `clrsim generate`: texts made at random.

use crate::PASSED;
use crate::args::{GenerateArgs, GenerateKind};
use crate::output::text_name;
use crate::render::console::{Console, GOOD};
use crate::render::error::CliError;
use clap::ValueEnum as _;
use clap::builder::PossibleValue;
use clr_codegen::FunctionIndex;
use clr_generate::world::WorldTurn;
use clr_generate::{
    Choices as _, Seeded, Size, WorldProgram, program, synthetic_call, world_call, world_program,
};
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::{
    Expectation, ExpectedFrame, ExpectedSnapshot, FoundWalk, Scenario, SeedSource, SnapshotReport,
    SnapshotSeed, Stop, StopAt, StopReport, WalkEnd, world_stop,
};
use clr_walker::profiling::SnapshotFlags;
use clr_world::{StepEvent, Waiting};

/// Number of stops of a generated program.
const STOPS: u64 = 3;
/// Largest number of functions of a readable program, and the number of tries to draw one.
const FUNCTIONS: (usize, u32) = (6, 100);
/// Number of tries to draw a program that a text can describe.
const TRIES: u32 = 20;
/// Limit of the steps that measure the length of a thread.
const STEPS: u32 = 5000;
/// Limit of the steps from a chosen place to one that a text can name.
const FURTHER: u32 = 40;

/// Prints or writes the text that `args` describe and returns the exit code.
pub(crate) fn generate(args: &GenerateArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let made = match args.kind {
        GenerateKind::Scenario => {
            let mut choices = Seeded::new(args.seed);
            (0..TRIES).find_map(|_| in_world(&mut choices))
        }
        GenerateKind::Stack => stack(args.seed),
        GenerateKind::Program => a_program(args.seed),
    };
    let scenario = made.ok_or_else(|| {
        let name = format!("--seed {}", args.seed);
        CliError::new(&name, "makes what cannot be set up; take another number")
    })?;
    let kind = args.kind.to_possible_value();
    let kind = kind.as_ref().map_or("", PossibleValue::get_name);
    let head = format!("// Made by clrsim generate --kind {kind} --seed {}.\n", args.seed);
    let text = head + GENERATED + &scenario.to_string();
    let Some(path) = &args.output.path else {
        write!(console.out, "{text}")?;
        return Ok(PASSED);
    };
    let name = text_name(path)?;
    args.output.replacing.write(path, &text)?;
    writeln!(console.out, "{GOOD}written{GOOD:#}: {name}")?;
    Ok(PASSED)
}

/// Head of a text with expectations that the simulator wrote.
pub(crate) const GENERATED: &str = "\
// Its expectations are what the simulator gave, and no evidence of what a runtime does.\n";

/// Returns the generations that a text can be for: those with its Frames, where its rows fit.
fn fitting(scenario: &Scenario) -> Generations {
    let fits = |generation: &Generation| {
        let mut one = scenario.clone();
        one.expect_results(Generations::of(&[*generation]));
        let is_right = one.run_on(*generation).is_ok_and(|reports| {
            !reports.is_empty() && reports.iter().all(SnapshotReport::is_right)
        });
        is_right && Scenario::parse(&one.to_string()).is_ok_and(|read| read == one)
    };
    let all: Vec<_> = Generation::ALL.into_iter().filter(fits).collect();
    Generations::of(&all)
}

/// Generates a program with threads that goes through the runtime, with calls at some stops.
/// Returns `None` if no text can name the stops.
fn in_world(choices: &mut Seeded) -> Option<Scenario> {
    let is_readable = |world: &WorldProgram| world.program.functions.len() <= FUNCTIONS.0;
    let mut drawn = (0..FUNCTIONS.1).map(|_| world_program(choices));
    let world = drawn.find(is_readable)?;
    let lengths: Vec<_> = (0..world.threads.len()).map(|thread| length(&world, thread)).collect();
    let mut scenario = Scenario::of_world(&world);
    for _ in 0..choices.between(1, STOPS as u32) {
        let mut calls = vec![world_call(choices, &world.threads)];
        let target = calls.first()?.target;
        if choices.chance(1, 2) {
            let mut call = world_call(choices, &world.threads);
            call.target = target;
            calls.push(call);
        }
        let mut turns = Vec::new();
        for (thread, length) in lengths.iter().enumerate().filter(|(one, _)| *one != target) {
            if choices.chance(1, 2) {
                let steps = choices.between(1, length.saturating_sub(1));
                turns.push(WorldTurn { thread, steps });
            }
        }
        let length = *lengths.get(target)?;
        let steps = choices.between(1, length.saturating_sub(1));
        // A text cannot name every place, but one within a few steps.
        let stop = (steps..steps + FURTHER).find_map(|steps| {
            let mut turns = turns.clone();
            turns.push(WorldTurn { thread: target, steps });
            world_stop(&world, &turns, &calls).filter(|stop| stop.at != StopAt::End)
        });
        scenario.stops.extend(stop);
    }
    for call in scenario.calls_mut() {
        if let Some(seed) = &mut call.seed
            && let SeedSource::Bytes(_) = seed.from
        {
            // Single registers would hold for one runtime only.
            *seed = SnapshotSeed::new(SeedSource::TopManaged);
        }
    }
    expect_shapes(&mut scenario);
    let is_text = || Scenario::parse(&scenario.to_string()).is_ok_and(|read| read == scenario);
    (!scenario.stops.is_empty() && is_text()).then_some(scenario)
}

/// Returns the number of steps that a thread does alone, up to the first wait for another thread.
fn length(world: &WorldProgram, thread: usize) -> u32 {
    let Ok(build) = world.build() else { return 1 };
    let Ok(mut world) = build.world(&world.threads) else { return 1 };
    let mut waiting = Waiting::default();
    let mut ends = |event| {
        matches!(event, Err(_) | Ok(StepEvent::Ended))
            || event.is_ok_and(|it| waiting.is_for_others(it))
    };
    (1..STEPS).find(|_| ends(world.step(thread))).unwrap_or(STEPS)
}

/// Makes each call expect its results on every runtime that can make it: the functions and their
/// order. Addresses of code differ on each runtime, and are left out with everything that no
/// expectation can say.
fn expect_shapes(scenario: &mut Scenario) {
    scenario.expect_results(Generations::ALL);
    for call in scenario.calls_mut() {
        let mut expect: Vec<ExpectedSnapshot> = Vec::new();
        for mut one in std::mem::take(&mut call.expect) {
            for frame in &mut one.frames {
                frame.registers.clear();
                let label = frame.label.take().unwrap_or_default();
                let function = label.rsplit_once("+0x").map(|(function, _)| function.to_owned());
                frame.label = function;
            }
            let same = expect
                .iter_mut()
                .find(|other| **other == ExpectedSnapshot { on: other.on, ..one.clone() });
            match same {
                Some(same) => same.on = same.on.with(one.on),
                None => expect.push(one),
            }
        }
        call.expect = expect;
    }
    let mut wrong = vec![Generations::NONE; scenario.snapshots().count()];
    for generation in Generation::ALL {
        let each = scenario.each_on(generation);
        let right: Vec<_> = each
            .into_iter()
            .filter(|(_, made)| made.as_ref().is_ok_and(SnapshotReport::is_right))
            .map(|(at, _)| (at.stop, at.snapshot))
            .collect();
        for (at, wrong) in scenario.snapshots().zip(&mut wrong) {
            if !right.contains(&(at.stop, at.snapshot)) {
                *wrong = wrong.with(Generations::of(&[generation]));
            }
        }
    }
    for (call, wrong) in scenario.calls_mut().zip(wrong) {
        for one in &mut call.expect {
            one.on = one.on.without(wrong);
        }
        call.expect.retain(|one| !one.on.is_empty());
    }
    for stop in &mut scenario.stops {
        stop.snapshots.retain(|call| !call.expect.is_empty());
    }
    scenario.stops.retain(|stop| !stop.snapshots.is_empty());
}

fn stack(seed: u64) -> Option<Scenario> {
    let mut call = synthetic_call(&mut Seeded::new(seed));
    let mut scenario = Scenario::from_call(&call)?;
    let mut on = fitting(&scenario);
    if on.is_empty() {
        // Some registers there have no value that an expectation could name.
        call.target.overwritten.clear();
        call.flags = SnapshotFlags(call.flags.0 & !SnapshotFlags::REGISTER_CONTEXT.0);
        scenario = Scenario::from_call(&call)?;
        on = fitting(&scenario);
    }
    scenario.expect_results(on);
    (!on.is_empty()).then_some(scenario)
}

/// Generates a program without a runtime, with some stops.
fn a_program(seed: u64) -> Option<Scenario> {
    let mut scenario = Scenario::new(program(&mut Seeded::new(seed), &Size::SMALL));
    let stop = |at| Stop {
        thread: 0,
        at,
        expect: Vec::new(),
        others: Vec::new(),
        snapshots: Vec::new(),
        mixed_walks: Vec::new(),
    };
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

/// Makes each stop expect the result of a walk by precise rules.
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
    let frame = |function: Option<FunctionIndex>, trust| ExpectedFrame {
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
