//! The streams on which a process of an interleaving talks with the one that searches.

use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::os::windows::io::{AsHandle as _, AsRawHandle as _, IntoRawHandle as _};
use windows_sys::Win32::System::Console::{STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, SetStdHandle};

unsafe extern "C" {
    fn _dup2(from: c_int, to: c_int) -> c_int;
    fn _open_osfhandle(handle: isize, flags: c_int) -> c_int;
}

/// The streams of a process whose standard streams were taken.
#[derive(Debug)]
pub(super) struct Pipes {
    /// The former standard input.
    pub(super) from: File,
    /// The former standard output.
    pub(super) to: File,
}

/// Takes the standard input and output for the tool's own use. A guest that reads gets nothing, and what it prints goes
/// to the standard error.
///
/// # Errors
/// Returns the system's error.
pub(super) fn take_streams() -> io::Result<Pipes> {
    let from = io::stdin().as_handle().try_clone_to_owned()?.into();
    let to = io::stdout().as_handle().try_clone_to_owned()?.into();
    let nothing = File::open("NUL")?;
    // SAFETY: handles that stay open, and descriptors of the library of C in this process.
    unsafe {
        SetStdHandle(STD_OUTPUT_HANDLE, io::stderr().as_raw_handle());
        SetStdHandle(STD_INPUT_HANDLE, nothing.as_raw_handle());
        _dup2(2, 1);
        _dup2(_open_osfhandle(nothing.into_raw_handle() as isize, 0), 0);
    }
    Ok(Pipes { from, to })
}
