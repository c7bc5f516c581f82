//! The code and the memory of this process.

use super::LoadedObject;
use clr_unwind::CodeMap;
pub(crate) use clr_unwind::ElfImage as Image;
use clr_unwind::{Memory, Unreadable};
use std::ffi::c_void;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Beginnings of the names of libraries of the system and of languages.
const SYSTEM: [&str; 7] =
    ["libc.so", "libm.so", "ld-linux", "libgcc_s.so", "libstdc++.so", "libc++.so", "libc++abi.so"];

/// Returns true if a library is of the system or of a language.
pub(crate) fn is_of_system(path: &Path) -> bool {
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    SYSTEM.iter().any(|name| file.starts_with(name))
}

/// Returns the difference between the addresses of a loaded object and those of its file.
pub(crate) const fn bias(loaded: &LoadedObject, _: &Image<'_>) -> u64 {
    loaded.base()
}

/// Adds an object's code to a map. Returns false if it overlaps with code that is known.
pub(crate) fn insert(
    map: &mut CodeMap<'static>,
    loaded: &LoadedObject,
    image: &Image<'static>,
) -> bool {
    map.insert_elf(loaded.start(), image).is_ok()
}

/// Returns the start of the function with an address (VA), if its unwind data say it.
pub(crate) fn function_start(map: &CodeMap<'_>, address: u64) -> Option<u64> {
    let (region, rva) = map.find(address)?;
    let function = region.cfi()?.function(rva)?;
    Some(address - u64::from(rva - function.start))
}

/// Maps a file for as long as the process lives.
pub(crate) fn map_file(path: &Path) -> Option<&'static [u8]> {
    let file = File::open(path).ok()?;
    let size = usize::try_from(file.metadata().ok()?.len()).ok().filter(|size| *size > 0)?;
    let (protection, flags) = (libc::PROT_READ, libc::MAP_PRIVATE);
    // SAFETY: a new mapping, which nobody unmaps. A file that is cut off meanwhile ends this process with SIGBUS, as its
    // library does, of which the loader has mapped the same pages: the process is the guest's own, and its end a verdict.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), size, protection, flags, file.as_raw_fd(), 0);
        (start != libc::MAP_FAILED)
            .then(|| std::slice::from_raw_parts(start.cast_const().cast(), size))
    }
}

/// The memory of this process: a read of what is not mapped fails.
pub(crate) struct OwnMemory;

impl Memory for OwnMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: buffer.len() };
        // SAFETY: the local range is `buffer`; the kernel checks the other one.
        let read = unsafe {
            let process = libc::getpid();
            libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0)
        };
        if usize::try_from(read) == Ok(buffer.len()) {
            Ok(())
        } else {
            Err(Unreadable { address, len: buffer.len() as u32 })
        }
    }
}
