//! The code and the memory of this process.

use super::{LoadedObject, imports};
use clr_unwind::CodeMap;
pub(crate) use clr_unwind::PeImage as Image;
use clr_unwind::{Memory, Unreadable};
use std::fs::File;
use std::ops::Range;
use std::os::windows::io::AsRawHandle as _;
use std::path::Path;
use std::ptr::{null, null_mut};
use windows_sys::Win32::System::Diagnostics::Debug::ReadProcessMemory;
use windows_sys::Win32::System::Memory::{
    CreateFileMappingW, FILE_MAP_READ, MEM_RESERVE, MapViewOfFile, PAGE_NOACCESS, PAGE_READONLY,
    VirtualAlloc,
};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

/// Beginnings of the names of libraries of languages, outside of the system's folder.
const OF_LANGUAGES: [&str; 7] = [
    "libstdc++-",
    "libgcc_s_",
    "libwinpthread-",
    "libc++.",
    "libunwind.",
    "msvcp140",
    "vcruntime140",
];

/// Returns true if a library is of the system or of a language.
pub(crate) fn is_of_system(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    imports::is_in_system_folder(path) || OF_LANGUAGES.iter().any(|it| name.starts_with(it))
}

/// Returns the difference between the addresses of a loaded module and those of its file.
pub(crate) fn bias(loaded: &LoadedObject, image: &Image<'_>) -> u64 {
    loaded.start().wrapping_sub(image.preferred_base())
}

/// Adds a module's code to a map. Returns false if it overlaps with code that is known.
pub(crate) fn insert(
    map: &mut CodeMap<'static>,
    loaded: &LoadedObject,
    image: &Image<'static>,
) -> bool {
    map.insert_image(loaded.start(), image).is_ok()
}

/// Returns the start of the function with an address (VA), if its unwind data say it.
pub(crate) fn function_start(map: &CodeMap<'_>, address: u64) -> Option<u64> {
    let (region, function) = map.find_function(address)?;
    Some(region.base() + u64::from(function.begin))
}

/// Addresses (VA) at which the simulated process has its code (`clr_codegen::CodeKind::base`), and the size of the parts
/// in which they are reserved.
const SIMULATED: Range<usize> = 0x1_7000_0000..0x1_C000_0000;
const PART: usize = 0x100_0000;

/// Keeps libraries from addresses at which the simulated process has code, as `RtlLookupFunctionEntry` is asked for the
/// code of both. What is loaded already stays.
pub(crate) fn reserve_simulated() {
    for start in SIMULATED.step_by(PART) {
        // SAFETY: addresses that nothing uses yet, or the call fails.
        unsafe { VirtualAlloc(start as *const _, PART, MEM_RESERVE, PAGE_NOACCESS) };
    }
}

/// Maps a file for as long as the process lives.
pub(crate) fn map_file(path: &Path) -> Option<&'static [u8]> {
    let file = File::open(path).ok()?;
    let size = usize::try_from(file.metadata().ok()?.len()).ok().filter(|size| *size > 0)?;
    // SAFETY: a new mapping, which nobody unmaps. Windows refuses to cut off a file that is mapped.
    unsafe {
        let mapping = CreateFileMappingW(file.as_raw_handle(), null(), PAGE_READONLY, 0, 0, null());
        if mapping.is_null() {
            return None;
        }
        let start = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0).Value;
        (!start.is_null()).then(|| std::slice::from_raw_parts(start.cast_const().cast(), size))
    }
}

/// The memory of this process: a read of what is not mapped fails.
pub(crate) struct OwnMemory;

impl Memory for OwnMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let (from, to) = (address as *const _, buffer.as_mut_ptr().cast());
        // SAFETY: room for as many bytes; the system checks the other range.
        let read =
            unsafe { ReadProcessMemory(GetCurrentProcess(), from, to, buffer.len(), null_mut()) };
        if read == 0 { Err(Unreadable { address, len: buffer.len() as u32 }) } else { Ok(()) }
    }
}
