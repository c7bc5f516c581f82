//! `clrsim minimize`: finds the smallest text that still fails, or has the same result.

mod keep;

use crate::args::{Jobs, MinimizeArgs};
use crate::commands::generate::GENERATED;
use crate::commands::history::{Searched, search, write_smallest};
use crate::commands::smaller::{Output, compact, head, is_smaller, smaller_text, write_text};
use crate::input::program::ProgramFixture;
use crate::input::{Source, slashed};
use crate::interrupt::{self, Cut, Patience};
use crate::output::{Replacing, text_name};
use crate::render::console::Console;
use crate::render::error::CliError;
use crate::{FAILED, INCOMPLETE, PASSED};
use clr_generate::minimize as smallest;
use clr_runtime::generation::Generations;
use clr_scenario::Scenario;
use keep::Keep;

/// Makes the text that `args` name smaller and returns the exit code.
pub(crate) fn minimize(args: &MinimizeArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let source = &Source::find(&args.scenario.path)?;
    text_name(&args.output)?;
    Replacing::check_is_not(&args.output, source)?;
    args.replacing.check(&args.output)?;
    let on = args.on.or_all();
    let wanted = args.hresult.is_some() || args.clause.is_some();
    if source.is_program()
        && !wanted
        && let Some(code) = of_history(source, args, on, console)?
    {
        return Ok(code);
    }
    let original = source.read_text()?;
    let scenario =
        Scenario::parse(&original).map_err(|error| error.with_name(source.name.clone()))?;
    let keep = if wanted {
        Keep::ending(&scenario, on, args.hresult.as_deref(), args.clause)
    } else {
        Keep::failure(&scenario, on)
    };
    let Some(keep) = keep.filter(|keep| keep.holds(&scenario, on)) else {
        let what = if wanted { "no snapshot ends so" } else { "nothing in it fails" };
        writeln!(console.out, "{}: {what}, so there is nothing to keep", source.name)?;
        return Ok(FAILED);
    };
    let patience = Patience::new(args.timeout.limit());
    let holds = |small: &Scenario| {
        // Expectations that somebody wrote are evidence: they are kept or dropped, never changed.
        patience.cut().is_none()
            && keep.holds(small, on)
            && (!wanted || has_expectations_of(&scenario, small))
    };
    console.watch_interrupts();
    let small = smallest(scenario.clone(), holds);
    let candidates = candidates(&original, small.clone(), &keep);
    let smaller = (small != scenario).then(|| {
        smaller_text(&original, &candidates, |text| {
            Scenario::parse(text).is_ok_and(|small| keep.holds(&small, on))
        })
    });
    write_text(Output::from(args), &original, smaller.flatten().as_deref(), console)?;
    how_to_go_on(patience.cut(), args, console)
}

/// Returns the exit code of a search that has written its result, and prints how to go on if it was ended early.
fn how_to_go_on(
    cut: Option<Cut>,
    args: &MinimizeArgs,
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    let (why, code) = match cut {
        None => return Ok(PASSED),
        Some(Cut::Interrupted) => ("interrupted", interrupt::INTERRUPTED),
        Some(Cut::OutOfTime) => ("out of time", INCOMPLETE),
    };
    let output = slashed(&args.output);
    writeln!(
        console.out,
        "{why}: {output} is what was found so far; the same command with it as its input goes on"
    )?;
    Ok(code)
}

/// Returns the smaller text in its forms, the one that says most first.
fn candidates(original: &str, mut small: Scenario, keep: &Keep) -> Vec<String> {
    let head = head(original);
    let mut candidates = Vec::new();
    if let Keep::Ending(ending) = keep {
        small.expect_what_holds();
        let mut expecting = small.clone();
        if expecting.expect_result_of(ending.on, |made| ending.is_of(made)) {
            let expecting = expecting.to_string();
            candidates.push(format!("{head}{GENERATED}{expecting}"));
            candidates.push(format!("{head}{GENERATED}{}", compact(&expecting)));
        }
    }
    let small = small.to_string();
    // Lines of people are often compact: the layout must not make a smaller text longer.
    let small =
        if is_smaller(&(head.clone() + &small), original) { small } else { compact(&small) };
    candidates.extend([head + &small, small]);
    candidates
}

/// Returns true if each call has the expectations of a call of the original text.
fn has_expectations_of(original: &Scenario, small: &Scenario) -> bool {
    let expected: Vec<_> = original.snapshots().map(|at| &at.call.expect).collect();
    small.snapshots().all(|at| expected.contains(&&at.call.expect))
}

/// Makes a text smaller for its first search with a failed interleaving, expected or not. Returns `None`
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
            let (budget, limits) = (settings.budget(), (Jobs::default(), args.timeout));
            let found = search(scenario, generation, &budget, limits, console);
            let Searched { report, cut } =
                found.map_err(|error| source.error(scenario.named(error)))?;
            if cut == Some(Cut::OutOfTime) && report.failure.is_none() {
                let done = report.schedules;
                let what = "has not ended in its time";
                let what = format!("the search on {generation} {what}, after {done} interleavings");
                return Err(source.error(what));
            }
            let Some(failure) = report.failure else { continue };
            let output = Output::from(args);
            if write_smallest(&fixture, generation, settings, &failure, output, console)? {
                return Ok(Some(PASSED));
            }
        }
    }
    Ok(None)
}
