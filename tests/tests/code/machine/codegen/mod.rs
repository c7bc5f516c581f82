//! The generator of code: layout, unwind data, images, execution and its stack.

mod clauses;
mod execution;
mod layout;
mod link;
mod shapes;
mod stack_layout;
mod unix;

use clr_codegen::{LinkedProgram, Program};

/// Reads a program that must be valid.
fn parse(text: &str) -> Program {
    match clr_scenario::Scenario::parse(text) {
        Ok(scenario) => scenario.program,
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// Links a program that must fit.
fn link(text: &str) -> LinkedProgram {
    parse(text).link().unwrap_or_else(|error| panic!("{error}\n{text}"))
}
