//! The files that a process had mapped, found by the caller.

use clr_unwind::ImageIdentity;

/// Finds the files that the process of a dump had mapped. A closure is one, too.
pub trait Files<'f> {
    /// Returns the bytes of the file of this path on the machine of the process, or `None` if there is none. The answer
    /// is checked against the identity, or, if the dump does not say which build it was (`None`), against pages of the dump: a
    /// candidate by name alone is harmless.
    fn find(&self, path: &str, identity: Option<&ImageIdentity>) -> Option<&'f [u8]>;
}

impl<'f, F: Fn(&str, Option<&ImageIdentity>) -> Option<&'f [u8]>> Files<'f> for F {
    fn find(&self, path: &str, identity: Option<&ImageIdentity>) -> Option<&'f [u8]> {
        self(path, identity)
    }
}

/// No files: pages come from the dump alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl<'f> Files<'f> for NoFiles {
    fn find(&self, _: &str, _: Option<&ImageIdentity>) -> Option<&'f [u8]> {
        None
    }
}
