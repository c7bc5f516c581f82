//! Tests of code generation and unwind data.

#[cfg(feature = "scenario")]
mod clauses;
#[cfg(feature = "scenario")]
mod layout;
#[cfg(feature = "scenario")]
mod link;
mod rules;
#[cfg(feature = "scenario")]
mod shapes;
#[cfg(feature = "scenario")]
mod unix;
mod unwind_info;

#[cfg(feature = "scenario")]
use super::{LinkedProgram, Program};

/// Parses a program that must be valid.
#[cfg(feature = "scenario")]
fn parse(text: &str) -> Program {
    match crate::scenario::Scenario::parse(text) {
        Ok(scenario) => scenario.program,
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// Links a program that must fit.
#[cfg(feature = "scenario")]
fn link(text: &str) -> LinkedProgram {
    parse(text).link().unwrap_or_else(|error| panic!("{error}\n{text}"))
}
