//! Files that another process fills, and that nobody has to remove.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// Most names that are tried.
const TRIES: u32 = 1000;

/// A file that is removed at the end, however this process ends, but on systems other than Linux and Windows.
pub(super) struct Scratch {
    file: File,
    path: PathBuf,
}

impl Scratch {
    /// Makes a file. One that a process with the same number has left is not used again.
    pub(super) fn new(name: &str) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        remove_on_close(&mut options);
        let mut number = 0;
        loop {
            let name = format!("clrsim-host-{}-{number}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match options.open(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists && number < TRIES => {
                    number += 1;
                }
                made => return made.and_then(|file| Self::of(file, path)),
            }
        }
    }

    /// Removes the name of a file, which other processes open by its number in this one.
    #[cfg(target_os = "linux")]
    fn of(file: File, path: PathBuf) -> io::Result<Self> {
        use std::os::fd::AsRawFd as _;
        std::fs::remove_file(path)?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        Ok(Self { path: path.into(), file })
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
    fn of(file: File, path: PathBuf) -> io::Result<Self> {
        Ok(Self { file, path })
    }

    /// Returns the path by which another process opens the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file as a stream of another process.
    pub(super) fn stream(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Returns the file's text, up to a number of bytes. What is no text is replaced.
    pub(super) fn read(&mut self, most: u64) -> io::Result<String> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        (&self.file).take(most).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Has the system remove a file with its last handle.
#[cfg(windows)]
fn remove_on_close(options: &mut OpenOptions) {
    use std::os::windows::fs::OpenOptionsExt as _;
    /// `FILE_FLAG_DELETE_ON_CLOSE`.
    const DELETE: u32 = 0x0400_0000;
    options.custom_flags(DELETE);
}

#[cfg(not(windows))]
fn remove_on_close(_: &mut OpenOptions) {}

#[cfg(not(any(target_os = "linux", windows)))]
impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing needs it any more.
        let _: io::Result<()> = std::fs::remove_file(&self.path);
    }
}
