//! Calls of the system that wait outside of the simulation, or leave its process: the interleaving ends with a message that
//! names the call.

use super::current;
use crate::scheduled::Replacement;
use std::ffi::{CString, c_void};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleA, GetProcAddress};

/// Libraries that have these functions.
const LIBRARIES: [&std::ffi::CStr; 5] =
    [c"kernel32.dll", c"user32.dll", c"ws2_32.dll", c"msvcrt.dll", c"ucrtbase.dll"];

/// A function with at most ten integers or pointers.
type Real = unsafe extern "system" fn(
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
) -> usize;

/// Calls the function that a thread outside of interleavings wants.
///
/// # Safety
/// The arguments are those of the function; what it does not use may be anything.
unsafe fn real(name: &str, arguments: [usize; 10]) -> usize {
    let Ok(name) = CString::new(name) else { return 0 };
    let found = LIBRARIES.iter().find_map(|library| {
        // SAFETY: texts with a final NUL.
        unsafe { GetProcAddress(GetModuleHandleA(library.as_ptr().cast()), name.as_ptr().cast()) }
    });
    let Some(found) = found else { return 0 };
    // SAFETY: the function of this name, and the caller's promise.
    unsafe {
        let real = std::mem::transmute::<unsafe extern "system" fn() -> isize, Real>(found);
        let [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10] = arguments;
        real(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10)
    }
}

macro_rules! refused {
    ($($name:ident)*) => {
        $(#[allow(clippy::too_many_arguments, reason = "those of CreateProcess")]
        unsafe extern "system" fn $name(
            a1: usize,
            a2: usize,
            a3: usize,
            a4: usize,
            a5: usize,
            a6: usize,
            a7: usize,
            a8: usize,
            a9: usize,
            a10: usize,
        ) -> usize {
            let name = stringify!($name);
            if let Some(carrier) = current() {
                let end = concat!("the profiler has left the simulation: it called ", stringify!($name));
                carrier.ask(|me| me.fail(end));
            }
            // SAFETY: the guest's own call.
            unsafe { real(name, [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10]) }
        })*

        /// Returns the functions that imports of the guest are to lead to.
        pub(super) fn replaced() -> Vec<Replacement> {
            vec![$(Replacement {
                name: stringify!($name),
                with: $name as *const c_void,
            }),*]
        }
    };
}

refused! {
    PulseEvent SignalObjectAndWait QueueUserAPC TerminateThread CreateRemoteThread
    CreateWaitableTimerA CreateWaitableTimerExA SetTimerQueueTimer
    CreateThreadpoolIo StartThreadpoolIo BindIoCompletionCallback CloseThreadpoolCleanupGroupMembers
    LeaveCriticalSectionWhenCallbackReturns ReleaseMutexWhenCallbackReturns ReleaseSemaphoreWhenCallbackReturns
    FreeLibraryWhenCallbackReturns DisassociateCurrentThreadFromCallback
    ConvertThreadToFiber ConvertThreadToFiberEx EnterSynchronizationBarrier
    MsgWaitForMultipleObjects MsgWaitForMultipleObjectsEx GetMessageA GetMessageW WaitMessage
    ConnectNamedPipe CallNamedPipeA CallNamedPipeW WaitNamedPipeA WaitNamedPipeW TransactNamedPipe
    GetQueuedCompletionStatus GetQueuedCompletionStatusEx WaitForDebugEvent WaitForInputIdle ReadDirectoryChangesW
    accept connect recv recvfrom select WSAAccept WSAConnect WSARecv WSARecvFrom WSAPoll
    WSAWaitForMultipleEvents
    CreateProcessA CreateProcessW system _wsystem _popen _wpopen
}
