//! The collection of dumps, and the files that their processes had mapped.

use clr_dump::{CachedBytes, CoreDump, DumpBytes};
use clr_unwind::ImageIdentity;
use object::{Object as _, ObjectSection as _};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// A dump of the collection, with the files of its process.
pub(crate) struct Dump {
    /// As `10.0.15-idle`: version of the runtime, and what hangs.
    pub(crate) name: String,
    core: CachedBytes<Core>,
    /// By path on the machine of the process.
    files: BTreeMap<String, Vec<u8>>,
    folder: PathBuf,
}

/// The bytes of a dump.
#[derive(Debug)]
enum Core {
    Memory(Vec<u8>),
    Disk(Mutex<File>),
}

impl DumpBytes for Core {
    fn size(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Disk(file) => file.lock().unwrap().metadata().unwrap().len(),
        }
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Option<()> {
        match self {
            Self::Memory(bytes) => {
                buffer.copy_from_slice(bytes.get(offset as usize..)?.get(..buffer.len())?);
                Some(())
            }
            Self::Disk(file) => {
                let mut file = file.lock().unwrap();
                file.seek(SeekFrom::Start(offset)).ok()?;
                file.read_exact(buffer).ok()
            }
        }
    }
}

/// Where the processes had their runtime.
const RUNTIMES: &str = "/opt/dotnet/shared/Microsoft.NETCore.App/";

/// Returns the folder that a variable names.
pub(crate) fn folder(variable: &str) -> PathBuf {
    std::env::var_os(variable).unwrap_or_else(|| panic!("{variable} names a folder")).into()
}

/// Returns what a program writes.
pub(crate) fn output(program: &str, arguments: &[&str], file: &Path) -> Vec<u8> {
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

/// Unpacks the pack of a runtime for Linux, once.
pub(crate) fn runtime(version: &str) -> PathBuf {
    unpacked(&format!("linux-x64-{version}"))
}

/// Unpacks a pack, once.
pub(crate) fn unpacked(name: &str) -> PathBuf {
    let unpacked = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if !unpacked.exists() {
        let pack = folder("CLR_RUNTIMES").join(format!("{name}.tar.xz"));
        // Not there before it is whole.
        let temporary = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        output("tar", &["-C", temporary.path().to_str().unwrap(), "-xJf"], &pack);
        let _ = fs::rename(temporary.path().join(name), &unpacked);
    }
    unpacked
}

/// Returns the files of the process of a dump, by their paths there.
fn files(name: &str) -> BTreeMap<String, Vec<u8>> {
    let version = name.split_once('-').unwrap().0;
    let mut files = BTreeMap::new();
    add_folder(&mut files, &folder("CLR_ORACLES").join("dumps/app"), "/app/");
    add_folder(&mut files, &runtime(version), &format!("{RUNTIMES}{version}/"));
    files
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
        let files = files(&name);
        Self { name, core: CachedBytes::new(Core::Memory(core)), files, folder: folder.into() }
    }

    /// Returns the dumps of one process, by kind: files of a folder that is named as a dump.
    pub(crate) fn kinds(folder: &Path) -> BTreeMap<String, Self> {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let files = files(name);
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let cores = entries.filter(|path| path.extension().is_some_and(|it| it == "core"));
        cores
            .map(|path| {
                let kind = path.file_stem().unwrap().to_str().unwrap().to_owned();
                let core = CachedBytes::new(Core::Disk(Mutex::new(File::open(&path).unwrap())));
                let name = format!("{name} {kind}");
                (kind, Self { name, core, files: files.clone(), folder: folder.into() })
            })
            .collect()
    }

    /// Opens the dump, with the files of the collection, and those of this system that are the same.
    pub(crate) fn open(&self) -> CoreDump<'_> {
        let find = |path: &str, _: Option<&ImageIdentity>| self.file(path);
        let files: &dyn clr_dump::Files<'_> = &find;
        CoreDump::open_bytes(&self.core, files).unwrap()
    }

    /// Returns the bytes of the dump.
    pub(crate) fn core(&self) -> Vec<u8> {
        let mut core = vec![0; usize::try_from(self.core.size()).unwrap()];
        self.core.read_at(0, &mut core).unwrap();
        core
    }

    /// Opens the dump with the same files, but without the names of symbols of the profiler and its libraries.
    pub(crate) fn open_stripped(&self) -> CoreDump<'_> {
        let find = |path: &str, _: Option<&ImageIdentity>| {
            let file = self.file(path)?;
            let is_ours = path.starts_with("/app/") && file.starts_with(b"\x7FELF");
            Some(if is_ours { &*Box::leak(without_names(file).into()) } else { file })
        };
        let files: &dyn clr_dump::Files<'_> = &find;
        CoreDump::open_bytes(&self.core, files).unwrap()
    }

    /// Opens the dump without any file.
    pub(crate) fn open_alone(&self) -> CoreDump<'_> {
        CoreDump::open_bytes(&self.core, &clr_dump::NoFiles).unwrap()
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

/// Returns an ELF file whose tables of names have other letters.
fn without_names(file: &[u8]) -> Vec<u8> {
    let mut bytes = file.to_vec();
    let parsed = object::File::parse(file).unwrap();
    let names = parsed.sections().filter(|it| [".strtab", ".dynstr"].contains(&it.name().unwrap()));
    let ranges: Vec<_> = names.filter_map(|section| section.file_range()).collect();
    assert_eq!(ranges.len(), 2);
    for (start, len) in ranges {
        let names = &mut bytes[start as usize..(start + len) as usize];
        names.iter_mut().filter(|byte| **byte != 0).for_each(|byte| *byte = b'x');
    }
    bytes
}

/// Returns a number that is written in hexadecimal.
pub(crate) fn number(value: &Value) -> u64 {
    let digits = value.as_str().unwrap().strip_prefix("0x").unwrap();
    u64::from_str_radix(digits, 16).unwrap()
}
