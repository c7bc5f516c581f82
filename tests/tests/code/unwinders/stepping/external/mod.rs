//! Steps of a program on this host.

mod check;
mod known;
mod modules;
mod record;
mod tracee;

use crate::unwinders::stepping::external::modules::Module;
use crate::unwinders::stepping::external::tracee::Stepped;
use crate::unwinders::stepping::shadow::{Activation, Does, Ended, Shadow};
use check::{Check, Examined};
use clr_unwind::{
    CodeMap, ElfImage, Memory, Position, Registers, Unreadable, UnwindError, Unwinder,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use nix::sys::signal::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tracee::Tracee;

/// Compiles the program.
///
/// # Panics
/// If there is no compiler, or it refuses the program.
fn compile(folder: &Path, options: &[&str]) -> PathBuf {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/code/unwinders/stepping/program.cpp");
    let program = folder.join("program");
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let mut command = Command::new(compiler);
    command.args(options).arg("-o").arg(&program).arg(source);
    let status = command.status().expect("a C++ compiler");
    assert!(status.success(), "the program does not compile: {command:?}: {status}");
    program
}

/// Steps through the program, compiled with these options. Returns the counts, and the lines of the
/// vectors.
fn step_through(options: &[&str]) -> (Examined, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), options);
    let tracee = Tracee::start(&program).expect("a process that can be stepped");
    let modules = modules::modules(&tracee).unwrap();
    let mut map = CodeMap::new();
    for module in &modules {
        map.insert_elf(module.base, &ElfImage::parse(&module.bytes).unwrap()).unwrap();
    }
    let (seen, recorder) = Check::new(&modules, &map).run(&tracee);
    (seen, recorder.lines())
}

fn examine(options: &[&str]) {
    let (seen, lines) = step_through(options);
    println!("{seen:#x?}");
    println!("{} lines, {} bytes", lines.len(), lines.iter().map(String::len).sum::<usize>());
    // Callers are recorded at calls. Returns show that the recorded registers were the true ones.
    let lost = seen.ended.get(&Ended::Returned { preserved: false });
    assert_eq!(lost, None, "a function has not preserved registers");
    assert!(seen.wrong.is_empty(), "{:#x?}", seen.wrong);
    // Two functions of the C library, and those of libgcc that were called.
    assert!(seen.known.len() <= 6, "{:#x?}", seen.known);
    assert!(seen.refused * 100 < seen.stopped, "{seen:?}");
    assert!(seen.signals == 4 && seen.steps > 100_000, "{seen:?}");
}

#[test]
#[ignore = "external: steps a process by ptrace"]
fn every_instruction_of_libraries_is_unwound() {
    // Library calls go through the procedure linkage table, and are bound at the first call.
    examine(&["-O2", "-DNUMBERS=40", "-Wl,-z,lazy"]);
}

#[test]
#[ignore = "external: steps a process by ptrace"]
fn the_same_without_optimization() {
    examine(&["-O0", "-DNUMBERS=20", "-Wl,-z,now"]);
}

/// Rewrites the vectors.
pub(super) fn record() {
    let path = std::env::var_os("CLR_RECORD_STEPS").expect("CLR_RECORD_STEPS names a file");
    let (_, lines) = step_through(&["-O2", "-Wl,-z,lazy"]);
    let mut gzip = GzEncoder::new(File::create(path).unwrap(), Compression::best());
    for line in lines {
        writeln!(gzip, "{line}").unwrap();
    }
    gzip.finish().unwrap();
}
