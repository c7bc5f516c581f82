//! The tool with a guest: a library that is compiled here.
#![allow(dead_code, reason = "a system without histories uses a part")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The folder of the guests' sources and texts.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests")
}

/// The folder of the compiled guests.
pub(crate) fn folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| TempDir::new().unwrap()).path()
}

/// Says that a test was not run, which is a failure where it must be.
pub(crate) fn skipped(why: &str) {
    assert!(std::env::var_os("CLR_TESTS_COMPLETE").is_none(), "not run: {why}");
    eprintln!("not run: {why}");
}

/// Returns true if the compiler makes code for this process, which may run in an emulator.
pub(crate) fn is_for_this_processor(compiler: &str) -> bool {
    let answer = Command::new(compiler).arg("-dumpmachine").output();
    answer.is_ok_and(|answer| {
        String::from_utf8_lossy(&answer.stdout).starts_with(std::env::consts::ARCH)
    })
}

/// Compiles a guest, named by its path from the folder of sources, as a library. Returns `None`, and says so, if there is
/// no compiler.
pub(crate) fn guest(name: &str, flags: &[&str]) -> Option<PathBuf> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    if !is_for_this_processor(&compiler) {
        skipped("no C++ compiler for this processor");
        return None;
    }
    let stem = Path::new(name).file_stem().unwrap().to_string_lossy();
    let library = TempDir::new_in(folder()).unwrap().keep().join(format!("lib{stem}.so"));
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/include");
    let output = Command::new(compiler)
        .args(["-std=c++17", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-pthread"])
        .args(flags)
        .arg("-I")
        .arg(include)
        .arg(sources().join(name).with_extension("cpp"))
        .arg("-o")
        .arg(&library)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(library)
}

/// The tool, with a guest and a text.
pub(crate) struct Host {
    command: Command,
    library: String,
}

impl Host {
    pub(crate) fn new(library: &Path, text: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clrsim"));
        command.arg("host").arg(library).arg(sources().join(text));
        Self { command, library: library.to_string_lossy().into_owned() }
    }

    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Returns the exit code and what was printed; the library is called LIBRARY.
    pub(crate) fn run(mut self) -> (i32, String) {
        let Output { status, stdout, stderr } = self.command.output().unwrap();
        let errors = String::from_utf8_lossy(&stderr);
        assert_eq!(errors, "");
        let text = String::from_utf8(stdout).unwrap();
        (status.code().unwrap(), text.replace(&self.library, "LIBRARY"))
    }

    /// Returns the exit code and what was printed, whatever is noted beside it.
    pub(crate) fn noted(mut self) -> (i32, String) {
        let Output { status, stdout, .. } = self.command.output().unwrap();
        (status.code().unwrap(), String::from_utf8(stdout).unwrap())
    }

    /// Returns the exit code and the objects of `--json`.
    pub(crate) fn objects(self) -> (i32, Vec<Value>) {
        let (code, text) = self.args(&["--json"]).run();
        (code, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    /// Returns the only object of `--json`, whose verdict the exit code agrees with.
    #[track_caller]
    pub(crate) fn object(self) -> Value {
        let (code, objects) = self.objects();
        let [object] = <[Value; 1]>::try_from(objects).unwrap();
        assert_eq!(code == 0, object["verdict"] == "clean", "{object:#}");
        object
    }
}
