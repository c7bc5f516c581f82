//! The tool as a program. A library has all of it, so that its tests can have all of its features.

use std::process::ExitCode;

fn main() -> ExitCode {
    clrsim_tool::main()
}
