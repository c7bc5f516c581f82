//! Threads that the guest starts.

use super::handles::{self, Kind};
use super::{Bool, current, scheduled};
use crate::scheduled::guest_thread::{self, GuestThread};
use crate::scheduled::{Replacement, objects};
use clr_explore::{CurrentThread, LockKind, ProfilerLock};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windows_sys::Win32::Foundation::{
    DUPLICATE_SAME_ACCESS, DuplicateHandle, ERROR_INVALID_PARAMETER, HANDLE,
};
use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;
use windows_sys::Win32::System::Threading::{
    CREATE_SUSPENDED, CreateEventW, CreateThread, ExitThread, GetCurrentProcess,
    GetCurrentThreadId, INFINITE, OpenThread, WaitForSingleObject,
};

/// Real time that a thread has to begin.
const TO_BEGIN: Duration = Duration::from_secs(5);

/// The code of a thread: that of `CreateThread`, and that of `_beginthread`, whose result is not used.
pub(super) type Code = unsafe extern "system" fn(*mut c_void) -> u32;

/// The code of a thread, and its argument.
struct Start {
    carrier: Arc<GuestThread>,
    code: Code,
    argument: *mut c_void,
}

/// Returns the lock of the system's loader, which calls the guest at the begin and at the end of each thread.
pub(super) fn loader(me: &CurrentThread<'_, '_>) -> ProfilerLock {
    objects::lock(me, objects::place::LOADER, LockKind::Reentrant, "loader of the process")
}

/// Calls the system's loader, which calls libraries of the guest, as the only thread.
pub(super) fn in_loader<T>(call: impl FnOnce() -> T) -> T {
    let asked = current();
    if let Some(carrier) = &asked {
        carrier.ask(|me| me.acquire(loader(me)));
    }
    let done = call();
    if let Some(carrier) = &asked {
        carrier.ask(|me| me.unlock(loader(me)));
    }
    done
}

/// Waits until a thread of the system is the scheduler's. Its loader calls the guest before.
fn wait_until_begun(carrier: &GuestThread) {
    let begun = Instant::now();
    while carrier.id().is_none() && begun.elapsed() < TO_BEGIN {
        std::thread::yield_now();
    }
}

/// Starts a thread of the system for one of the interleaving, as the only thread that is in the system's loader.
pub(in crate::scheduled) fn starting(
    me: &CurrentThread<'_, '_>,
    start: impl FnOnce() -> Arc<GuestThread>,
) -> Arc<GuestThread> {
    let loader = loader(me);
    me.acquire(loader);
    let carrier = start();
    wait_until_begun(&carrier);
    me.unlock(loader);
    carrier
}

/// Enters the end of this thread, at which the system's loader calls the guest. The thread's coroutine leaves it.
fn enter_end() {
    if let Some(carrier) = current() {
        carrier.ask(|me| me.acquire(loader(me)));
    }
}

/// Executes the code of a thread, once the scheduler has chosen it.
unsafe extern "system" fn run(start: *mut c_void) -> u32 {
    // SAFETY: `start` is the box of `create`.
    let Start { carrier, code, argument } = *unsafe { Box::from_raw(start.cast::<Start>()) };
    carrier.begin();
    drop(carrier);
    // SAFETY: the guest's code and argument.
    let result = unsafe { code(argument) };
    enter_end();
    result
}

/// Lets the coroutine know when a thread has ended, after the guest's code that the loader calls then.
fn watch(thread: HANDLE, carrier: Arc<GuestThread>) {
    let mut own = null_mut();
    // SAFETY: a handle of this process, and room for another one.
    unsafe {
        let process = GetCurrentProcess();
        DuplicateHandle(process, thread, process, &raw mut own, 0, 0, DUPLICATE_SAME_ACCESS);
    }
    let own = own as usize;
    std::thread::spawn(move || {
        // SAFETY: a handle that nothing else uses.
        unsafe { WaitForSingleObject(own as HANDLE, INFINITE) };
        carrier.end();
    });
}

/// Starts a thread. Returns its handle and its number, or NULL.
fn create(
    mine: &super::Current,
    (security, stack): (*const SECURITY_ATTRIBUTES, usize),
    (code, argument): (Code, *mut c_void),
    flags: u32,
    name: Option<&str>,
) -> (HANDLE, u32) {
    mine.ask(guest_thread::check_room);
    let carrier = GuestThread::new();
    let start = Box::new(Start { carrier: Arc::clone(&carrier), code, argument });
    mine.ask(|me| me.acquire(loader(me)));
    // SAFETY: `run` takes the box.
    let handle = unsafe {
        let start = Box::into_raw(start).cast_const().cast();
        CreateThread(security, stack, Some(run), start, flags & !CREATE_SUSPENDED, null_mut())
    };
    if !handle.is_null() {
        wait_until_begun(&carrier);
        watch(handle, Arc::clone(&carrier));
    }
    let at = handle as usize;
    let number = mine.ask(move |me| {
        me.unlock(loader(me));
        if at == 0 {
            return 0;
        }
        handles::forget(at);
        let is_suspended = flags & CREATE_SUSPENDED != 0;
        let name = name.map_or_else(objects::thread_name, str::to_owned);
        let index = me.spawn(&name, move |me| {
            // It may run before the call below returns.
            handles::add_thread(at, me.index(), is_suspended);
            handles::wait_until(me, at, |thread| !thread.is_held_back);
            guest_thread::register(me.index(), &carrier);
            carrier.serve_to_end(me);
            me.unlock(loader(me));
            handles::change_and_notify(me, at, |thread| thread.count = 1);
        });
        handles::add_thread(at, index, is_suspended);
        me.os_of(index).map_or(0, |os| os.0)
    });
    (handle, number.unwrap_or_default())
}

/// Starts a thread of a pool, of which nobody has a handle. Those that do the same have the same name.
pub(super) fn start(mine: &super::Current, name: &str, code: Code, argument: *mut c_void) {
    let (handle, _) = create(mine, (std::ptr::null(), 0), (code, argument), 0, Some(name));
    if !handle.is_null() {
        // SAFETY: the handle from above.
        unsafe { handles::close(handle) };
    }
}

unsafe extern "system" fn create_thread(
    security: *const SECURITY_ATTRIBUTES,
    stack: usize,
    code: Option<Code>,
    argument: *mut c_void,
    flags: u32,
    number: *mut u32,
) -> HANDLE {
    let Some(mine) = current() else {
        // SAFETY: the guest's arguments.
        return unsafe { CreateThread(security, stack, code, argument, flags, number) };
    };
    let Some(code) = code else {
        super::set_last_error(ERROR_INVALID_PARAMETER);
        return null_mut();
    };
    let (handle, id) = create(&mine, (security, stack), (code, argument), flags, None);
    if !number.is_null() {
        // SAFETY: the guest's room for a number.
        unsafe { number.write(id) };
    }
    handle
}

/// `_beginthreadex`, whose threads are those of `CreateThread` here: the library of C needs no preparation.
unsafe extern "C" fn begin_ex(
    security: *mut c_void,
    stack: u32,
    code: Option<Code>,
    argument: *mut c_void,
    flags: u32,
    number: *mut u32,
) -> usize {
    // SAFETY: the guest's arguments.
    unsafe {
        let (security, stack) = (security.cast_const().cast(), stack as usize);
        create_thread(security, stack, code, argument, flags, number) as usize
    }
}

/// `_beginthread`: the handle is closed when the thread ends, in a CLR's process. Here it stays open.
unsafe extern "C" fn begin(code: Option<Code>, stack: u32, argument: *mut c_void) -> usize {
    // SAFETY: the guest's arguments.
    let handle = unsafe {
        create_thread(std::ptr::null(), stack as usize, code, argument, 0, null_mut()) as usize
    };
    if handle == 0 { usize::MAX } else { handle }
}

pub(super) unsafe extern "system" fn exit(code: u32) -> ! {
    enter_end();
    // SAFETY: no pointers.
    unsafe { ExitThread(code) }
}

unsafe extern "C" fn end() -> ! {
    // SAFETY: no pointers.
    unsafe { exit(0) }
}

/// Returns the number of this thread, as the runtime calls it.
unsafe extern "system" fn own_number() -> u32 {
    scheduled!(GetCurrentThreadId(), |me| me.os().0)
}

/// Opens a thread of an interleaving by its number.
unsafe extern "system" fn open(access: u32, inherit: Bool, number: u32) -> HANDLE {
    let Some(mine) = current() else {
        // SAFETY: no pointers.
        return unsafe { OpenThread(access, inherit, number) };
    };
    // SAFETY: no pointers. A dummy event: only its unique handle is used.
    let handle = unsafe { CreateEventW(std::ptr::null(), 1, 0, std::ptr::null()) };
    let at = handle as usize;
    let found = mine.ask(move |me| {
        let thread = me.thread_with(clr_runtime::OsThreadId(number));
        thread.map(|thread| handles::add(at, Kind::Thread(thread), 0))
    });
    if found.flatten().is_some() {
        return handle;
    }
    super::set_last_error(ERROR_INVALID_PARAMETER);
    null_mut()
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> [Replacement; 9] {
    replacements! {
        "CreateThread" => create_thread,
        "_beginthreadex" => begin_ex,
        "_beginthread" => begin,
        "ExitThread" => exit,
        "FreeLibraryAndExitThread" => super::loader::free_and_exit,
        "_endthreadex" => exit,
        "_endthread" => end,
        "GetCurrentThreadId" => own_number,
        "OpenThread" => open,
    }
}
