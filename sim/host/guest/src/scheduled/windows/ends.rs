//! Ends of the process that the guest asks for: the end of its interleaving.

use super::{Bool, current, stopped};
use crate::scheduled::{Replacement, guest_thread};
use std::ffi::c_int;
use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::Threading::{
    ExitProcess, GetCurrentProcess, GetCurrentProcessId, GetProcessId, TerminateProcess,
};

unsafe extern "C" {
    #[link_name = "exit"]
    fn real_exit(code: c_int) -> !;
    #[link_name = "_exit"]
    fn real_exit_at_once(code: c_int) -> !;
    #[link_name = "abort"]
    fn real_abort() -> !;
}

/// Ends the interleaving, if this is a thread of one.
fn ends(name: &'static str) {
    if let Some(carrier) = current() {
        // The coroutine does not come back from this.
        carrier.ask(|me| me.fail(format!("ends the process by {name}")));
    }
}

unsafe extern "C" fn exit(code: c_int) -> ! {
    ends("exit");
    // SAFETY: no pointers.
    unsafe { real_exit(code) }
}

unsafe extern "C" fn exit_at_once(code: c_int) -> ! {
    ends("_exit");
    // SAFETY: no pointers.
    unsafe { real_exit_at_once(code) }
}

unsafe extern "C" fn abort() -> ! {
    if let Some(carrier) = guest_thread::current() {
        stopped::abort(&carrier);
    }
    // SAFETY: no pointers.
    unsafe { real_abort() }
}

unsafe extern "system" fn exit_process(code: u32) -> ! {
    ends("ExitProcess");
    // SAFETY: no pointers.
    unsafe { ExitProcess(code) }
}

unsafe extern "system" fn terminate_process(process: HANDLE, code: u32) -> Bool {
    // SAFETY: no pointers.
    let is_own =
        unsafe { process == GetCurrentProcess() || GetProcessId(process) == GetCurrentProcessId() };
    if is_own {
        ends("TerminateProcess");
    }
    // SAFETY: the guest's arguments.
    unsafe { TerminateProcess(process, code) }
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> [Replacement; 7] {
    replacements! {
        "exit" => exit,
        "_exit" => exit_at_once,
        "_Exit" => exit_at_once,
        "quick_exit" => exit_at_once,
        "abort" => abort,
        "ExitProcess" => exit_process,
        "TerminateProcess" => terminate_process,
    }
}
