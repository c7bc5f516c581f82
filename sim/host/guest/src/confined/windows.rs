//! A job for all that this process starts, and what a process uses.

use super::{PAUSE, bytes};
use crate::limits::{Beyond, GuestLimits, Usage};
use std::mem::size_of;
use std::os::windows::io::AsRawHandle as _;
use std::path::Path;
use std::process::Child;
use std::ptr::null;
use std::sync::Once;
use std::sync::mpsc::RecvTimeoutError;
use windows_sys::Win32::Foundation::{CloseHandle, INVALID_HANDLE_VALUE};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation,
    SetInformationJobObject,
};
use windows_sys::Win32::System::ProcessStatus::{GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, TerminateProcess};

/// Puts this process into a job. What it starts from now on is in it, and ends with this process at the latest, however
/// that ends. Without success it lives on, if it wants to.
pub(super) fn hold() {
    static HOLDS: Once = Once::new();
    HOLDS.call_once(|| {
        // SAFETY: plain data of which zeros are valid, with its size. The handle stays open for as long as the process.
        unsafe {
            let job = CreateJobObjectW(null(), null());
            let mut limits: JOBOBJECT_EXTENDED_LIMIT_INFORMATION = std::mem::zeroed();
            limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
            let size = size_of::<JOBOBJECT_EXTENDED_LIMIT_INFORMATION>() as u32;
            let limits = (&raw const limits).cast();
            SetInformationJobObject(job, JobObjectExtendedLimitInformation, limits, size);
            AssignProcessToJobObject(job, GetCurrentProcess());
        }
    });
}

/// Calls `act` while a process executes, which is ended beyond its limits, its time left aside. `output` are the files that grow
/// with it. Threads are counted as the guest starts them. Returns the limit that the process was beyond, too.
pub(crate) fn watching<T>(
    child: &Child,
    limits: &GuestLimits,
    output: &[&Path],
    act: impl FnOnce() -> T,
) -> (T, Option<Beyond>) {
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let watch = move || {
        while is_done.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
            let memory = memory(child).unwrap_or_default();
            let used = Usage { memory, threads: 0, output: bytes(output) };
            if let beyond @ Some(_) = limits.exceeded(used) {
                // SAFETY: the handle of a child that was not waited for.
                unsafe { TerminateProcess(child.as_raw_handle(), 1) };
                return beyond;
            }
        }
        None
    };
    std::thread::scope(|scope| {
        let watcher = scope.spawn(watch);
        let result = act();
        drop(done);
        (result, watcher.join().ok().flatten())
    })
}

/// Returns what a process uses, its output left aside.
pub(super) fn usage(child: &Child) -> Usage {
    Usage { memory: memory(child).unwrap_or_default(), threads: threads(child), output: 0 }
}

fn memory(child: &Child) -> Option<u64> {
    let size = size_of::<PROCESS_MEMORY_COUNTERS>() as u32;
    // SAFETY: plain data of which zeros are valid, with its size, and a handle that is open.
    unsafe {
        let mut counters: PROCESS_MEMORY_COUNTERS = std::mem::zeroed();
        let is_there = GetProcessMemoryInfo(child.as_raw_handle(), &raw mut counters, size) != 0;
        is_there.then_some(counters.PagefileUsage as u64)
    }
}

fn threads(child: &Child) -> u64 {
    // SAFETY: plain data of which zeros are valid, with its size, and a handle that is closed at last.
    unsafe {
        let all = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
        if all == INVALID_HANDLE_VALUE {
            return 0;
        }
        let mut entry: PROCESSENTRY32W = std::mem::zeroed();
        entry.dwSize = size_of::<PROCESSENTRY32W>() as u32;
        let (mut threads, mut is_one) = (0, Process32FirstW(all, &raw mut entry) != 0);
        while is_one {
            if entry.th32ProcessID == child.id() {
                threads = entry.cntThreads.into();
            }
            is_one = Process32NextW(all, &raw mut entry) != 0;
        }
        CloseHandle(all);
        threads
    }
}
