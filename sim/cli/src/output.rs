//! Files that commands write. A file that is there is replaced only if somebody says so.

mod whole;

use crate::input::{PROGRAM, Source, slashed};
use crate::render::error::CliError;
use clap::Args;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;
use whole::Prepared;

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

    /// Writes a file, whole or not at all. One that is there already is an error without `--force`.
    pub(crate) fn write(self, path: &Path, content: impl AsRef<[u8]>) -> Result<(), CliError> {
        self.write_all(&[(path, content.as_ref())])
    }

    /// Writes files. If one cannot be written, none that is new stays, and none is replaced for want of space.
    pub(crate) fn write_all(self, files: &[(&Path, &[u8])]) -> Result<(), CliError> {
        let prepared = files.iter().map(|(path, content)| {
            let prepared = Prepared::new(path, content, self.force);
            prepared.map(|it| (*path, it)).map_err(|error| unwritten(path, &error))
        });
        finish_all(prepared.collect::<Result<_, _>>()?)
    }

    /// Writes files into a folder, which is made if it is not there: none of them, and no folder, if one does not fit.
    pub(crate) fn write_into(
        self,
        folder: &Path,
        files: &[(&str, Vec<u8>)],
    ) -> Result<(), CliError> {
        let is_new = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let made: Vec<_> = folder.ancestors().take_while(is_new).collect();
        let paths: Vec<_> = files.iter().map(|(name, _)| folder.join(name)).collect();
        let contents: Vec<_> =
            paths.iter().zip(files).map(|(path, (_, content))| (&**path, &**content)).collect();
        let is_there = fs::create_dir_all(folder).map_err(|error| {
            let what = format_args!("no folder can be made there: {}", error.kind());
            CliError::new(&slashed(folder), what)
        });
        is_there.and_then(|()| self.write_all(&contents)).inspect_err(|_| {
            for folder in made {
                // Not empty if another process has written into it.
                let _: io::Result<()> = fs::remove_dir(folder);
            }
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

/// Gives contents the names of their files. If one cannot have it, those that are new are removed again.
fn finish_all(prepared: Vec<(&Path, Prepared)>) -> Result<(), CliError> {
    let mut new = Vec::new();
    for (path, file) in prepared {
        let is_new = file.is_new();
        if let Err(error) = file.finish() {
            // Not what stands at `path`: another process has written it.
            for path in new {
                let _: io::Result<()> = fs::remove_file(path);
            }
            return Err(unwritten(path, &error));
        }
        new.extend(is_new.then_some(path));
    }
    Ok(())
}

/// Replaces the content of a file, whole or not at all.
pub(crate) fn replace(path: &Path, content: &str) -> Result<(), CliError> {
    Replacing { force: true }.write(path, content)
}

fn unwritten(path: &Path, error: &io::Error) -> CliError {
    match error.kind() {
        ErrorKind::AlreadyExists => is_there(path),
        kind => CliError::new(&slashed(path), format_args!("cannot be written: {kind}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_another_process_writes_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let [own, other] = ["own", "other"].map(|name| folder.path().join(name));
        let prepare = |path| Prepared::new(path, b"new", false).unwrap();
        let prepared = vec![(&*own, prepare(&own)), (&*other, prepare(&other))];
        fs::write(&other, "theirs").unwrap();
        assert!(finish_all(prepared).is_err());
        assert!(!own.exists());
        assert_eq!(fs::read_to_string(&other).unwrap(), "theirs");
    }
}
