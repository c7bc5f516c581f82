//! The library of the profiler that is traced.

use clr_com::{Bool, Guid};
use clr_walker::profiling::HResult;
use std::ffi::{CStr, c_void};
use std::path::Path;

/// `DllGetClassObject`.
pub(super) type GetClassObject =
    unsafe extern "system" fn(*const Guid, *const Guid, *mut *mut c_void) -> HResult;

/// Loads a library that stays loaded, and returns its `DllGetClassObject`. On Unix its `DllMain` is called, as the PAL of the
/// CLR does.
///
/// # Errors
/// Returns the reason, in words.
pub(super) fn load(path: &Path) -> Result<GetClassObject, String> {
    let library = system::load(path)?;
    let export = system::export(library, c"DllGetClassObject");
    if export.is_null() {
        return Err("it does not export DllGetClassObject".to_owned());
    }
    if cfg!(unix) {
        attach(library)?;
    }
    // SAFETY: the documented function of this name.
    Ok(unsafe { std::mem::transmute::<*mut c_void, GetClassObject>(export) })
}

/// Calls `DllMain`, if there is one.
fn attach(library: *mut c_void) -> Result<(), String> {
    type DllMain = unsafe extern "system" fn(*mut c_void, u32, *mut c_void) -> Bool;
    /// `DLL_PROCESS_ATTACH`.
    const ATTACH: u32 = 1;
    let main = system::export(library, c"DllMain");
    if main.is_null() {
        return Ok(());
    }
    // SAFETY: the documented function of this name, with the documented arguments.
    let result = unsafe {
        std::mem::transmute::<*mut c_void, DllMain>(main)(library, ATTACH, std::ptr::null_mut())
    };
    if result == 0 { Err("DllMain returned FALSE".to_owned()) } else { Ok(()) }
}

#[cfg(unix)]
mod system {
    use super::{CStr, Path, c_void};
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt as _;

    pub(super) fn load(path: &Path) -> Result<*mut c_void, String> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: a text with a final NUL. The library answers for its initialisers.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY) };
        if !library.is_null() {
            return Ok(library);
        }
        // SAFETY: after a failure there is a message, until the next such call on this thread.
        Err(unsafe { CStr::from_ptr(libc::dlerror()) }.to_string_lossy().into_owned())
    }

    pub(super) fn export(library: *mut c_void, name: &CStr) -> *mut c_void {
        // SAFETY: a library that is loaded, and a text with a final NUL.
        unsafe { libc::dlsym(library, name.as_ptr()) }
    }
}

#[cfg(windows)]
mod system {
    use super::{CStr, Path, c_void};
    use std::ffi::c_char;
    use std::os::windows::ffi::OsStrExt as _;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn LoadLibraryW(name: *const u16) -> *mut c_void;
        fn GetProcAddress(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }

    pub(super) fn load(path: &Path) -> Result<*mut c_void, String> {
        let name: Vec<u16> = path.as_os_str().encode_wide().chain([0]).collect();
        // SAFETY: a text with a final 0. The library answers for its initialisers.
        let library = unsafe { LoadLibraryW(name.as_ptr()) };
        if library.is_null() {
            return Err(std::io::Error::last_os_error().to_string());
        }
        Ok(library)
    }

    pub(super) fn export(library: *mut c_void, name: &CStr) -> *mut c_void {
        // SAFETY: a library that is loaded, and a text with a final NUL.
        unsafe { GetProcAddress(library, name.as_ptr()) }
    }
}
