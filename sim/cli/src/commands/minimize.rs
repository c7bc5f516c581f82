//! `clrsim minimize`: finds the smallest text that still fails, or has the same result.

use crate::args::{FuzzTarget, MinimizeArgs};
use crate::commands::generate::{GENERATED, fitting};
use crate::commands::history::{search, write_smallest};
use crate::input::program::ProgramFixture;
use crate::input::{PROGRAM, Source, slashed};
use crate::render::console::{Console, GOOD, HEAD};
use crate::render::error::CliError;
use crate::render::progress::Progress;
use crate::{FAILED, PASSED};
use arbitrary::{Arbitrary as _, Unstructured};
use clap::ValueEnum as _;
use clr_generate::{SyntheticCall, WorldCase, minimize as smallest};
use clr_runtime::Outcome;
use clr_runtime::clause::Clause;
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::{Scenario, SnapshotDifference, SnapshotReport};
use std::mem::discriminant;
use std::path::{Component, Path};

/// Head of a text with expectations that the model wrote.
const MODELLED: &str = "\
// Its expectations are what the model says, and no evidence of what a runtime does.\n";

/// The property that a smaller text must keep.
enum Keep {
    /// A snapshot with this result, or that shows this clause, or both.
    Ending { result: Option<String>, clause: Option<Clause> },
    /// Differences of these kinds and of no other.
    Differences(Vec<SnapshotDifference>),
    /// A walk of a stop that is not as expected, or a stop that is not reached.
    Walk,
    /// A call whose result differs from the model's, on this generation.
    Model(Generation),
}

/// Makes the text that `args` name smaller and returns the exit code.
pub(crate) fn minimize(args: &MinimizeArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let source = Source::find(&args.input)?;
    let name = slashed(&args.output);
    if !name.ends_with(PROGRAM) {
        return Err(CliError::new(&name, "texts are called *.kdl"));
    }
    args.replacing.check(&args.output)?;
    let on = args.on.unwrap_or(Generations::ALL);
    let wanted = args.hresult.is_some() || args.clause.is_some();
    if source.is_program()
        && !wanted
        && let Some(code) = of_history(&source, args, on, console)?
    {
        return Ok(code);
    }
    let ending = || Keep::Ending { result: args.hresult.clone(), clause: args.clause };
    let target = if source.is_program() { None } else { Some(target(&source, args)) };
    let is_text = matches!(target, None | Some(FuzzTarget::FixtureText));
    let (scenario, keep) = match target {
        None => {
            let scenario = ProgramFixture::read(&source)?.scenario;
            let keep = Keep::failure(&scenario, on);
            (scenario, keep)
        }
        Some(FuzzTarget::FixtureText) => {
            let scenario = Scenario::parse(&source.read_text()?)
                .map_err(|error| error.with_name(source.name.clone()))?;
            let keep = Keep::failure(&scenario, on);
            (scenario, keep)
        }
        Some(FuzzTarget::Snapshot) => {
            let (scenario, generation) = of_staged(&source)?;
            let keep = Keep::outcome(&scenario, generation);
            (scenario, keep)
        }
        Some(FuzzTarget::Scenario) => {
            let (scenario, generation) = of_case(&source)?;
            let model = Keep::Model(generation);
            let is_wrong = model.holds(&scenario, on);
            let ending = || Keep::outcome(&scenario, generation);
            let keep = if is_wrong { Some(model) } else { ending() };
            (scenario, keep)
        }
    };
    let keep = if wanted { Some(ending()) } else { keep };
    let Some(keep) = keep.filter(|keep| keep.holds(&scenario, on)) else {
        let what = if wanted { "no snapshot ends so" } else { "nothing in it fails" };
        writeln!(console.out, "{}: {what}, so there is nothing to keep", source.name)?;
        return Ok(FAILED);
    };
    let original = if is_text { source.read_text()? } else { scenario.to_string() };
    let before = original.lines().count();
    let mut small = smallest(scenario, |scenario: &Scenario| keep.holds(scenario, on));
    // Failures differ from expectations that somebody wrote; other texts have none of that kind.
    let mut head = format!("// Made smaller by clrsim minimize, from {before} lines.\n");
    if let Keep::Model(generation) = keep {
        small.expect_predictions(generation).map_err(|error| source.error(error))?;
        head += MODELLED;
    } else if !is_text || wanted {
        let fits = fitting(&small);
        small.expect_results(fits);
        head += GENERATED;
    }
    let text = head + &small.to_string();
    args.replacing.write(&args.output, &text)?;
    let after = small.to_string().lines().count();
    writeln!(
        console.out,
        "{GOOD}written{GOOD:#}: {HEAD}{name}{HEAD:#}, {after} lines of {before}"
    )?;
    Ok(PASSED)
}

/// Makes a text smaller for its first search with a failed history, expected or not. Returns `None`
/// if there is no such search, or the text has snapshots or walks.
fn of_history(
    source: &Source,
    args: &MinimizeArgs,
    on: Generations,
    console: &mut Console<'_>,
) -> Result<Option<u8>, CliError> {
    let fixture = ProgramFixture::read(source)?;
    let scenario = &fixture.scenario;
    if scenario.snapshots().next().is_some() || scenario.mixed_walks().next().is_some() {
        return Ok(None);
    }
    for settings in &scenario.explore {
        for generation in settings.generations().filter(|generation| on.contains(*generation)) {
            let message = generation.to_string();
            let progress = Progress::with_rate(console.progress, settings.schedules, message);
            let found = search(scenario, generation, &settings.budget(), None, &progress);
            progress.finish();
            let found = found.map_err(|error| source.error(error))?;
            let Some(failure) = found.failure else { continue };
            if write_smallest(
                &fixture,
                generation,
                settings,
                &failure,
                (&args.output, args.replacing),
                console,
            )? {
                return Ok(Some(PASSED));
            }
        }
    }
    Ok(None)
}

/// Returns the fuzz target of the input: that of the arguments, or of the folder, or of the
/// content.
fn target(source: &Source, args: &MinimizeArgs) -> FuzzTarget {
    let folders = args.input.parent().into_iter().flat_map(Path::components);
    let named = |folder: Component<'_>| {
        FuzzTarget::from_str(&folder.as_os_str().to_string_lossy(), false).ok()
    };
    if let Some(target) = args.target.or_else(|| folders.rev().find_map(named)) {
        return target;
    }
    let is_text = source.read_text().is_ok_and(|text| Scenario::parse(&text).is_ok());
    if is_text { FuzzTarget::FixtureText } else { FuzzTarget::Snapshot }
}

/// Decodes a fuzzer's bytes to a program with a call, and the runtime.
fn of_case(source: &Source) -> Result<(Scenario, Generation), CliError> {
    let bytes = source.read()?;
    let case = WorldCase::arbitrary(&mut Unstructured::new(&bytes))
        .map_err(|error| source.error(error))?;
    let scenario =
        Scenario::of_case(&case).ok_or_else(|| source.error("has what no text can say"))?;
    Ok((scenario, case.program.generation))
}

/// Decodes a fuzzer's bytes to a thread with a call, and the runtime.
fn of_staged(source: &Source) -> Result<(Scenario, Generation), CliError> {
    let bytes = source.read()?;
    let call = SyntheticCall::arbitrary(&mut Unstructured::new(&bytes))
        .map_err(|error| source.error(error))?;
    call.target.build().map_err(|error| source.error(error))?;
    let scenario =
        Scenario::from_call(&call).ok_or_else(|| source.error("has what no text can say"))?;
    Ok((scenario, call.target.generation))
}

/// Returns the result of a call without numbers.
fn ending(outcome: Outcome) -> String {
    match outcome {
        Outcome::Returned(result) => result.to_string(),
        Outcome::ProcessKilled { .. } => "killed".to_owned(),
        Outcome::AccessViolation { .. } => "access-violation".to_owned(),
        Outcome::Blocked => "blocked".to_owned(),
        Outcome::Endless => "endless".to_owned(),
    }
}

impl Keep {
    /// Returns the failure of a text, if it has one.
    fn failure(scenario: &Scenario, on: Generations) -> Option<Self> {
        let mut kinds: Vec<SnapshotDifference> = Vec::new();
        for difference in differences(scenario, on) {
            if kinds.iter().all(|kind| discriminant(kind) != discriminant(&difference)) {
                kinds.push(difference);
            }
        }
        if !kinds.is_empty() {
            return Some(Self::Differences(kinds));
        }
        Self::Walk.holds(scenario, on).then_some(Self::Walk)
    }

    /// Returns the result of the only call of a fuzzer's input.
    fn outcome(scenario: &Scenario, on: Generation) -> Option<Self> {
        let made = scenario.run_on(on).ok()?;
        let result = Some(ending(made.first()?.found.outcome));
        Some(Self::Ending { result, clause: None })
    }

    fn holds(&self, scenario: &Scenario, on: Generations) -> bool {
        match self {
            Self::Ending { result, clause } => ends(scenario, on, result.as_deref(), *clause),
            Self::Differences(kinds) => {
                // A difference of another kind is another failure.
                let found = differences(scenario, on);
                let are_in = |these: &[SnapshotDifference], those: &[SnapshotDifference]| {
                    let is_in = |one| those.iter().any(|other| discriminant(other) == one);
                    these.iter().map(discriminant).all(is_in)
                };
                are_in(kinds, &found) && are_in(&found, kinds)
            }
            Self::Model(generation) => {
                scenario.against_model(*generation).is_ok_and(|wrong| !wrong.is_empty())
            }
            Self::Walk => scenario.run().is_ok_and(|reports| {
                let mut walks = reports.iter().filter_map(|report| report.reached.as_ref().ok());
                walks.any(|reached| reached.walks.iter().any(|walk| !walk.is_right()))
            }),
        }
    }
}

/// Returns all differences from the expectations.
fn differences(scenario: &Scenario, on: Generations) -> Vec<SnapshotDifference> {
    let each = on.iter().flat_map(|generation| scenario.each_on(generation));
    let made = each.filter_map(|(_, made)| made.ok());
    made.flat_map(|made| made.differences).collect()
}

/// Returns true if a snapshot has this result and shows the clause.
fn ends(
    scenario: &Scenario,
    on: Generations,
    result: Option<&str>,
    clause: Option<Clause>,
) -> bool {
    on.iter().any(|generation| {
        let fits = |report: &SnapshotReport| {
            result.is_none_or(|result| ending(report.found.outcome) == result)
        };
        let Some(clause) = clause else {
            let each = scenario.each_on(generation);
            return each.iter().filter_map(|(_, made)| made.as_ref().ok()).any(fits);
        };
        let each = scenario.explain_each_on(generation);
        each.iter().filter_map(|(_, made)| made.as_ref().ok()).any(|made| {
            let mut clauses = made.story.iter().flat_map(|line| &line.clauses);
            fits(&made.report) && clauses.any(|named| *named == clause)
        })
    })
}
