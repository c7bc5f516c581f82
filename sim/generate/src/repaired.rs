//! Programs of people, made as the generators make theirs.

use super::repair;
use super::world::{WorldProgram, constrain};
use clr_codegen::Program;
use clr_world::ThreadStart;

/// Returns a program without what generated programs never have. Returns `None` if the rest is not
/// valid.
#[must_use]
pub fn repaired_program(mut program: Program) -> Option<Program> {
    repair::program(&mut program);
    program.check().is_ok().then_some(program)
}

/// Returns a program with threads without what generated ones never have. Returns `None` if the
/// rest is not valid, or if the first thread is not managed.
#[must_use]
pub fn repaired_world(mut world: WorldProgram) -> Option<WorldProgram> {
    constrain::repair(&mut world);
    let begins = matches!(world.threads.first(), Some(ThreadStart::Managed(_)));
    (begins && world.program.check().is_ok()).then_some(world)
}
