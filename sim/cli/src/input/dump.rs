//! A core dump or a minidump, with the files that its process had mapped.

use crate::args::DumpArgs;
use crate::input::Source;
use crate::render::error::CliError;
use clr_dump::{CachedBytes, CoreDump, DumpBytes, DumpError};
use clr_unwind::ImageIdentity;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A core dump that was read, or a process as one, and files of the process.
pub(crate) struct DumpFile {
    name: String,
    bytes: Bytes,
    files: FoundFiles,
}

/// The bytes of a dump.
enum Bytes {
    /// An embedded one, or one from a pipe.
    Memory(Cow<'static, [u8]>),
    /// A file, which may be larger than memory.
    Disk(CachedBytes<OpenFile>),
}

/// A file that is read where it is asked for.
#[derive(Debug)]
struct OpenFile {
    file: Mutex<File>,
    size: u64,
}

impl DumpBytes for OpenFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Option<()> {
        let mut file = self.file.lock().ok()?;
        file.seek(SeekFrom::Start(offset)).ok()?;
        file.read_exact(buffer).ok()
    }
}

impl Bytes {
    fn open<'d>(&'d self, files: &dyn clr_dump::Files<'d>) -> Result<CoreDump<'d>, DumpError> {
        match self {
            Self::Memory(bytes) => CoreDump::open(bytes, files),
            Self::Disk(bytes) => CoreDump::open_bytes(bytes, files),
        }
    }
}

impl DumpFile {
    /// Reads a dump or a process, and the files that it asks for.
    pub(crate) fn read(args: &DumpArgs) -> Result<Self, CliError> {
        match (args.pid, &args.dump) {
            (Some(process), _) => {
                let name = format!("process {process}");
                let bytes = live(process).map_err(|error| CliError::new(&name, error))?;
                let root = PathBuf::from(format!("/proc/{process}/root"));
                let folders = [args.files.as_slice(), &[root]].concat();
                Self::new(name, Bytes::Memory(bytes.into()), &folders)
            }
            (None, Some(path)) => Self::read_at(path, &args.files),
            (None, None) => Err(CliError::Text("neither a dump nor a process is named".into())),
        }
    }

    /// Reads a dump, and the files that it asks for, from these folders.
    pub(crate) fn read_at(path: &Path, folders: &[PathBuf]) -> Result<Self, CliError> {
        Self::of(&Source::find(path)?, folders)
    }

    /// Reads the dump that the source is, and the files that it asks for, from these folders.
    pub(crate) fn of(source: &Source, folders: &[PathBuf]) -> Result<Self, CliError> {
        let bytes = match source.open_file()? {
            Some((file, size)) => {
                Bytes::Disk(CachedBytes::new(OpenFile { file: Mutex::new(file), size }))
            }
            None => Bytes::Memory(source.read()?),
        };
        Self::new(source.name.clone(), bytes, folders)
    }

    fn new(name: String, bytes: Bytes, folders: &[PathBuf]) -> Result<Self, CliError> {
        let files = find_files(&bytes, folders).map_err(|error| CliError::new(&name, error))?;
        Ok(Self { name, bytes, files })
    }

    /// Returns the error of a use of the dump.
    pub(crate) fn error(&self, what: impl std::fmt::Display) -> CliError {
        CliError::new(&self.name, what)
    }

    /// Returns true if the source is an ELF file, as Linux dumps are, or a minidump.
    pub(crate) fn is_one(source: &Source) -> Result<bool, CliError> {
        const MAGICS: [&[u8; 4]; 2] = [b"\x7FELF", b"MDMP"];
        let Some((mut file, _)) = source.open_file()? else {
            let bytes = source.read()?;
            return Ok(MAGICS.iter().any(|magic| bytes.starts_with(*magic)));
        };
        let mut first = [0; 4];
        Ok(file.read_exact(&mut first).is_ok() && MAGICS.contains(&&first))
    }

    /// Returns the name of the dump, as it was given.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Opens the dump as a stopped process.
    pub(crate) fn open(&self) -> Result<CoreDump<'_>, CliError> {
        let find = |path: &str, identity: Option<&ImageIdentity>| {
            let known = self.files.get(&(path.to_owned(), identity.cloned()));
            let by_name = || self.files.get(&(path.to_owned(), None));
            known.or_else(by_name).map(Vec::as_slice)
        };
        let files: &dyn clr_dump::Files<'_> = &find;
        self.bytes.open(files).map_err(|error| self.error(error))
    }
}

/// Reads a process that runs.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn live(process: u32) -> std::io::Result<Vec<u8>> {
    crate::input::live::read(process)
}

/// Refuses: how a process is stopped and read depends on the system.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn live(_: u32) -> std::io::Result<Vec<u8>> {
    let what = "a process can be read on Linux x64 alone; take a dump of it";
    Err(std::io::Error::new(std::io::ErrorKind::Unsupported, what))
}

/// Files by path and identity; without an identity if the dump does not say which build it was.
type FoundFiles = BTreeMap<(String, Option<ImageIdentity>), Vec<u8>>;

/// Reads the files that a dump asks for. The dump is opened twice: to know which they are, and with them.
fn find_files(dump: &Bytes, folders: &[PathBuf]) -> Result<FoundFiles, DumpError> {
    let wanted = Mutex::new(BTreeSet::new());
    let ask = |path: &str, identity: Option<&ImageIdentity>| {
        if let Ok(mut wanted) = wanted.lock() {
            wanted.insert((path.to_owned(), identity.cloned()));
        }
        None
    };
    let files: &dyn clr_dump::Files<'_> = &ask;
    dump.open(files)?;
    let wanted = wanted.into_inner().unwrap_or_default();
    let found = wanted.into_iter().filter_map(|(path, identity)| {
        let bytes = candidates(&path, folders).find_map(|candidate| {
            // Of files without an identity, only images are read: others may be large.
            let is_wanted = identity.is_some() || begins_as_image(&candidate);
            let bytes = is_wanted.then(|| fs::read(candidate).ok())??;
            let found = ImageIdentity::of_file(&bytes)?;
            identity.as_ref().is_none_or(|identity| found == *identity).then_some(bytes)
        })?;
        Some(((path, identity), bytes))
    });
    Ok(found.collect())
}

/// Returns true if a file begins as a PE image does.
fn begins_as_image(path: &Path) -> bool {
    let mut start = [0; 2];
    File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok()) && start == *b"MZ"
}

/// Returns where a file of the process may be here.
fn candidates<'a>(path: &'a str, folders: &'a [PathBuf]) -> impl Iterator<Item = PathBuf> + 'a {
    // A path of Windows: `C:\folder\file`.
    let is_of_windows = path.get(1..3) == Some(":\\");
    let separator = if is_of_windows { '\\' } else { '/' };
    let name = path.rsplit(separator).next().unwrap_or(path);
    let drive = if is_of_windows { 2 } else { 0 };
    let inside = path.get(drive..).unwrap_or_default().trim_start_matches(separator);
    let inside: PathBuf = inside.split(separator).collect();
    let in_folder = move |folder: &'a PathBuf| [folder.join(&inside), folder.join(name)];
    folders.iter().flat_map(in_folder).chain([Path::new(path).to_owned()])
}
