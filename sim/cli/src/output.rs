//! Files that commands write. A file that is there is replaced only if somebody says so.

use crate::input::{PROGRAM, Source, slashed};
use crate::render::error::CliError;
use clap::Args;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;

/// The permission to replace files.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Replacing {
    /// Replace a file that is there already
    #[arg(long)]
    pub(crate) force: bool,
}

impl Replacing {
    /// Checks that [`write`](Self::write) can make a file, before a long search for its content.
    pub(crate) fn check(self, path: &Path) -> Result<(), CliError> {
        if !self.force && fs::symlink_metadata(path).is_ok() {
            return Err(is_there(path));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        match folder.filter(|folder| !folder.is_dir()) {
            None => Ok(()),
            Some(folder) => {
                let what = format!("cannot be written: there is no folder {}", slashed(folder));
                Err(CliError::new(&slashed(path), what))
            }
        }
    }

    /// Checks that a file is not the input, which no command replaces, not even with `--force`.
    pub(crate) fn check_is_not(path: &Path, source: &Source) -> Result<(), CliError> {
        if source.is_at(path) {
            let what = "is the input, which is not replaced, not even with --force";
            return Err(CliError::new(&slashed(path), what).with_code("is-input"));
        }
        Ok(())
    }

    /// Checks that [`write_page`](Self::write_page) can make a page.
    pub(crate) fn check_page(self, path: &Path) -> Result<(), CliError> {
        Self { force: self.force || is_page(path) }.check(path)
    }

    /// Writes a file. One that is there already is an error without `--force`.
    pub(crate) fn write(self, path: &Path, content: impl AsRef<[u8]>) -> Result<(), CliError> {
        let create = if self.force { File::create(path) } else { File::create_new(path) };
        let written = create.and_then(|mut file| file.write_all(content.as_ref()));
        written.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => is_there(path),
            _ => unwritable(&slashed(path), &error),
        })
    }

    /// Writes a page. One that was written so before is replaced, whether `--force` was given or not.
    pub(crate) fn write_page(self, path: &Path, page: &str) -> Result<(), CliError> {
        Self { force: self.force || is_page(path) }.write(path, page)
    }
}

/// Returns the name of a text that is to be written, which has to be that of a text.
pub(crate) fn text_name(path: &Path) -> Result<String, CliError> {
    let name = slashed(path);
    if name.ends_with(PROGRAM) {
        Ok(name)
    } else {
        Err(CliError::new(&name, "scenarios are called *.kdl"))
    }
}

/// The mark of the pages that this tool writes.
const GENERATOR: &[u8] = b"<meta name=\"generator\" content=\"clrsim ";
/// Number of bytes at a page's beginning that have the mark.
const HEAD: u64 = 1024;

/// Returns true if the file is a page that this tool has written.
fn is_page(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.is_ok() && head.windows(GENERATOR.len()).any(|part| part == GENERATOR)
}

fn is_there(path: &Path) -> CliError {
    CliError::new(&slashed(path), "is there already; --force replaces it").with_code("file-exists")
}

pub(crate) fn unwritable(name: &str, error: &io::Error) -> CliError {
    CliError::new(name, format_args!("cannot be written: {}", error.kind()))
}
