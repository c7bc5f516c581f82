//! Guests in C++: compiled where there is a compiler, and run.
#![cfg(target_pointer_width = "64")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the folder of the library that this test was built with.
fn library_folder() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// Compiles a guest. Returns `None`, and says so, if there is no compiler, or none with these flags.
fn compile(guest: &str, folder: &Path, flags: &[&str]) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let library = library_folder();
    let program = folder.join(guest).with_extension(std::env::consts::EXE_EXTENSION);
    let mut command = Command::new(&compiler);
    command
        .args(["-std=c++17", "-g", "-Wall", "-Wextra", "-Werror"])
        .args(flags)
        .arg("-I")
        .arg(here.join("include"))
        .arg(here.join("tests/guests").join(guest).with_extension("cpp"))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&library)
        .args(["-lclrsim", "-pthread"]);
    if cfg!(unix) {
        command.arg(format!("-Wl,-rpath,{}", library.display()));
    }
    let Ok(output) = command.output() else {
        eprintln!("skipped: no {compiler}");
        return None;
    };
    if !output.status.success() && !flags.is_empty() {
        eprintln!("skipped: {compiler} cannot {flags:?}");
        return None;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

/// Runs a guest with a runtime, and returns what it printed.
fn run(program: &Path, runtime: &str) -> String {
    let mut command = Command::new(program);
    // cargo's own search path has other builds of the library.
    let variable = if cfg!(windows) { "PATH" } else { "LD_LIBRARY_PATH" };
    let rest = std::env::var_os("PATH").filter(|_| cfg!(windows)).unwrap_or_default();
    let folders = std::iter::once(library_folder()).chain(std::env::split_paths(&rest));
    command.env(variable, std::env::join_paths(folders).unwrap());
    let output = command.arg(runtime).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{runtime}: {text}{errors}");
    text.replace("\r\n", "\n")
}

#[test]
fn three_products_calls_are_answered_on_every_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile("clients", folder.path(), &[]) else { return };
    for generation in clr_runtime::generation::Generation::ALL {
        run(&program, generation.name());
    }
}

/// COM objects have no RTTI, which `vptr` needs.
#[test]
fn sanitizers_find_nothing_in_calls_and_misuse() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize=vptr", "-fno-sanitize-recover=all"];
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile("clients", folder.path(), &flags) else { return };
    for runtime in ["net8-unix", "net10-windows", "framework-2"] {
        run(&program, runtime);
    }
}

/// Sources: `tests/guests/edges`, recorded by `edges_profiler.cpp` in CoreCLR 3.1.23, .NET 8.0.4 and
/// .NET 9.0.7 on Linux.
#[test]
fn calls_with_edge_arguments_are_answered_as_recorded_in_real_runtimes() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile("edges", folder.path(), &[]) else { return };
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests/edges");
    let mut count = 0;
    for file in std::fs::read_dir(recorded).unwrap() {
        let file = file.unwrap().path();
        let runtime = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let expected = std::fs::read_to_string(&file).unwrap();
        let found = run(&program, &runtime);
        assert!(expected.lines().count() > 200, "{runtime}");
        for (number, (expected, found)) in (1..).zip(expected.lines().zip(found.lines())) {
            assert_eq!(found, expected, "{runtime}, line {number}");
        }
        assert_eq!(found.lines().count(), expected.lines().count(), "{runtime}");
        count += 1;
    }
    assert_eq!(count, 3);
}
