//! The end of the process, as `exit` of glibc 2.36 makes it (stdlib/exit.c, elf/dl-fini.c): the destructors of the thread's own
//! `thread_local` values, the functions of `atexit` and the destructors of static objects, the last one first, then the
//! functions of libraries. Other threads go on meanwhile.
//!
//! In runtimes 8 to 11 the thread that ends the program does so after `Shutdown`, also by `Environment.Exit`; not after
//! `Environment.FailFast` or an exception that nobody catches.

use super::{Replacement, guest_thread, initialisers, is_of_system};
use clr_explore::CurrentThread;
use libc::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, OnceLock, PoisonError};

/// A function of `__cxa_atexit`, which gets its argument, and one of `on_exit`, which gets the status first.
#[derive(Clone, Copy)]
enum Function {
    AtExit(unsafe extern "C" fn(*mut c_void, c_int)),
    OnExit(unsafe extern "C" fn(c_int, *mut c_void)),
}

/// A function that is called at the end.
struct Handler {
    function: Function,
    argument: usize,
    /// The handle of the library.
    library: usize,
}

static HANDLERS: Mutex<Vec<Handler>> = Mutex::new(Vec::new());

fn with<T>(act: impl FnOnce(&mut Vec<Handler>) -> T) -> T {
    act(&mut HANDLERS.lock().unwrap_or_else(PoisonError::into_inner))
}

fn add(function: Function, argument: *mut c_void, library: usize) -> c_int {
    with(|handlers| handlers.push(Handler { function, argument: argument as usize, library }));
    0
}

unsafe extern "C" fn at_exit(
    function: unsafe extern "C" fn(*mut c_void, c_int),
    argument: *mut c_void,
    library: *mut c_void,
) -> c_int {
    add(Function::AtExit(function), argument, library as usize)
}

unsafe extern "C" fn on_exit(
    function: unsafe extern "C" fn(c_int, *mut c_void),
    argument: *mut c_void,
) -> c_int {
    add(Function::OnExit(function), argument, 0)
}

/// Calls the functions of a library that is unloaded, or, without a handle, all.
unsafe extern "C" fn finalize(library: *mut c_void) {
    let library = library as usize;
    call_all(&|handler| library == 0 || handler.library == library);
}

/// Calls functions, the last one first, also those that are added meanwhile.
fn call_all(is_meant: &dyn Fn(&Handler) -> bool) {
    let next =
        || with(|handlers| handlers.iter().rposition(is_meant).map(|last| handlers.remove(last)));
    while let Some(Handler { function, argument, library }) = next() {
        let is_of_system = initialisers::path_with(library).is_some_and(|path| is_of_system(&path));
        if let (Some(carrier), false) = (guest_thread::current(), is_of_system) {
            // What this destroys may be used by others before, and what was destroyed afterwards.
            carrier.ask(|me| me.point());
        }
        // SAFETY: the guest's function and argument.
        unsafe {
            match function {
                Function::AtExit(function) => function(argument as *mut c_void, 0),
                Function::OnExit(function) => function(0, argument as *mut c_void),
            }
        }
    }
}

/// Returns the function of the C library that calls the destructors of a thread's `thread_local` values. It is found before
/// interleavings, as a thread of the guest may stop in the loader.
pub(in crate::scheduled) fn destroys_values() -> Option<unsafe extern "C" fn()> {
    static FOUND: OnceLock<Option<unsafe extern "C" fn()>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: a text with a final NUL; the function of this name has no arguments.
        unsafe {
            let found = libc::dlsym(libc::RTLD_DEFAULT, c"__call_tls_dtors".as_ptr());
            std::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn()>>(found)
        }
    })
}

/// Ends the process, on a thread of the program: others go on until all is done.
pub(in crate::scheduled) fn exit(me: &CurrentThread<'_, '_>) {
    guest_thread::of(me).execute(me, || {
        if let Some(destroy) = destroys_values() {
            // SAFETY: what it calls belongs to this thread.
            unsafe { destroy() };
        }
        // SAFETY: NULL stands for all libraries.
        unsafe { finalize(null_mut()) };
        initialisers::finish();
    });
}

/// Forgets what other libraries do at the end: it is not for the interleavings of the next one.
pub(in crate::scheduled) fn forget_exit() {
    with(Vec::clear);
    initialisers::forget();
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> [Replacement; 3] {
    replacements! {
        "__cxa_atexit" => at_exit,
        "on_exit" => on_exit,
        "__cxa_finalize" => finalize,
    }
}
