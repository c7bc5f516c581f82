//! The runtime's library, `libcoreclr.so`, as far as profilers look it up: it exports `MetaDataGetDispenser`.
//!
//! The simulated runtime is in no library of that name, so one is made: an ELF image whose export jumps to the function that it has
//! the address of in its data.

use clr_com::{Guid, ProfilerLibrary};
use clr_walker::profiling::HResult;
use clrsim::hosting::get_dispenser;
use std::ffi::c_void;
use std::path::Path;

/// Name of the file, by which profilers find it among those that are mapped, and of the library, by which the loader finds it.
pub const RUNTIME_LIBRARY: &str = "libcoreclr.so";

/// `MetaDataGetDispenser`.
type GetDispenser =
    unsafe extern "system" fn(*const Guid, *const Guid, *mut *mut c_void) -> HResult;

/// Strings of the image, and where each begins.
const STRINGS: &[u8] = b"\0MetaDataGetDispenser\0clrsim_dispenser\0libcoreclr.so\0";
const EXPORT: u64 = 1;
const PLACE: u64 = 22;
const NAME: u64 = 39;

/// Offsets in the image, which are its addresses, too.
const PROGRAM_HEADERS: u64 = 0x40;
const SYMBOLS: u64 = 0x120;
const HASHES: u64 = 0x168;
const TEXTS: u64 = 0x180;
const CODE: u64 = 0x1C0;
const CODE_END: u64 = 0x1C6;
const DYNAMIC: u64 = 0x1000;
const POINTER: u64 = 0x1070;
const END: u64 = 0x1078;

/// Returns the bytes of the library's file, if there is one for this system.
#[must_use]
pub fn runtime_library() -> Option<Vec<u8>> {
    cfg!(all(target_os = "linux", target_arch = "x86_64")).then(image)
}

fn image() -> Vec<u8> {
    let mut image = Image(Vec::new());
    // ELF, 64 bits, little-endian, version 1; ET_DYN, EM_X86_64, version 1.
    image.put(&[0x7F, b'E', b'L', b'F', 2, 1, 1, 0]);
    image.words(&[0, 3 | 0x3E << 16 | 1 << 32, 0, PROGRAM_HEADERS, 0]);
    // No flags; the sizes of this header and of program headers, and the number of these; no sections.
    image.words(&[0x40 << 32 | 0x38 << 48, 4]);
    // PT_LOAD for reading and executing, PT_LOAD and PT_DYNAMIC for reading and writing, PT_GNU_STACK.
    image.segment(1 | 5 << 32, 0, CODE_END, 0x1000);
    image.segment(1 | 6 << 32, DYNAMIC, END - DYNAMIC, 0x1000);
    image.segment(2 | 6 << 32, DYNAMIC, POINTER - DYNAMIC, 8);
    image.segment(0x6474_E551 | 6 << 32, 0, 0, 0x10);
    // Symbols: none, a global function, a global object; their section is none that stands for another thing.
    image.at(SYMBOLS).words(&[0; 3]);
    image.words(&[EXPORT | 0x12 << 32 | 1 << 48, CODE, CODE_END - CODE]);
    image.words(&[PLACE | 0x11 << 32 | 1 << 48, POINTER, 8]);
    // One bucket, with the two of three symbols one after the other.
    image.at(HASHES).words(&[1 | 3 << 32, 1, 2]);
    image.at(TEXTS).put(STRINGS);
    // jmp [rip + …]
    let distance = (POINTER - CODE_END) as u32;
    image.at(CODE).put(&[0xFF, 0x25]).put(&distance.to_le_bytes());
    // DT_SONAME, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_NULL.
    let strings = STRINGS.len() as u64;
    image
        .at(DYNAMIC)
        .words(&[14, NAME, 4, HASHES, 5, TEXTS, 6, SYMBOLS, 10, strings, 11, 24, 0, 0]);
    image.at(END);
    image.0
}

/// An image that grows.
struct Image(Vec<u8>);

impl Image {
    /// Fills up to an offset.
    fn at(&mut self, offset: u64) -> &mut Self {
        self.0.resize(offset as usize, 0);
        self
    }

    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn words(&mut self, words: &[u64]) {
        self.0.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    /// Adds a program header: type and flags, offset and address, size, alignment.
    fn segment(&mut self, kind: u64, offset: u64, size: u64, alignment: u64) {
        self.words(&[kind, offset, offset, offset, size, size, alignment]);
    }
}

/// Loads the library, and lets its export lead to the dispensers of the session that offers them. It stays loaded.
///
/// # Errors
/// Returns the system's message.
pub fn load_runtime_library(path: &Path) -> Result<(), String> {
    let library = ProfilerLibrary::load(path)?;
    let place = library.export(c"clrsim_dispenser").ok_or("it is another library")?;
    // SAFETY: the image has room for a pointer there, and a file of this form is what the caller has written.
    unsafe { place.cast::<GetDispenser>().write(get_dispenser) };
    Ok(())
}
