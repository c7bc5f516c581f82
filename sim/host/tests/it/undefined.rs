//! libclrsim under programs that look for undefined behaviour and failed allocations: `.ci/undefined` runs them.

use super::external::{compile, library_folder, run};
use std::process::Command;

/// The only ends are Rust's own message and abort, and the right result.
#[test]
#[ignore = "twenty thousand processes"]
fn each_allocation_that_fails_ends_the_process_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile("allocations", folder.path(), &[]);
    println!("{}", run(&program, "net8-unix"));
}

/// Memcheck looks at each access and each jump of the library, too.
#[test]
#[ignore = "asks valgrind"]
fn valgrind_finds_nothing_in_calls_and_misuse() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile("clients", folder.path(), &[]);
    let output = Command::new("valgrind")
        .args(["--quiet", "--error-exitcode=99"])
        .arg(&program)
        .arg("net8-unix")
        .env("LD_LIBRARY_PATH", library_folder())
        .output()
        .expect("valgrind");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && printed.is_empty(), "{}: {printed}", output.status);
}
