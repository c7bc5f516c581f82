//! Threads that the guest suspends and examines, as unwinders on Windows do: the registers, the memory and the unwind
//! data are those of the simulated process.

use super::handles::{self, Kind};
use super::{Bool, current, succeeds};
use crate::scheduled::Replacement;
use clr_explore::{CurrentThread, ExaminedThread};
use clr_unwind::{Memory as _, Position, Registers, Unwinder};
use clr_walker::profiling::TargetThread as _;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use windows_sys::Win32::Foundation::{ERROR_INVALID_HANDLE, HANDLE};
use windows_sys::Win32::System::Diagnostics::Debug::{
    CONTEXT, GetThreadContext, IMAGE_RUNTIME_FUNCTION_ENTRY, ReadProcessMemory,
    RtlLookupFunctionEntry, RtlVirtualUnwind, SetThreadContext, UNWIND_HISTORY_TABLE,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, ResumeThread, SuspendThread};

/// True if the guest has suspended a thread in this interleaving.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// Returns true if a thread may be suspended, so while it owns a lock of the process.
pub(super) fn has_begun() -> bool {
    HAS_BEGUN.load(Ordering::Relaxed)
}

/// The result of a call that fails.
const FAILED: u32 = u32::MAX;

fn target<'g, 't, 'b>(
    me: &'g CurrentThread<'t, 'b>,
    handle: usize,
) -> Option<(usize, handles::Object, ExaminedThread<'g, 't, 'b>)> {
    let (at, object) = handles::find(me, handle)?;
    let Kind::Thread(thread) = object.kind else { return None };
    Some((at, object, me.target(thread)?))
}

unsafe extern "system" fn suspend(thread: HANDLE) -> u32 {
    let at = thread as usize;
    let Some(carrier) = current() else {
        // SAFETY: the guest's handle.
        return unsafe { SuspendThread(thread) };
    };
    HAS_BEGUN.store(true, Ordering::Relaxed);
    let suspended = carrier.ask(move |me| {
        let (at, object, target) = target(me, at)?;
        if !object.is_held_back {
            target.suspend().ok()?;
        }
        handles::change(at, |thread| {
            thread.suspensions += 1;
            thread.suspensions - 1
        })
    });
    suspended.flatten().unwrap_or(FAILED)
}

unsafe extern "system" fn resume(thread: HANDLE) -> u32 {
    let at = thread as usize;
    let Some(carrier) = current() else {
        // SAFETY: the guest's handle.
        return unsafe { ResumeThread(thread) };
    };
    let resumed = carrier.ask(move |me| {
        let (_, object, target) = target(me, at)?;
        if !object.is_held_back {
            target.resume().ok()?;
        }
        handles::change_and_notify(me, at, |thread| {
            let before = thread.suspensions;
            thread.suspensions = before.saturating_sub(1);
            thread.is_held_back &= thread.suspensions > 0;
            before
        })
    });
    resumed.flatten().unwrap_or(FAILED)
}

/// Copies a context, in the form that the flags of the guest ask for.
fn write(registers: &Registers, context: *mut CONTEXT) -> bool {
    // SAFETY: the guest's context.
    let bytes =
        unsafe { std::slice::from_raw_parts_mut(context.cast::<u8>(), size_of::<CONTEXT>()) };
    registers.write_context(bytes).is_ok()
}

unsafe extern "system" fn get_context(thread: HANDLE, context: *mut CONTEXT) -> Bool {
    let at = thread as usize;
    let Some(carrier) = current() else {
        // SAFETY: the guest's arguments.
        return unsafe { GetThreadContext(thread, context) };
    };
    let found = carrier.ask(move |me| target(me, at)?.2.context().ok());
    let written = found.flatten().is_some_and(|found| write(&found.registers, context));
    succeeds(written, ERROR_INVALID_HANDLE)
}

unsafe extern "system" fn set_context(thread: HANDLE, context: *const CONTEXT) -> Bool {
    if let Some(carrier) = current() {
        let end = "the profiler has left the simulation: it called SetThreadContext";
        carrier.ask(|me| me.fail(end));
    }
    // SAFETY: the guest's arguments.
    unsafe { SetThreadContext(thread, context) }
}

/// Reads the simulated process, where it has memory, and this one otherwise.
unsafe extern "system" fn read_memory(
    process: HANDLE,
    address: *const c_void,
    buffer: *mut c_void,
    len: usize,
    read: *mut usize,
) -> Bool {
    // SAFETY: no pointers.
    let is_own = process == unsafe { GetCurrentProcess() };
    let from = address as u64;
    let simulated = current().filter(|_| is_own).and_then(|carrier| {
        carrier.ask(move |me| {
            let mut bytes = vec![0; len];
            me.target(me.index())?.read(from, &mut bytes).ok().map(|()| bytes)
        })
    });
    let Some(Some(bytes)) = simulated else {
        // SAFETY: the guest's arguments.
        return unsafe { ReadProcessMemory(process, address, buffer, len, read) };
    };
    // SAFETY: the guest's buffer of this length, and its room for a number.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), len);
        if !read.is_null() {
            read.write(len);
        }
    }
    1
}

thread_local! {
    /// Entries that the guest has pointers to, by address and RVA of the function, on the scheduler's thread.
    static ENTRIES: RefCell<BTreeMap<(u64, u32), usize>> = RefCell::default();
}

/// Returns an entry of a simulated image, with the image's address. It stays for as long as the process lives.
fn entry(me: &CurrentThread<'_, '_>, address: u64) -> Option<(usize, u64)> {
    let (region, function) = me.modules().find_function(address)?;
    let base = region.base();
    let make = || {
        let mut entry = Box::new(IMAGE_RUNTIME_FUNCTION_ENTRY {
            BeginAddress: function.begin,
            EndAddress: function.end,
            ..Default::default()
        });
        entry.Anonymous.UnwindInfoAddress = function.unwind_info;
        Box::into_raw(entry) as usize
    };
    let at =
        ENTRIES.with_borrow_mut(|known| *known.entry((base, function.begin)).or_insert_with(make));
    Some((at, base))
}

unsafe extern "system" fn look_up(
    address: u64,
    base: *mut u64,
    history: *mut UNWIND_HISTORY_TABLE,
) -> *mut IMAGE_RUNTIME_FUNCTION_ENTRY {
    let simulated = current().and_then(|carrier| {
        carrier.ask(move |me| {
            let is_simulated = me.modules().find(address).is_some();
            // Each such call takes a lock of the process (H-11).
            is_simulated.then(|| {
                me.look_up_function_entry();
                entry(me, address)
            })
        })
    });
    let Some(Some(found)) = simulated else {
        // SAFETY: the guest's arguments.
        return unsafe { RtlLookupFunctionEntry(address, base, history) };
    };
    let Some((entry, start)) = found else { return std::ptr::null_mut() };
    // SAFETY: the guest's room for an address.
    unsafe { base.write(start) };
    entry as *mut _
}

/// Unwinds a frame of the simulated process with the project's own unwinder, or calls the system.
unsafe extern "system" fn unwind(
    kind: u32,
    base: u64,
    address: u64,
    function: *const IMAGE_RUNTIME_FUNCTION_ENTRY,
    context: *mut CONTEXT,
    data: *mut *mut c_void,
    establisher: *mut u64,
    pointers: *mut c_void,
) -> *const c_void {
    // SAFETY: the guest's context.
    let registers = unsafe {
        let bytes = std::slice::from_raw_parts(context.cast::<u8>(), size_of::<CONTEXT>());
        Registers::from_context(bytes)
    };
    let simulated = current().and_then(|carrier| {
        carrier.ask(move |me| {
            me.modules().find(address)?;
            let mut registers = registers.ok()?;
            registers.rip = address;
            let memory = me.target(me.index())?;
            let unwinder = Unwinder::new(me.modules());
            let step = unwinder.step(&mut registers, Position::Interrupted, &memory);
            // Without a frame the system leaves 0.
            let establisher = step.map(|step| step.establisher_frame);
            if establisher.is_err() {
                registers.rip = 0;
            }
            Some((registers, establisher.unwrap_or_default()))
        })
    });
    let Some(Some((registers, frame))) = simulated else {
        // SAFETY: the guest's arguments, of which only the context is read above.
        let found = unsafe {
            let pointers = pointers.cast();
            RtlVirtualUnwind(kind, base, address, function, context, data, establisher, pointers)
        };
        return found.map_or(std::ptr::null(), |found| found as *const c_void);
    };
    write(&registers, context);
    // SAFETY: the guest's room for addresses.
    unsafe {
        if !data.is_null() {
            data.write(std::ptr::null_mut());
        }
        if !establisher.is_null() {
            establisher.write(frame);
        }
    }
    std::ptr::null()
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> [Replacement; 7] {
    replacements! {
        "SuspendThread" => suspend,
        "ResumeThread" => resume,
        "GetThreadContext" => get_context,
        "SetThreadContext" => set_context,
        "ReadProcessMemory" => read_memory,
        "RtlLookupFunctionEntry" => look_up,
        "RtlVirtualUnwind" => unwind,
    }
}
