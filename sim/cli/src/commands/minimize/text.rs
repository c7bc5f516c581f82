//! Texts, and the inputs of three fuzz targets, made smaller without another program.

use super::how_to_go_on;
use super::input::{of_case, of_staged, target};
use super::keep::Keep;
use crate::args::{FuzzTarget, MinimizeArgs};
use crate::commands::generate::{GENERATED, fitting};
use crate::commands::history::{search, write_smallest};
use crate::commands::smaller::{Output, head, smaller_text, write_text};
use crate::input::Source;
use crate::input::program::ProgramFixture;
use crate::interrupt::is_interrupted;
use crate::render::console::Console;
use crate::render::error::CliError;
use crate::render::progress::Progress;
use crate::{FAILED, PASSED};
use clr_generate::minimize as smallest;
use clr_runtime::generation::Generations;
use clr_scenario::Scenario;

/// Head of a text with expectations that the model wrote.
const MODELLED: &str = "\
// Its expectations are what the model says, and no evidence of what a runtime does.\n";

/// Makes the text that `args` name, or the text of a fuzzer's bytes, smaller.
pub(super) fn minimize(
    source: &Source,
    args: &MinimizeArgs,
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    let on = args.on.unwrap_or(Generations::ALL);
    let wanted = args.hresult.is_some() || args.clause.is_some();
    if source.is_program()
        && !wanted
        && let Some(code) = of_history(source, args, on, console)?
    {
        return Ok(code);
    }
    let target = if source.is_program() { FuzzTarget::FixtureText } else { target(source, args) };
    let is_text = target == FuzzTarget::FixtureText;
    let (scenario, keep) = match target {
        FuzzTarget::FixtureText => {
            let scenario = Scenario::parse(&source.read_text()?)
                .map_err(|error| error.with_name(source.name.clone()))?;
            let keep = Keep::failure(&scenario, on);
            (scenario, keep)
        }
        FuzzTarget::Snapshot => {
            let (scenario, generation) = of_staged(source)?;
            let keep = Keep::outcome(&scenario, generation);
            (scenario, keep)
        }
        FuzzTarget::Scenario => {
            let (scenario, generation) = of_case(source)?;
            let model = Keep::Model(generation);
            let is_wrong = model.holds(&scenario, on);
            let ending = || Keep::outcome(&scenario, generation);
            let keep = if is_wrong { Some(model) } else { ending() };
            (scenario, keep)
        }
        other => {
            let target = other.name();
            return Err(source.error(format_args!(
                "is an input of {target}, which needs a command that fails on it: \
                 clrsim minimize INPUT -o FILE -- path/of/built/{target}"
            )));
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
    let holds = |small: &Scenario| {
        // Expectations that somebody wrote are evidence: they are kept or dropped, never changed.
        !is_interrupted()
            && keep.holds(small, on)
            && (!is_text || !wanted || has_expectations_of(&scenario, small))
    };
    console.watch_interrupts();
    let small = smallest(scenario.clone(), holds);
    let output = Output::from(args);
    if is_text {
        let candidates = candidates(&original, small.clone(), &keep);
        let smaller = (small != scenario).then(|| {
            smaller_text(&original, &candidates, |text| {
                Scenario::parse(text).is_ok_and(|small| keep.holds(&small, on))
            })
        });
        write_text(output, &original, smaller.flatten().as_deref(), console)?;
        return how_to_go_on(args, console);
    }
    // Bytes have no expectations: the text gets those of the model, or what the simulator gives.
    let mut small = small;
    let mut text = head(&original);
    if let Keep::Model(generation) = keep {
        small.expect_predictions(generation).map_err(|error| source.error(error))?;
        text += MODELLED;
    } else {
        let fits = fitting(&small);
        small.expect_results(fits);
        text += GENERATED;
    }
    text += &small.to_string();
    write_text(output, &original, Some(&text), console)?;
    how_to_go_on(args, console)
}

/// Returns the smaller text in its forms, the one that says most first.
fn candidates(original: &str, mut small: Scenario, keep: &Keep) -> Vec<String> {
    let head = head(original);
    let mut candidates = Vec::new();
    if let Keep::Ending(ending) = keep {
        small.expect_what_holds();
        let mut expecting = small.clone();
        if expecting.expect_result_of(ending.on, |made| ending.is_of(made)) {
            candidates.push(format!("{head}{GENERATED}{expecting}"));
        }
    }
    let small = small.to_string();
    candidates.extend([head + &small, small]);
    candidates
}

/// Returns true if each call has the expectations of a call of the original text.
fn has_expectations_of(original: &Scenario, small: &Scenario) -> bool {
    let expected: Vec<_> = original.snapshots().map(|at| &at.call.expect).collect();
    small.snapshots().all(|at| expected.contains(&&at.call.expect))
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
            let found = found.map_err(|error| source.error(scenario.named(error)))?;
            let Some(failure) = found.report.failure else { continue };
            let output = Output::from(args);
            if write_smallest(&fixture, generation, settings, &failure, output, console)? {
                return Ok(Some(PASSED));
            }
        }
    }
    Ok(None)
}
