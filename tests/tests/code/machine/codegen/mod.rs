//! The generator of code: layout, unwind data, images, execution and its stack.

mod clauses;
mod execution;
mod layout;
mod link;
mod shapes;
mod stack_layout;
mod unix;

use clr_codegen::execution::{Execution, ExecutionEnd};
use clr_codegen::{
    CallingConvention, CodeKind, EntryForm, FunctionIndex, LinkedProgram, Program, Role,
};
use clr_generate::{Seeded, Size, program};
use clr_unwind::{CodeMap, CodeRegion, Convention, Gpr, Position, Unwinder};
use core::fmt::Write as _;
use core::ops::Range;
use iced_x86::{Decoder, DecoderOptions};

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
