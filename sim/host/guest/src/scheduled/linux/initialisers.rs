//! Libraries whose initialisers are executed when their imports lead to the scheduler, and their finalisers at the end.
//!
//! The loader calls a function for debuggers when it has mapped a library, before it executes initialisers: `r_brk` in link.h
//! of glibc 2.36 (`dl_open_worker_begin` in elf/dl-open.c). Here that function takes them out of what is new.

use super::imports::{LoadedObject, is_kept, loaded_objects, write};
use super::replacements;
use crate::scheduled::replacement::replace_imports;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

/// Entries of the dynamic section.
const DT_INIT: i64 = 12;
const DT_FINI: i64 = 13;
const DT_INIT_ARRAY: i64 = 25;
const DT_FINI_ARRAY: i64 = 26;
const DT_INIT_ARRAYSZ: i64 = 27;
const DT_FINI_ARRAYSZ: i64 = 28;
/// `RT_CONSISTENT`: nothing is being mapped.
const CONSISTENT: c_int = 0;
/// The code of the loader's function: a return, and what fills up the room to the next function.
const RETURN: [u8; 4] = [0xC3, 0x66, 0x66, 0x2E];
/// Length of a jump to any address, which takes its place.
const JUMP: usize = 12;

/// `r_debug`.
#[repr(C)]
struct Debug {
    version: c_int,
    first: *const Map,
    function: usize,
    state: c_int,
}

/// `link_map`.
#[repr(C)]
struct Map {
    base: u64,
    name: *const c_char,
    dynamic: u64,
    next: *const Map,
}

/// An initialiser, with the arguments that the loader passes.
type Initialiser = extern "C" fn(c_int, *const *const c_char, *const *const c_char);
/// A finaliser: a function that the loader calls at the end.
type Finaliser = extern "C" fn();

/// The addresses (VA) of functions of an object: of one, and of a table of others, with its size in bytes.
#[derive(Clone, Copy, Default)]
struct Functions {
    one: u64,
    table: u64,
    size: u64,
}

/// The initialisers and the finalisers of a loaded object, which the loader does not call. The base address, and that of the
/// dynamic section (VA), say which object it is.
#[derive(Clone, Copy, Default)]
struct Taken {
    base: u64,
    dynamic: u64,
    first: Functions,
    last: Functions,
}

/// The dynamic sections of known objects, the objects whose initialisers are held back, and those that are initialised.
struct Held {
    known: BTreeSet<u64>,
    new: Vec<Taken>,
    initialised: Vec<Taken>,
}

static HELD: Mutex<Held> =
    Mutex::new(Held { known: BTreeSet::new(), new: Vec::new(), initialised: Vec::new() });

/// The arguments of this process, as the loader passes them to initialisers: some look behind them.
static ARGUMENTS: AtomicPtr<*const c_char> = AtomicPtr::new(null_mut());
static COUNT: AtomicI32 = AtomicI32::new(0);

extern "C" fn note_arguments(
    count: c_int,
    arguments: *const *const c_char,
    _: *const *const c_char,
) {
    COUNT.store(count, Ordering::Relaxed);
    ARGUMENTS.store(arguments.cast_mut(), Ordering::Relaxed);
}

// SAFETY: the loader calls what is in this section with these arguments.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTES_ARGUMENTS: Initialiser = note_arguments;

/// Stands for an initialiser that is held back.
extern "C" fn nothing(_: c_int, _: *const *const c_char, _: *const *const c_char) {}

fn with_held<T>(act: impl FnOnce(&mut Held) -> T) -> T {
    act(&mut HELD.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns the loader's state for debuggers.
fn debug() -> Option<&'static Debug> {
    // SAFETY: a text with a final NUL, and the variable of this name.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_r_debug".as_ptr()).cast::<Debug>().as_ref() }
}

/// Returns the objects that are mapped.
fn maps() -> impl Iterator<Item = &'static Map> {
    let first = debug().map_or(std::ptr::null(), |debug| debug.first);
    // SAFETY: the loader's list, which it does not change meanwhile.
    std::iter::successors(unsafe { first.as_ref() }, |map| unsafe { map.next.as_ref() })
}

/// Takes the initialisers and the finalisers out of an object.
fn take(map: &Map) -> Option<Taken> {
    let mut taken = Taken { base: map.base, dynamic: map.dynamic, ..Taken::default() };
    for entry in 0.. {
        let at = map.dynamic + 16 * entry;
        // SAFETY: the dynamic section ends with an entry of type 0.
        let (kind, value) = unsafe { (*(at as *const i64), *((at + 8) as *const u64)) };
        let address = map.base.wrapping_add(value);
        let no_function = (nothing as *const () as u64).wrapping_sub(map.base);
        let (place, value, instead) = match kind {
            0 => break,
            DT_INIT => (&mut taken.first.one, address, no_function),
            DT_FINI => (&mut taken.last.one, address, no_function),
            DT_INIT_ARRAYSZ => (&mut taken.first.size, value, 0),
            DT_FINI_ARRAYSZ => (&mut taken.last.size, value, 0),
            DT_INIT_ARRAY => (&mut taken.first.table, address, value),
            DT_FINI_ARRAY => (&mut taken.last.table, address, value),
            _ => continue,
        };
        *place = value;
        write(at + 8, instead).ok()?;
    }
    Some(taken)
}

impl Taken {
    /// Gives the loader the last functions back.
    fn give_back(&self) {
        for entry in 0.. {
            let at = self.dynamic + 16 * entry;
            // SAFETY: as in `take`: the object is loaded.
            let value = match unsafe { *(at as *const i64) } {
                0 => return,
                DT_FINI => self.last.one.wrapping_sub(self.base),
                DT_FINI_ARRAYSZ => self.last.size,
                _ => continue,
            };
            // What cannot be written was not taken.
            let _ = write(at + 8, value);
        }
    }
}

impl Functions {
    /// Returns the functions of the table. The loader leaves some places out.
    fn of_table(self) -> impl DoubleEndedIterator<Item = usize> {
        let places = (0..self.size / 8).map(move |at| self.table + 8 * at);
        // SAFETY: the table of a loaded object, which is relocated.
        let all = places.map(|place| unsafe { *(place as *const usize) });
        all.filter(|function| *function != 0 && *function != usize::MAX)
    }

    /// Returns the function beside the table.
    fn alone(self) -> Option<usize> {
        Some(self.one as usize).filter(|function| *function != 0)
    }
}

/// Called by the loader.
extern "C" fn changed() {
    if debug().is_none_or(|debug| debug.state != CONSISTENT) {
        return;
    }
    with_held(|held| {
        for map in maps() {
            // SAFETY: a text with a final NUL.
            let name = unsafe { CStr::from_ptr(map.name) }.to_string_lossy();
            if held.known.insert(map.dynamic) && !is_kept(&name) {
                held.new.extend(take(map));
            }
        }
    });
}

/// Has the loader call `changed`. Without success it executes initialisers itself.
fn hold_back() {
    with_held(|held| held.known = maps().map(|map| map.dynamic).collect());
    let Some(function) = debug().map(|debug| debug.function) else { return };
    let jump = [&[0x48, 0xB8], &(changed as *const () as u64).to_le_bytes()[..], &[0xFF, 0xE0]];
    let jump: Vec<u8> = jump.concat();
    let (page, all) = (function & !0xFFF, libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC);
    // SAFETY: code of the loader, which no other thread executes: the guest's threads run one at a time. It is as long as
    // the jump, as its padding shows.
    unsafe {
        let code = function as *mut u8;
        let is_known = std::slice::from_raw_parts(code, RETURN.len()) == RETURN
            && function % 16 == 0
            && libc::mprotect(page as *mut c_void, 0x1000, all) == 0;
        if is_known {
            std::ptr::copy_nonoverlapping(jump.as_ptr(), code, JUMP);
        }
    }
}

/// Loads a library, and what it needs; their imports lead to the scheduler. Returns the system's handle, and the objects that
/// are new. Their initialisers are [executed](initialise) afterwards.
///
/// # Safety
/// The path is NULL or ends with NUL.
pub(super) unsafe fn open(path: *const c_char, flags: c_int) -> (*mut c_void, Vec<LoadedObject>) {
    let before = loaded_objects();
    hold_back();
    // SAFETY: the caller's promise.
    let library = unsafe { libc::dlopen(path, flags) };
    if library.is_null() {
        // The loader has unmapped what it had mapped.
        let mapped: BTreeSet<_> = maps().map(|map| map.dynamic).collect();
        with_held(|held| held.new.retain(|taken| mapped.contains(&taken.dynamic)));
    }
    let new: Vec<_> = loaded_objects().difference(&before).cloned().collect();
    // A page that stays read-only leaves the imports as they are.
    let _ = replace_imports(&new, &replacements());
    (library, new)
}

/// Number of calls of [`open_library`].
static OPENED: AtomicI32 = AtomicI32::new(0);

/// Loads a library as the runtime does, without its initialisers. Returns the system's handle, and the objects that are new. It
/// stays loaded until it is [unloaded](unload).
pub(in crate::scheduled) fn open_library(path: &Path) -> (*mut c_void, Vec<LoadedObject>) {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else {
        return (null_mut(), Vec::new());
    };
    OPENED.fetch_add(1, Ordering::Relaxed);
    // Names are bound at once, so that not each interleaving binds those that it calls. A library that a CLR loads although it
    // lacks some is loaded here, too.
    // SAFETY: a text with a final NUL.
    let open_with = |binding| unsafe { open(name.as_ptr(), binding) };
    let bound = open_with(libc::RTLD_NOW);
    if bound.0.is_null() { open_with(libc::RTLD_LAZY) } else { bound }
}

/// Returns this process's arguments as initialisers get them. Behind the environment the kernel has put its auxiliary vector: here
/// without the kernel's own library (`AT_SYSINFO_EHDR`), whose clocks are real, and with the same random bytes each time
/// (`AT_RANDOM`). Go's runtime reads it (`sysargs` in runtime/os_linux.go of Go 1.19).
fn stable_arguments() -> *const *const c_char {
    static RANDOM: [u8; 16] = *b"clr-sim clr-sim ";
    let arguments = ARGUMENTS.load(Ordering::Relaxed).cast_const().cast::<u64>();
    let mut words = Vec::new();
    // SAFETY: the arguments and the environment each end with NULL, the vector with an entry of type 0 (System V ABI, AMD64
    // supplement, "Initial Stack and Register State").
    unsafe {
        let mut next = arguments;
        let mut read = || {
            let word = *next;
            next = next.add(1);
            word
        };
        for _ in ["arguments", "environment"] {
            words.extend(std::iter::from_fn(|| Some(read()).filter(|word| *word != 0)));
            words.push(0);
        }
        loop {
            let (kind, value) = (read(), read());
            match kind {
                libc::AT_SYSINFO_EHDR => continue,
                libc::AT_RANDOM => words.extend([kind, RANDOM.as_ptr() as u64]),
                _ => words.extend([kind, value]),
            }
            if kind == libc::AT_NULL {
                break;
            }
        }
    }
    // A library may keep them.
    words.leak().as_ptr().cast()
}

/// Executes the initialisers that are held back: those of what a library needs come first.
pub(in crate::scheduled) fn initialise() {
    let held = with_held(|held| std::mem::take(&mut held.new));
    let count = COUNT.load(Ordering::Relaxed);
    let arguments = stable_arguments();
    // The environment comes after them, and their end.
    let environment = arguments.wrapping_add(usize::try_from(count).unwrap_or_default() + 1);
    for taken in held.into_iter().rev() {
        with_held(|held| held.initialised.push(taken));
        for function in taken.first.alone().into_iter().chain(taken.first.of_table()) {
            // SAFETY: an initialiser of the object, with the loader's arguments.
            let function = unsafe { std::mem::transmute::<usize, Initialiser>(function) };
            function(count, arguments, environment);
        }
    }
}

/// Unloads a library that was opened here, and once by the runtime; the loader calls the last functions of what it unloads. A library
/// that cannot be unloaded, as g++ makes many, stays.
pub(crate) fn unload(library: *mut c_void) {
    let all = with_held(|held| std::mem::take(&mut held.initialised));
    all.iter().for_each(Taken::give_back);
    for _ in 0..=OPENED.load(Ordering::Relaxed) {
        // SAFETY: a handle of the library.
        unsafe { libc::dlclose(library) };
    }
    let left = maps().filter(|map| all.iter().any(|taken| taken.dynamic == map.dynamic));
    let left: Vec<_> = left.filter_map(take).collect();
    // The order stays.
    let left = all.into_iter().filter(|one| left.iter().any(|left| left.dynamic == one.dynamic));
    with_held(|held| held.initialised.extend(left));
}

/// Forgets the objects that are initialised.
pub(super) fn forget() {
    with_held(|held| held.initialised.clear());
}

/// Calls the last functions of all objects: those of what others need come last.
pub(super) fn finish() {
    while let Some(taken) = with_held(|held| held.initialised.pop()) {
        for function in taken.last.of_table().rev().chain(taken.last.alone()) {
            // SAFETY: a function of the object, which is still loaded.
            let function = unsafe { std::mem::transmute::<usize, Finaliser>(function) };
            function();
        }
    }
}

/// Returns the path of the object that an address is in.
pub(super) fn path_with(address: usize) -> Option<PathBuf> {
    let before = maps().filter(|map| map.base <= address as u64);
    let map = before.max_by_key(|map| map.base).filter(|_| address != 0)?;
    // SAFETY: a text with a final NUL.
    let name = unsafe { CStr::from_ptr(map.name) };
    Some(PathBuf::from(name.to_string_lossy().into_owned()))
}
