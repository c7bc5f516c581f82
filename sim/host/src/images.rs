//! Images of modules, mapped at their addresses in the profiler's process.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

/// The images that sessions of this process have mapped, by address: size, and number of sessions.
static MAPPED: Mutex<BTreeMap<u64, (usize, usize)>> = Mutex::new(BTreeMap::new());

/// An image in memory that can be read, for as long as the session lives. Sessions with the same image share it.
#[derive(Debug)]
pub(crate) struct MappedImage(u64);

impl MappedImage {
    /// Maps an image, or shares it. Returns `None` if something else is at its address.
    pub(crate) fn new(base: u64, bytes: &[u8]) -> Option<Self> {
        let mut mapped = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        let start = usize::try_from(base).ok()? as *mut u8;
        if let Some((size, sessions)) = mapped.get_mut(&base) {
            // SAFETY: the table's lock is held, so that these bytes stay mapped.
            let there = unsafe { std::slice::from_raw_parts(start.cast_const(), *size) };
            if there != bytes {
                return None;
            }
            *sessions += 1;
            return Some(Self(base));
        }
        // SAFETY: the memory is new, and has this size.
        unsafe {
            if !system::reserve(start.cast(), bytes.len()) {
                return None;
            }
            start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            system::protect(start.cast(), bytes.len());
        }
        mapped.insert(base, (bytes.len(), 1));
        Some(Self(base))
    }
}

impl Drop for MappedImage {
    fn drop(&mut self) {
        let mut mapped = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((size, sessions)) = mapped.get_mut(&self.0) else { return };
        *sessions -= 1;
        if *sessions == 0 {
            // SAFETY: `new` has mapped it, and no session has it any more.
            unsafe { system::free(self.0 as *mut c_void, *size) };
            mapped.remove(&self.0);
        }
    }
}

#[cfg(unix)]
mod system {
    use std::ffi::c_void;

    /// Maps memory at an address, if nothing is there.
    pub(super) unsafe fn reserve(start: *mut c_void, size: usize) -> bool {
        let (rights, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: without MAP_FIXED nothing is replaced: the system chooses another address then.
        unsafe {
            let found = libc::mmap(start, size, rights, kind, -1, 0);
            if found != start && found != libc::MAP_FAILED {
                libc::munmap(found, size);
            }
            found == start
        }
    }

    pub(super) unsafe fn protect(start: *mut c_void, size: usize) {
        // SAFETY: the caller's memory.
        unsafe { libc::mprotect(start, size, libc::PROT_READ) };
    }

    pub(super) unsafe fn free(start: *mut c_void, size: usize) {
        // SAFETY: the caller's memory.
        unsafe { libc::munmap(start, size) };
    }
}

#[cfg(windows)]
mod system {
    use std::ffi::c_void;
    use windows_sys::Win32::System::Memory::{
        MEM_COMMIT, MEM_RELEASE, MEM_RESERVE, PAGE_READONLY, PAGE_READWRITE, VirtualAlloc,
        VirtualFree, VirtualProtect,
    };

    /// Maps memory at an address, if nothing is there.
    pub(super) unsafe fn reserve(start: *mut c_void, size: usize) -> bool {
        // SAFETY: it fails if something is there.
        unsafe { VirtualAlloc(start, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) == start }
    }

    pub(super) unsafe fn protect(start: *mut c_void, size: usize) {
        let mut before = 0;
        // SAFETY: the caller's memory.
        unsafe { VirtualProtect(start, size, PAGE_READONLY, &raw mut before) };
    }

    pub(super) unsafe fn free(start: *mut c_void, _: usize) {
        // SAFETY: the caller's memory.
        unsafe { VirtualFree(start, 0, MEM_RELEASE) };
    }
}

#[cfg(not(any(unix, windows)))]
mod system {
    use std::ffi::c_void;

    /// There is no memory to map.
    pub(super) unsafe fn reserve(_: *mut c_void, _: usize) -> bool {
        false
    }

    pub(super) unsafe fn protect(_: *mut c_void, _: usize) {}

    pub(super) unsafe fn free(_: *mut c_void, _: usize) {}
}
