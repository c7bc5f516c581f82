//! What a copy of this process prints, kept in memory.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// The standard output, and the standard error.
pub(super) struct Streams([File; 2]);

impl Streams {
    /// Makes room for what is printed.
    pub(super) fn new() -> Option<Self> {
        let file = || {
            // SAFETY: a text with a final NUL.
            let file = unsafe { libc::memfd_create(c"printed".as_ptr(), libc::MFD_CLOEXEC) };
            // SAFETY: a descriptor that nothing else owns.
            (file >= 0).then(|| File::from(unsafe { OwnedFd::from_raw_fd(file) }))
        };
        Some(Self([file()?, file()?]))
    }

    /// Makes these the streams of this process.
    pub(super) fn take(&self) {
        for (file, stream) in self.0.iter().zip([libc::STDOUT_FILENO, libc::STDERR_FILENO]) {
            // SAFETY: two descriptors of this process.
            unsafe { libc::dup2(file.as_raw_fd(), stream) };
        }
    }

    /// Returns the number of bytes on them.
    pub(super) fn bytes(&self) -> u64 {
        self.0.iter().filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    }

    /// Prints what is on them, up to a number of bytes each.
    pub(super) fn print(&self, most: u64) {
        let mut to: [&mut dyn Write; 2] = [&mut std::io::stdout(), &mut std::io::stderr()];
        for (mut file, to) in self.0.iter().zip(&mut to) {
            // A stream that is closed gets nothing.
            let _ = file.seek(SeekFrom::Start(0));
            let _ = std::io::copy(&mut file.take(most), to);
            let _ = to.flush();
        }
    }
}
