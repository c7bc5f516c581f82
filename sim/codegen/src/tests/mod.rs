//! Tests of code generation and unwind data.

mod rules;
mod unwind_info;
