//! The tool with a guest: a library that is compiled here.
#![allow(dead_code, reason = "a system without interleavings uses a part")]

use super::*;
use std::sync::{Mutex, OnceLock, PoisonError};
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

/// Returns a guest as a library, which the first test that asks for it compiles. It is named by its path from the folder
/// of sources.
pub(crate) fn guest(name: &str, flags: &[&str]) -> PathBuf {
    static COMPILED: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let library = || compile(name, flags);
    compiled.entry(format!("{name} {flags:?}")).or_insert_with(library).clone()
}

fn compile(name: &str, flags: &[&str]) -> PathBuf {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
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
    library
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
