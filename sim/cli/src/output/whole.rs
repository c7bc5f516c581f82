//! Files that are written whole or not at all: the only place that writes files of users.
//!
//! A content is written beside its file, reaches the disk, and takes the file's name in one step. A process that is killed
//! before leaves the old content, and at most a file `.clrsim-….new` beside it.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// A new content on the disk, which has not got the name of its file.
///
/// Dropped before [`finish`](Self::finish), it leaves all as it was.
pub(super) enum Prepared {
    /// A file beside the one whose place it takes.
    Beside { new: NamedTempFile, path: PathBuf, replaces: bool },
    /// A pipe, a device or the like: it has no content to lose, and its name has to stay its own.
    Stream { to: File, content: Vec<u8> },
}

impl Prepared {
    /// Writes a content beside its file, which is followed if it is a link.
    ///
    /// # Errors
    /// The system's; `AlreadyExists` for a file that is there, unless it `replaces` it. The new file is gone then.
    pub(super) fn new(path: &Path, content: &[u8], replaces: bool) -> io::Result<Self> {
        match fs::symlink_metadata(path) {
            Ok(_) if !replaces => Err(ErrorKind::AlreadyExists.into()),
            Ok(_) => {
                // A file that may not be written may not be replaced either.
                let old = File::options().write(true).open(path)?;
                let of_old = old.metadata()?;
                if of_old.is_file() {
                    Self::beside(followed(path)?, content, Some(&of_old))
                } else {
                    Ok(Self::Stream { to: old, content: content.to_vec() })
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Self::beside(path.to_owned(), content, None)
            }
            Err(error) => Err(error),
        }
    }

    fn beside(path: PathBuf, content: &[u8], of_old: Option<&Metadata>) -> io::Result<Self> {
        let mut builder = Builder::new();
        builder.prefix(".clrsim-").suffix(".new");
        usual_mode(&mut builder);
        let mut new = builder.tempfile_in(folder(&path))?;
        new.write_all(content)?;
        if let Some(of_old) = of_old {
            keep_owner(new.as_file(), of_old);
            keep_mode(new.as_file(), of_old)?;
        }
        new.as_file().sync_all()?;
        Ok(Self::Beside { new, path, replaces: of_old.is_some() })
    }

    /// Returns true for a file that takes no other's place.
    pub(super) const fn is_new(&self) -> bool {
        matches!(self, Self::Beside { replaces: false, .. })
    }

    /// Gives the content the name of its file.
    ///
    /// # Errors
    /// The system's; `AlreadyExists` if a file has appeared that was not to be replaced.
    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Self::Beside { new, path, replaces } => {
                let named =
                    if replaces { new.persist(&path) } else { new.persist_noclobber(&path) };
                named.map_err(|error| error.error)?;
                sync_folder(folder(&path));
                Ok(())
            }
            Self::Stream { mut to, content } => to.write_all(&content),
        }
    }
}

/// Returns the folder of a file.
fn folder(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Gives a new file the mode that others have: as the umask says.
#[cfg(unix)]
fn usual_mode(builder: &mut Builder<'_, '_>) {
    use std::os::unix::fs::PermissionsExt as _;
    builder.permissions(fs::Permissions::from_mode(0o666));
}

#[cfg(not(unix))]
fn usual_mode(_: &mut Builder<'_, '_>) {}

/// Gives a file the owner of another, as far as the system lets this user.
#[cfg(unix)]
fn keep_owner(new: &File, of_old: &Metadata) {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let (uid, gid) = (of_old.uid(), of_old.gid());
    if new.metadata().is_ok_and(|own| (own.uid(), own.gid()) != (uid, gid)) {
        // Who may write a file need not be allowed to give one away.
        let _: io::Result<()> = fchown(new, Some(uid), Some(gid));
    }
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &Metadata) {}

/// Gives a file the mode of another.
#[cfg(not(target_family = "wasm"))]
fn keep_mode(new: &File, of_old: &Metadata) -> io::Result<()> {
    new.set_permissions(of_old.permissions())
}

/// Files in the memory of a page have no mode: std refuses to set one.
#[cfg(target_family = "wasm")]
fn keep_mode(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Returns the file that a path leads to.
#[cfg(not(target_family = "wasm"))]
fn followed(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
}

/// In the memory of a page there are no links, and std cannot follow one.
#[cfg(target_family = "wasm")]
fn followed(path: &Path) -> io::Result<PathBuf> {
    Ok(path.to_owned())
}

/// Has the new name reach the disk, on systems that know this of folders.
#[cfg(unix)]
fn sync_folder(folder: &Path) {
    // The content is safe already, and some file systems refuse this.
    let _: io::Result<()> = File::open(folder).and_then(|folder| folder.sync_all());
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) {}
