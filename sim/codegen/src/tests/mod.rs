//! Tests of the parts that make code and unwind data of a program.

mod rules;
mod unwind_info;
