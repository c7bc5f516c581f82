//! Inputs of fuzz targets, and the texts that say the same.

use crate::args::{FuzzTarget, MinimizeArgs};
use crate::input::Source;
use crate::render::error::CliError;
use arbitrary::{Arbitrary as _, Unstructured};
use clap::ValueEnum as _;
use clr_generate::{SmallProgram, SyntheticCall, WorldCase};
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::Scenario;
use std::path::{Component, Path};

/// Returns the fuzz target of the input: that of the arguments, or of the folder, or of the
/// content.
pub(super) fn target(source: &Source, args: &MinimizeArgs) -> FuzzTarget {
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

/// Converts the bytes of a target to a text for the same target. Returns `None` if its inputs are
/// bytes alone, or if no text can express this one.
pub(super) fn text_of(target: FuzzTarget, bytes: &[u8]) -> Option<Scenario> {
    let mut rest = Unstructured::new(bytes);
    let (mut scenario, generation) = match target {
        FuzzTarget::Program => {
            return Some(Scenario::new(SmallProgram::arbitrary(&mut rest).ok()?.0));
        }
        FuzzTarget::Scenario => case_text(&mut rest)?,
        FuzzTarget::MixedWalk => {
            let (first, rest) = bytes.split_first()?;
            let mut rest = Unstructured::new(rest);
            if first & 1 == 1 { case_text(&mut rest)? } else { call_text(&mut rest)? }
        }
        _ => return None,
    };
    // The target takes the runtime from the first expectation.
    scenario.expect_results(Generations::of(&[generation]));
    Some(scenario)
}

fn case_text(bytes: &mut Unstructured<'_>) -> Option<(Scenario, Generation)> {
    let case = WorldCase::arbitrary(bytes).ok()?;
    Some((Scenario::of_case(&case)?, case.program.generation))
}

fn call_text(bytes: &mut Unstructured<'_>) -> Option<(Scenario, Generation)> {
    let call = SyntheticCall::arbitrary(bytes).ok()?;
    Some((Scenario::from_call(&call)?, call.target.generation))
}

/// Decodes a fuzzer's bytes to a program with a call, and the runtime.
pub(super) fn of_case(source: &Source) -> Result<(Scenario, Generation), CliError> {
    let bytes = source.read()?;
    case_text(&mut Unstructured::new(&bytes))
        .ok_or_else(|| source.error("has what no text can say"))
}

/// Decodes a fuzzer's bytes to a thread with a call, and the runtime.
pub(super) fn of_staged(source: &Source) -> Result<(Scenario, Generation), CliError> {
    let bytes = source.read()?;
    let call = SyntheticCall::arbitrary(&mut Unstructured::new(&bytes))
        .map_err(|error| source.error(error))?;
    call.target.build().map_err(|error| source.error(error))?;
    let scenario =
        Scenario::from_call(&call).ok_or_else(|| source.error("has what no text can say"))?;
    Ok((scenario, call.target.generation))
}
