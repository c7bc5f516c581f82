//! Imports of loaded objects, replaced in memory: the relocations of ELF's dynamic section
//! (System V ABI, AMD64 supplement, "Relocation Types").

use crate::scheduled::replacement::{Importer, Replacement};
use std::collections::BTreeSet;
use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::path::PathBuf;

/// Entries of the dynamic section.
const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;

/// Relocations that hold the address of a symbol.
const R_X86_64_64: u32 = 1;
const R_X86_64_GLOB_DAT: u32 = 6;
const R_X86_64_JUMP_SLOT: u32 = 7;

/// Sizes of `Elf64_Rela` and `Elf64_Sym`, in bytes.
const RELA_SIZE: u64 = 24;
const SYMBOL_SIZE: u64 = 24;

/// Objects whose imports stay: the C library calls itself, and the others have no threads.
const KEPT: [&str; 5] = ["libc.so", "ld-linux", "libm.so", "libgcc_s.so", "libdl.so"];

/// Returns true if the object of this name, a path, or "" for the program itself, is none of the guest.
pub(super) fn is_kept(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or_default();
    file.is_empty() || KEPT.iter().any(|kept| file.starts_with(kept))
}

/// A loaded object: the addresses (VA) of its base, of its first and last bytes, and of its dynamic section.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LoadedObject {
    name: String,
    base: u64,
    start: u64,
    end: u64,
    dynamic: u64,
}

/// Returns the loaded objects.
pub(crate) fn loaded_objects() -> BTreeSet<LoadedObject> {
    unsafe extern "C" fn collect(
        info: *mut libc::dl_phdr_info,
        _: usize,
        found: *mut c_void,
    ) -> c_int {
        // SAFETY: `dl_iterate_phdr` passes a valid entry, and the set from below.
        let (info, found) = unsafe { (&*info, &mut *found.cast::<BTreeSet<LoadedObject>>()) };
        let headers = if info.dlpi_phdr.is_null() {
            &[]
        } else {
            // SAFETY: the program headers of a loaded object.
            unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) }
        };
        let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC);
        let name = if info.dlpi_name.is_null() {
            String::new()
        } else {
            // SAFETY: a text with a final NUL.
            unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy().into_owned()
        };
        if let Some(dynamic) = dynamic {
            let base = info.dlpi_addr;
            let loaded = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
            let bounds = loaded.map(|header| (header.p_vaddr, header.p_vaddr + header.p_memsz));
            let (start, end) = bounds
                .reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
                .unwrap_or_default();
            let [start, end, dynamic] =
                [start, end, dynamic.p_vaddr].map(|at| base.wrapping_add(at));
            found.insert(LoadedObject { name, base, start, end, dynamic });
        }
        0
    }
    let mut found = BTreeSet::new();
    // SAFETY: the function gets the set that it expects, and nothing else uses the set meanwhile.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut found).cast()) };
    found
}

/// Tables of a dynamic section (VA), and sizes in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Tables {
    strings: u64,
    symbols: u64,
    relocations: [(u64, u64); 2],
}

impl LoadedObject {
    /// Returns the path of the object's file.
    pub(crate) fn path(&self) -> PathBuf {
        let is_program = self.name.is_empty();
        if is_program { PathBuf::from("/proc/self/exe") } else { PathBuf::from(&self.name) }
    }

    /// Returns the address that its file's addresses are relative to (VA).
    pub(crate) const fn base(&self) -> u64 {
        self.base
    }

    /// Returns the address of the first byte (VA).
    pub(crate) const fn start(&self) -> u64 {
        self.start
    }

    /// Returns the addresses of its bytes (VA).
    pub(crate) const fn code(&self) -> Range<u64> {
        self.start..self.end
    }

    /// Returns true if the kernel has put the object there: calls of the system may be in its code.
    pub(super) fn is_of_kernel(&self) -> bool {
        self.name.starts_with("linux-vdso")
    }

    /// Returns a word of the object.
    ///
    /// # Safety
    /// The word is within the loaded object.
    unsafe fn word(at: u64) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { (at as *const u64).read_unaligned() }
    }

    /// Returns an address of the dynamic section: the loader has relocated most of them.
    const fn relocated(&self, address: u64) -> u64 {
        if address < self.base { address.wrapping_add(self.base) } else { address }
    }

    fn tables(&self) -> Tables {
        let mut tables = Tables::default();
        let [mut rela, mut plt] = [(0, 0); 2];
        for entry in 0.. {
            let at = self.dynamic + 16 * entry;
            // SAFETY: the dynamic section ends with an entry of type 0.
            let (kind, value) = unsafe { (Self::word(at).cast_signed(), Self::word(at + 8)) };
            match kind {
                0 => break,
                DT_STRTAB => tables.strings = self.relocated(value),
                DT_SYMTAB => tables.symbols = self.relocated(value),
                DT_RELA => rela.0 = self.relocated(value),
                DT_RELASZ => rela.1 = value,
                DT_JMPREL => plt.0 = self.relocated(value),
                DT_PLTRELSZ => plt.1 = value,
                _ => {}
            }
        }
        tables.relocations = [rela, plt];
        tables
    }
}

/// Overwrites a word of a loaded object, whose page may be read-only after its relocation.
pub(super) fn write(at: u64, value: u64) -> Result<(), u64> {
    let page = at & !0xFFF;
    let len = at + 8 - page;
    // SAFETY: pages of a loaded object: data, which stays readable and becomes writable.
    let done = unsafe {
        libc::mprotect(page as *mut c_void, len as usize, libc::PROT_READ | libc::PROT_WRITE)
    };
    if done != 0 {
        return Err(page);
    }
    // SAFETY: a place that the loader has written, too; no other thread uses it yet.
    unsafe { (at as *mut u64).write_unaligned(value) };
    Ok(())
}

impl Importer for LoadedObject {
    fn is_replaced(&self) -> bool {
        !is_kept(&self.name)
    }

    fn replace_imports(&self, replacements: &[Replacement]) -> Result<(), u64> {
        let Tables { strings, symbols, relocations } = self.tables();
        for (table, size) in relocations {
            for entry in 0..size / RELA_SIZE {
                let at = table + RELA_SIZE * entry;
                // SAFETY: the loader has read the same tables.
                let (place, info) = unsafe { (Self::word(at), Self::word(at + 8)) };
                let kind = info as u32;
                if !matches!(kind, R_X86_64_64 | R_X86_64_GLOB_DAT | R_X86_64_JUMP_SLOT) {
                    continue;
                }
                let symbol = symbols + SYMBOL_SIZE * (info >> 32);
                // SAFETY: as above; names end with NUL.
                let name = unsafe {
                    let name = strings + (Self::word(symbol) & 0xFFFF_FFFF);
                    CStr::from_ptr(name as *const _)
                };
                let found = replacements.iter().find(|it| name.to_bytes() == it.name.as_bytes());
                if let Some(found) = found {
                    write(self.base.wrapping_add(place), found.with as u64)?;
                }
            }
        }
        Ok(())
    }
}
