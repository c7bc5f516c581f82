//! The files that a process had mapped, found by the caller.

use clr_unwind::ImageIdentity;

/// Finds the files that the process of a dump had mapped. A closure is one, too.
pub trait Files<'f> {
    /// Returns the bytes of the file of this path on the machine of the process, or `None` if there is none. The answer
    /// is checked against the identity, so a candidate by name alone is harmless.
    fn find(&self, path: &str, identity: &ImageIdentity) -> Option<&'f [u8]>;
}

impl<'f, F: Fn(&str, &ImageIdentity) -> Option<&'f [u8]>> Files<'f> for F {
    fn find(&self, path: &str, identity: &ImageIdentity) -> Option<&'f [u8]> {
        self(path, identity)
    }
}

/// No files: pages come from the dump alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl<'f> Files<'f> for NoFiles {
    fn find(&self, _: &str, _: &ImageIdentity) -> Option<&'f [u8]> {
        None
    }
}
