//! The collection of dumps, and the files that their processes had mapped.

use clr_dump::{CoreDump, Identity};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A dump of the collection, with the files of its process.
pub(crate) struct Dump {
    /// As `10.0.15-idle`: version of the runtime, and what hangs.
    pub(crate) name: String,
    core: Vec<u8>,
    /// By path on the machine of the process.
    files: BTreeMap<String, Vec<u8>>,
    folder: PathBuf,
}

/// Where the processes had their runtime.
const RUNTIMES: &str = "/opt/dotnet/shared/Microsoft.NETCore.App/";

/// Returns the folder that a variable names.
pub(crate) fn folder(variable: &str) -> PathBuf {
    std::env::var_os(variable).unwrap_or_else(|| panic!("{variable} names a folder")).into()
}

/// Returns what a program writes.
fn output(program: &str, arguments: &[&str], file: &Path) -> Vec<u8> {
    let output = Command::new(program).args(arguments).arg(file).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {}: {output:?}", file.display());
    output.stdout
}

/// Reads the files of a folder, as if they were in another one.
fn add_folder(files: &mut BTreeMap<String, Vec<u8>>, from: &Path, to: &str) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        if path.is_dir() {
            continue;
        }
        match name.strip_suffix(".xz") {
            Some(name) => files.insert(format!("{to}{name}"), output("xz", &["-dc"], &path)),
            None => files.insert(format!("{to}{name}"), fs::read(&path).unwrap()),
        };
    }
}

/// Unpacks the pack of a runtime, once.
fn runtime(version: &str) -> PathBuf {
    let name = format!("linux-x64-{version}");
    let unpacked = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name);
    if !unpacked.exists() {
        let pack = folder("CLR_RUNTIMES").join(format!("{name}.tar.xz"));
        // Not there before it is whole.
        let temporary = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        output("tar", &["-C", temporary.path().to_str().unwrap(), "-xJf"], &pack);
        let _ = fs::rename(temporary.path().join(&name), &unpacked);
    }
    unpacked
}

impl Dump {
    /// Returns all dumps of the collection, one after another.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let folder = folder("CLR_ORACLES").join("dumps");
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries
            .filter_map(|name| Some(name.to_str()?.strip_suffix(".core.xz")?.to_owned()))
            .collect();
        names.sort();
        assert!(names.len() >= 6, "{names:?}");
        names.into_iter().map(move |name| Self::read(&folder, name))
    }

    fn read(folder: &Path, name: String) -> Self {
        let core = output("xz", &["-dc"], &folder.join(format!("{name}.core.xz")));
        let version = name.split_once('-').unwrap().0;
        let mut files = BTreeMap::new();
        add_folder(&mut files, &folder.join("app"), "/app/");
        add_folder(&mut files, &runtime(version), &format!("{RUNTIMES}{version}/"));
        Self { name, core, files, folder: folder.into() }
    }

    /// Opens the dump, with the files of the collection, and those of this system that are the same.
    pub(crate) fn open(&self) -> CoreDump<'_> {
        let find = |path: &str, _: &Identity| self.file(path);
        let files: &dyn clr_dump::Files<'_> = &find;
        CoreDump::open(&self.core, files).unwrap()
    }

    /// Opens the dump without any file.
    pub(crate) fn open_alone(&self) -> CoreDump<'_> {
        CoreDump::open(&self.core, &clr_dump::NoFiles).unwrap()
    }

    fn file(&self, path: &str) -> Option<&[u8]> {
        let system = || fs::read(path).ok().map(|bytes| &*Box::leak(bytes.into_boxed_slice()));
        self.files.get(path).map(Vec::as_slice).or_else(system)
    }

    /// Returns what another program says of the dump, by the ending of its file.
    pub(crate) fn text(&self, ending: &str) -> String {
        fs::read_to_string(self.folder.join(format!("{}.{ending}", self.name))).unwrap()
    }

    /// Returns what is known of the dump: `expected`, or `clrmd`.
    pub(crate) fn json(&self, kind: &str) -> Value {
        serde_json::from_str(&self.text(&format!("{kind}.json"))).unwrap()
    }
}

/// Returns a number that is written in hexadecimal.
pub(crate) fn number(value: &Value) -> u64 {
    let digits = value.as_str().unwrap().strip_prefix("0x").unwrap();
    u64::from_str_radix(digits, 16).unwrap()
}
