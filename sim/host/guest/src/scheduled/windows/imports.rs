//! Import address tables of loaded modules, replaced in memory (PE format, "The .idata Section" and "Delay-Load Import
//! Tables").

use super::{Replacement, c_heap};
use crate::scheduled::replacement::Importer;
use std::collections::BTreeSet;
use std::ffi::{CStr, OsString};
use std::ops::Range;
use std::os::windows::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use windows_sys::Win32::Foundation::{HMODULE, MAX_PATH};
use windows_sys::Win32::System::LibraryLoader::{GetModuleFileNameW, GetModuleHandleW};
use windows_sys::Win32::System::Memory::{PAGE_READWRITE, VirtualProtect};
use windows_sys::Win32::System::ProcessStatus::{
    K32EnumProcessModules, K32GetModuleInformation, MODULEINFO,
};
use windows_sys::Win32::System::SystemInformation::GetWindowsDirectoryW;
use windows_sys::Win32::System::Threading::GetCurrentProcess;

/// Place of the offset of the headers in a module, in bytes, and of the tables in the headers of PE32+: those of the
/// import directory and of the delay-load import directory.
const HEADERS: u64 = 0x3C;
const IMPORTS: u64 = 0x90;
const DELAYED: u64 = 0xF0;
/// Places in the headers of the offset (RVA) of the entry point, and of that of the TLS directory; and in that the address (VA) of
/// the list of callbacks, which ends with 0.
const ENTRY: u64 = 0x28;
const THREADS: u64 = 0xD0;
const CALLBACKS: u64 = 0x18;

/// Sizes of entries in bytes: an import descriptor has the tables of names and of addresses at 0 and 0x10, a delay-load
/// descriptor has those of addresses and of names at 0xC and 0x10.
const IMPORT_SIZE: u64 = 0x14;
const DELAYED_SIZE: u64 = 0x20;

/// Bit of an entry that has a number in place of a name.
const BY_NUMBER: u64 = 1 << 63;

/// Beginnings of the names of libraries of languages in the system's folder, whose imports are replaced: they wait for
/// the guest.
const OF_LANGUAGES: [&str; 2] = ["msvcp", "concrt"];

/// A loaded module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LoadedObject {
    path: PathBuf,
    start: u64,
    size: u64,
}

/// Returns the text that a function of the system writes into a buffer, whose length it returns.
fn text(write: impl FnOnce(*mut u16, u32) -> u32) -> OsString {
    // A longer path is cut, and found nowhere.
    let mut buffer = [0; 4 * MAX_PATH as usize];
    let len = write(buffer.as_mut_ptr(), buffer.len() as u32) as usize;
    OsString::from_wide(buffer.get(..len).unwrap_or_default())
}

/// Returns the loaded modules.
pub(crate) fn loaded_objects() -> BTreeSet<LoadedObject> {
    let mut modules: [HMODULE; 1024] = [std::ptr::null_mut(); 1024];
    let mut size = 0;
    // SAFETY: room for handles, and its size in bytes.
    let listed = unsafe {
        let (at, room) = (modules.as_mut_ptr(), size_of_val(&modules) as u32);
        K32EnumProcessModules(GetCurrentProcess(), at, room, &raw mut size)
    };
    let count = if listed == 0 { 0 } else { size as usize / size_of::<HMODULE>() };
    modules.iter().take(count).filter_map(|module| loaded(*module)).collect()
}

/// Places in the system's data about a process, in bytes (winternl.h, and the debugger's `!peb`): of the loader's data in those of
/// the process, of the list of modules in order of initialisation there, and of a module's address behind its links in that
/// list.
const LOADER_DATA: usize = 0x18;
const INITIALISED: usize = 0x30;
const MODULE: usize = 0x10;

/// Returns the loaded modules in the order in which they were initialised. This thread is the only one that executes.
pub(super) fn in_order_of_initialisation() -> Vec<LoadedObject> {
    let mut found = Vec::new();
    // SAFETY: the system's data about this process, whose list is a circle, and which no other thread changes meanwhile.
    unsafe {
        let process: usize;
        std::arch::asm!("mov {}, gs:[0x60]", out(reg) process, options(nostack, pure, readonly));
        let read = |at: usize| (at as *const usize).read();
        let head = read(process + LOADER_DATA) + INITIALISED;
        let mut link = read(head);
        while link != head {
            found.extend(loaded(read(link + MODULE) as HMODULE));
            link = read(link);
        }
    }
    found
}

fn loaded(module: HMODULE) -> Option<LoadedObject> {
    // SAFETY: plain data.
    let mut found: MODULEINFO = unsafe { std::mem::zeroed() };
    // SAFETY: a module of this process, and room for its place.
    let known = unsafe {
        let size = size_of::<MODULEINFO>() as u32;
        K32GetModuleInformation(GetCurrentProcess(), module, &raw mut found, size)
    };
    // SAFETY: room for a text of this length.
    let path = text(|at, len| unsafe { GetModuleFileNameW(module, at, len) });
    (known != 0).then(|| LoadedObject {
        path: path.into(),
        start: found.lpBaseOfDll as u64,
        size: found.SizeOfImage.into(),
    })
}

/// Returns true if a file is in the system's folder.
pub(super) fn is_in_system_folder(path: &Path) -> bool {
    // SAFETY: room for a text of this length.
    let folder = text(|at, len| unsafe { GetWindowsDirectoryW(at, len) });
    let lower = |path: &Path| path.to_string_lossy().to_lowercase();
    // The PAL of wine, too, calls a path \\?\C:\….
    lower(path).trim_start_matches(r"\\?\").starts_with(&lower(folder.as_ref()))
}

impl LoadedObject {
    /// Returns the path of the module's file.
    pub(crate) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Returns the address of the first byte (VA).
    pub(crate) const fn start(&self) -> u64 {
        self.start
    }

    /// Returns the addresses of its bytes (VA).
    pub(crate) const fn code(&self) -> Range<u64> {
        self.start..self.start + self.size
    }

    /// Returns the address (VA) of the entry point.
    pub(super) fn entry_point(&self) -> Option<u64> {
        let entry = u64::from(self.read(u64::from(self.read(HEADERS)) + ENTRY));
        (entry != 0).then_some(self.start + entry)
    }

    /// Returns the addresses (VA) of the functions that the loader calls at the begin and the end of threads.
    pub(super) fn thread_callbacks(&self) -> Vec<u64> {
        let directory = u64::from(self.read(u64::from(self.read(HEADERS)) + THREADS));
        if directory == 0 {
            return Vec::new();
        }
        let list = self.word(directory + CALLBACKS).wrapping_sub(self.start);
        let callbacks = (0..).step_by(8).map(|at| self.word(list.saturating_add(at)));
        callbacks.take_while(|callback| *callback != 0).collect()
    }

    /// Returns a number in the module, or 0 outside of it.
    fn read(&self, rva: u64) -> u32 {
        if rva.saturating_add(4) > self.size {
            return 0;
        }
        // SAFETY: within the loaded module.
        unsafe { ((self.start + rva) as *const u32).read_unaligned() }
    }

    fn word(&self, rva: u64) -> u64 {
        u64::from(self.read(rva)) | u64::from(self.read(rva.saturating_add(4))) << 32
    }

    /// Replaces imports from one library: `names` and `addresses` are its tables (RVA).
    fn replace(&self, names: u64, addresses: u64, replacements: &[Replacement]) -> Result<(), u64> {
        for entry in (0..).step_by(8) {
            let name = self.word(names + entry);
            if names == 0 || name == 0 {
                break;
            }
            // A name is behind a number of two bytes.
            if name & BY_NUMBER != 0 || name + 3 > self.size {
                continue;
            }
            // SAFETY: within the loaded module, whose names end with NUL.
            let name = unsafe { CStr::from_ptr((self.start + name + 2) as *const _) };
            let found = replacements.iter().find(|it| name.to_bytes() == it.name.as_bytes());
            let before = self.word(addresses + entry);
            let found = found.filter(|_| c_heap::may_replace(name.to_bytes(), before));
            if let Some(found) = found {
                write(self.start + addresses + entry, found.with as u64)?;
            }
        }
        Ok(())
    }
}

/// Overwrites a word of a loaded module, whose page may be read-only.
fn write(at: u64, value: u64) -> Result<(), u64> {
    let mut before = 0;
    let place = at as *mut u64;
    // SAFETY: a word of a loaded module's table of addresses, which stays readable and becomes writable; no other
    // thread uses it yet.
    unsafe {
        if VirtualProtect(place.cast(), 8, PAGE_READWRITE, &raw mut before) == 0 {
            return Err(at & !0xFFF);
        }
        place.write_unaligned(value);
        VirtualProtect(place.cast(), 8, before, &raw mut before);
    }
    Ok(())
}

impl Importer for LoadedObject {
    fn is_replaced(&self) -> bool {
        // SAFETY: NULL asks for the program.
        let program = unsafe { GetModuleHandleW(std::ptr::null()) } as u64;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        self.start != program
            && (!is_in_system_folder(&self.path)
                || OF_LANGUAGES.iter().any(|language| name.starts_with(language)))
    }

    fn replace_imports(&self, replacements: &[Replacement]) -> Result<(), u64> {
        let headers = u64::from(self.read(HEADERS));
        let tables = [(IMPORTS, IMPORT_SIZE, 0, 0x10), (DELAYED, DELAYED_SIZE, 0x10, 0xC)];
        for (directory, size, names, addresses) in tables {
            let mut at = u64::from(self.read(headers + directory));
            // An entry of zeros is the end.
            while at != 0 && self.read(at + addresses) != 0 {
                let [names, addresses] = [names, addresses].map(|it| u64::from(self.read(at + it)));
                self.replace(names, addresses, replacements)?;
                at += size;
            }
        }
        Ok(())
    }
}
