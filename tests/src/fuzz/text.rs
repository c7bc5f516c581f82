//! Inputs that are texts, for targets whose bytes are choices otherwise.

use crate::loaded::Loaded;
use crate::world::{Failure, Plan, examine_loaded};
use clr_codegen::Program;
use clr_generate::repaired_program;
use clr_runtime::generation::Generation;
use clr_scenario::Scenario;
use clr_world::WorldError;

/// Returns the text of an input. The choices of a generator are nearly never one.
pub(super) fn scenario(data: &[u8]) -> Option<Scenario> {
    Scenario::parse(std::str::from_utf8(data).ok()?).ok()
}

/// Returns the runtime that a text is run on. It does not depend on the length of the text, so that
/// a smaller one is run on the same.
pub(super) fn generation(scenario: &Scenario) -> Generation {
    scenario.expected_generation().unwrap_or(Generation::Net10Windows)
}

/// Returns the program of a text, if it needs no runtime and is like those that generators make.
pub(super) fn program(scenario: Scenario) -> Option<Program> {
    let program = repaired_program(scenario.program)?;
    program.link().is_ok().then_some(program)
}

/// Compares calls while the program of a text runs with the model's.
///
/// # Panics
/// If the program cannot be executed, or a call's result differs from the model's.
pub(super) fn examine(scenario: &Scenario, calls: u64) {
    let Some(program) = scenario.world_program(generation(scenario)) else { return };
    let Ok(build) = program.build() else { return };
    let Ok(mut loaded) = Loaded::new(&program, &build) else { return };
    let plan = Plan { seed: 1, cases: calls, thorough: false };
    match examine_loaded(&program, &mut loaded, plan, |_| ()) {
        Ok(_) | Err(Failure::Build(_)) => {}
        Err(Failure::World(failed)) if ends_by_fault(failed.1) => {}
        Err(failure) => panic!("{failure}"),
    }
}

/// Returns true if a thread of a text may end so: people write code that exhausts the stack, and calls of code that has
/// been unloaded.
pub(super) const fn ends_by_fault(error: WorldError) -> bool {
    matches!(error, WorldError::Fault(_) | WorldError::Unloaded(_))
}
