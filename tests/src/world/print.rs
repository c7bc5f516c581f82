//! Formatting of cases.

use clr_generate::{WorldCase, WorldProgram};
use std::fmt;

pub(super) fn program(f: &mut fmt::Formatter<'_>, program: &WorldProgram) -> fmt::Result {
    writeln!(f, "{}", program.generation)?;
    for (function, index) in program.program.functions.iter().zip(0..) {
        let method = program.methods.get(&clr_codegen::FunctionIndex(index));
        let kind = function.kind;
        writeln!(f, "  {index} {} {kind:?} {method:?}", function.name)?;
        writeln!(f, "    {:?}", function.shape)?;
        for statement in &function.body {
            writeln!(f, "    {statement:?}")?;
        }
        writeln!(f, "    end {:?}", function.end)?;
    }
    writeln!(f, "threads {:?}", program.threads)
}

pub(super) fn case(f: &mut fmt::Formatter<'_>, case: &WorldCase) -> fmt::Result {
    program(f, &case.program)?;
    for turn in &case.turns {
        writeln!(f, "thread {} executes {} steps", turn.thread, turn.steps)?;
    }
    writeln!(f, "{:?}", case.call)
}
