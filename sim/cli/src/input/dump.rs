//! A core dump, with the files that its process had mapped.

use crate::args::DumpArgs;
use crate::input::Source;
use crate::render::error::CliError;
use clr_dump::{CoreDump, Identity};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A core dump that was read, and files of its process.
pub(crate) struct DumpFile {
    source: Source,
    bytes: Cow<'static, [u8]>,
    files: FoundFiles,
}

impl DumpFile {
    /// Reads a dump, and the files that it asks for.
    pub(crate) fn read(args: &DumpArgs) -> Result<Self, CliError> {
        let source = Source::find(&args.dump)?;
        let bytes = source.read()?;
        Self::of(source, bytes, &args.files)
    }

    /// Reads the files, in these folders, that the dump with these bytes asks for.
    pub(crate) fn of(
        source: Source,
        bytes: Cow<'static, [u8]>,
        folders: &[PathBuf],
    ) -> Result<Self, CliError> {
        let files = find_files(&bytes, folders).map_err(|error| source.error(error))?;
        Ok(Self { source, bytes, files })
    }

    /// Returns true if a file with these bytes is an ELF file, as Linux dumps are.
    pub(crate) fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(b"\x7FELF")
    }

    /// Returns the name of the dump, as it was given.
    pub(crate) fn name(&self) -> &str {
        &self.source.name
    }

    /// Returns the input.
    pub(crate) const fn source(&self) -> &Source {
        &self.source
    }

    /// Returns an error of the dump.
    pub(crate) fn error(&self, what: impl std::fmt::Display) -> CliError {
        self.source.error(what)
    }

    /// Opens the dump as a stopped process.
    pub(crate) fn open(&self) -> Result<CoreDump<'_>, CliError> {
        let find = |path: &str, identity: &Identity| {
            self.files.get(&(path.to_owned(), identity.clone())).map(Vec::as_slice)
        };
        let files: &dyn clr_dump::Files<'_> = &find;
        CoreDump::open(&self.bytes, files).map_err(|error| self.source.error(error))
    }
}

/// Files by path and identity.
type FoundFiles = BTreeMap<(String, Identity), Vec<u8>>;

/// Reads the files that a dump asks for. The dump is opened twice: to know which they are, and with them.
fn find_files(dump: &[u8], folders: &[PathBuf]) -> Result<FoundFiles, clr_dump::DumpError> {
    let wanted = Mutex::new(BTreeSet::new());
    let ask = |path: &str, identity: &Identity| {
        if let Ok(mut wanted) = wanted.lock() {
            wanted.insert((path.to_owned(), identity.clone()));
        }
        None
    };
    let files: &dyn clr_dump::Files<'_> = &ask;
    CoreDump::open(dump, files)?;
    let wanted = wanted.into_inner().unwrap_or_default();
    let found = wanted.into_iter().filter_map(|(path, identity)| {
        let bytes = candidates(&path, folders).find_map(|candidate| {
            let bytes = fs::read(candidate).ok()?;
            (Identity::of_file(&bytes).as_ref() == Some(&identity)).then_some(bytes)
        })?;
        Some(((path, identity), bytes))
    });
    Ok(found.collect())
}

/// Returns where a file of the process may be here.
fn candidates<'a>(path: &'a str, folders: &'a [PathBuf]) -> impl Iterator<Item = PathBuf> + 'a {
    let name = path.rsplit('/').next().unwrap_or(path);
    let inside = path.trim_start_matches('/');
    let in_folder = move |folder: &'a PathBuf| [folder.join(inside), folder.join(name)];
    folders.iter().flat_map(in_folder).chain([Path::new(path).to_owned()])
}
