//! `clrsim minimize`: finds the smallest text that still fails, or has the same result.

mod keep;

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
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::{ExpectedSnapshot, Provenance, Scenario};
use keep::Keep;
use std::path::{Component, Path};

/// Head of a text with expectations that the model wrote.
const MODELLED: &str = "\
// Its expectations are what the model says, and no evidence of what a runtime does.\n";

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
    let keep = if wanted {
        Keep::ending(&scenario, on, args.hresult.as_deref(), args.clause)
    } else {
        keep
    };
    let Some(keep) = keep.filter(|keep| keep.holds(&scenario, on)) else {
        let what = if wanted { "no snapshot ends so" } else { "nothing in it fails" };
        writeln!(console.out, "{}: {what}, so there is nothing to keep", source.name)?;
        return Ok(FAILED);
    };
    let original = if is_text { source.read_text()? } else { scenario.to_string() };
    let before = original.lines().count();
    let holds = |small: &Scenario| {
        // Expectations that somebody wrote are evidence: they are kept or dropped, never changed.
        keep.holds(small, on) && (!is_text || !wanted || has_expectations_of(&scenario, small))
    };
    let mut small = smallest(scenario.clone(), holds);
    // Failures differ from expectations that somebody wrote; other texts have none of that kind.
    let mut head = format!("// Made smaller by clrsim minimize, from {before} lines.\n");
    match &keep {
        Keep::Model(generation) => {
            small.expect_predictions(*generation).map_err(|error| source.error(error))?;
            head += MODELLED;
        }
        Keep::Ending(ending) if is_text => {
            small.expect_what_holds();
            let mut expecting = small.clone();
            let is_new = expecting.expect_result_of(ending.on, |made| ending.is_of(made));
            if is_new && expecting.to_string().lines().count() <= before {
                small = expecting;
                head += GENERATED;
            }
        }
        _ if !is_text => {
            let fits = fitting(&small);
            small.expect_results(fits);
            head += GENERATED;
        }
        _ => {}
    }
    let mut text = head + &small.to_string();
    if small == scenario && is_text {
        text = original;
    }
    args.replacing.write(&args.output, &text)?;
    let after = text.lines().filter(|line| !line.starts_with("//")).count();
    writeln!(
        console.out,
        "{GOOD}written{GOOD:#}: {HEAD}{name}{HEAD:#}, {after} lines of {before}"
    )?;
    if let Some(dropped) = dropped(&scenario, &small) {
        writeln!(console.out, "  dropped: {dropped}")?;
    }
    Ok(PASSED)
}

/// Returns true if each call has the expectations of a call of the original text.
fn has_expectations_of(original: &Scenario, small: &Scenario) -> bool {
    let expected: Vec<_> = original.snapshots().map(|at| &at.call.expect).collect();
    small.snapshots().all(|at| expected.contains(&&at.call.expect))
}

/// Returns the numbers of parts that a smaller text has not any more; `None` if it has all.
fn dropped(original: &Scenario, small: &Scenario) -> Option<String> {
    let [before, after] = [original, small].map(|scenario| {
        let calls = || scenario.snapshots().map(|at| at.call);
        let expectations = || calls().flat_map(|call| &call.expect);
        let is_observed = |one: &&ExpectedSnapshot| matches!(one.from, Provenance::Observed(_));
        [
            (["function", "functions"], scenario.program.functions.len()),
            (["thread", "threads"], scenario.threads.len()),
            (["stop", "stops"], scenario.stops.len()),
            (
                ["node of the stack", "nodes of the stack"],
                scenario.stack.as_ref().map_or(0, |stack| stack.items.len()),
            ),
            (["snapshot", "snapshots"], calls().count()),
            (["mixed walk", "mixed walks"], scenario.mixed_walks().count()),
            (["search", "searches"], scenario.explore.len()),
            (["expectation", "expectations"], expectations().count()),
            (["of them observed"; 2], expectations().filter(is_observed).count()),
        ]
    });
    let gone = before.iter().zip(after).filter(|((_, before), (_, after))| after < before);
    let gone: Vec<_> = gone
        .map(|(([one, many], before), (_, after))| {
            let count = before - after;
            format!("{count} {}", if count == 1 { one } else { many })
        })
        .collect();
    (!gone.is_empty()).then(|| gone.join(", "))
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
