//! A profiler's library, as the CLR and its PAL load it.

use crate::{Bool, Guid};
use clr_walker::profiling::HResult;
use std::ffi::{CStr, c_void};
use std::path::Path;
use std::ptr::{NonNull, null_mut};

/// `DllGetClassObject`, the export by which a runtime gets a profiler.
pub type GetClassObject =
    unsafe extern "system" fn(*const Guid, *const Guid, *mut *mut c_void) -> HResult;

/// `DllMain`.
type DllMain = unsafe extern "system" fn(*mut c_void, u32, *mut c_void) -> Bool;

/// The reason why `DllMain` is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MainReason {
    /// `DLL_PROCESS_DETACH`.
    Detach = 0,
    /// `DLL_PROCESS_ATTACH`.
    Attach = 1,
}

/// A loaded library. It stays loaded unless it is [unloaded](Self::unload).
#[derive(Debug)]
pub struct ProfilerLibrary(NonNull<c_void>);

impl ProfilerLibrary {
    /// Loads a library, and executes its initialisers.
    ///
    /// # Errors
    /// Returns the system's message.
    pub fn load(path: &Path) -> Result<Self, String> {
        system::load(path).map(Self)
    }

    /// Returns the library with a handle of the system.
    ///
    /// # Safety
    /// The handle is that of a library which is loaded, and stays so.
    pub const unsafe fn of(handle: NonNull<c_void>) -> Self {
        Self(handle)
    }

    /// Returns the address of an export.
    pub fn export(&self, name: &CStr) -> Option<NonNull<c_void>> {
        system::export(self.0, name)
    }

    /// Returns `DllGetClassObject`, if the library exports it.
    pub fn get_class_object(&self) -> Option<GetClassObject> {
        let found = self.export(c"DllGetClassObject")?;
        // SAFETY: the documented function of this name.
        Some(unsafe { std::mem::transmute::<*mut c_void, GetClassObject>(found.as_ptr()) })
    }

    /// Calls `DllMain` on Unix, as the PAL does (src/pal/src/loader/module.cpp of CoreCLR 3.1); the loader of Windows calls it
    /// itself. Returns false if it refuses.
    pub fn call_main(&self, reason: MainReason) -> bool {
        let Some(main) = self.export(c"DllMain").filter(|_| cfg!(unix)) else { return true };
        // SAFETY: the documented function of this name, with the documented arguments.
        unsafe {
            let main = std::mem::transmute::<*mut c_void, DllMain>(main.as_ptr());
            main(self.handle(), reason as u32, null_mut()) != 0
        }
    }

    /// Returns the system's handle.
    pub const fn handle(&self) -> *mut c_void {
        self.0.as_ptr()
    }

    /// Unloads the library.
    ///
    /// # Safety
    /// Nothing of the library is called or accessed after this.
    pub unsafe fn unload(self) {
        // SAFETY: the caller's promise.
        unsafe { system::unload(self.0) };
    }
}

#[cfg(unix)]
mod system {
    use std::ffi::{CStr, CString, c_void};
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::ptr::NonNull;

    pub(super) fn load(path: &Path) -> Result<NonNull<c_void>, String> {
        let name = CString::new(path.as_os_str().as_bytes());
        let name = name.map_err(|_| "the path has a NUL".to_owned())?;
        // RTLD_LAZY is the PAL's flag.
        // SAFETY: a text with a final NUL. The library answers for its initialisers.
        let loaded = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY) };
        NonNull::new(loaded).ok_or_else(|| {
            // SAFETY: the message is valid until the next such call on this thread.
            let message = unsafe { libc::dlerror() };
            if message.is_null() {
                return "it cannot be loaded".to_owned();
            }
            // SAFETY: as above; it ends with NUL.
            unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
        })
    }

    pub(super) fn export(library: NonNull<c_void>, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: a library that is loaded, and a text with a final NUL.
        NonNull::new(unsafe { libc::dlsym(library.as_ptr(), name.as_ptr()) })
    }

    pub(super) unsafe fn unload(library: NonNull<c_void>) {
        // SAFETY: a library that is loaded; the caller's promise.
        unsafe { libc::dlclose(library.as_ptr()) };
    }
}

#[cfg(windows)]
mod system {
    use std::ffi::{CStr, c_char, c_void};
    use std::os::windows::ffi::OsStrExt;
    use std::path::Path;
    use std::ptr::NonNull;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn LoadLibraryW(name: *const u16) -> *mut c_void;
        fn GetProcAddress(library: *mut c_void, name: *const c_char) -> *mut c_void;
        fn FreeLibrary(library: *mut c_void) -> i32;
    }

    pub(super) fn load(path: &Path) -> Result<NonNull<c_void>, String> {
        let name: Vec<u16> = path.as_os_str().encode_wide().chain([0]).collect();
        // SAFETY: a text with a final 0. The library answers for its initialisers.
        let loaded = unsafe { LoadLibraryW(name.as_ptr()) };
        NonNull::new(loaded).ok_or_else(|| std::io::Error::last_os_error().to_string())
    }

    pub(super) fn export(library: NonNull<c_void>, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: a library that is loaded, and a text with a final NUL.
        NonNull::new(unsafe { GetProcAddress(library.as_ptr(), name.as_ptr()) })
    }

    pub(super) unsafe fn unload(library: NonNull<c_void>) {
        // SAFETY: a library that is loaded; the caller's promise.
        unsafe { FreeLibrary(library.as_ptr()) };
    }
}

#[cfg(not(any(unix, windows)))]
mod system {
    use std::ffi::{CStr, c_void};
    use std::path::Path;
    use std::ptr::NonNull;

    pub(super) fn load(_: &Path) -> Result<NonNull<c_void>, String> {
        Err("this system has no shared libraries".to_owned())
    }

    pub(super) fn export(_: NonNull<c_void>, _: &CStr) -> Option<NonNull<c_void>> {
        None
    }

    pub(super) unsafe fn unload(_: NonNull<c_void>) {}
}
