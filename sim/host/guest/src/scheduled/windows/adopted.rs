//! Objects that initialisers of the guest's libraries have made, before interleavings: the system is asked for their states.

use super::handles::Kind;
use std::ffi::c_void;
use windows_sys::Win32::Foundation::HANDLE;

/// `ObjectNameInformation` of `NtQueryObject`: a `UNICODE_STRING`, whose first number is the length of the name, and the name.
const NAME: u32 = 1;
/// Room for the information, in numbers of 8 bytes.
const ROOM: usize = 512;

/// A function that tells the state of an object of one kind (winternl.h and the documentation of the driver kit).
type Query = unsafe extern "system" fn(HANDLE, u32, *mut c_void, u32, *mut u32) -> i32;

#[link(name = "ntdll")]
unsafe extern "system" {
    fn NtQueryObject(object: HANDLE, what: u32, into: *mut c_void, size: u32, len: *mut u32)
    -> i32;
    fn NtQueryEvent(object: HANDLE, what: u32, into: *mut c_void, size: u32, len: *mut u32) -> i32;
    fn NtQuerySemaphore(
        object: HANDLE,
        what: u32,
        into: *mut c_void,
        size: u32,
        len: *mut u32,
    ) -> i32;
    fn NtQueryMutant(object: HANDLE, what: u32, into: *mut c_void, size: u32, len: *mut u32)
    -> i32;
}

/// Returns what the system says of an object; `None` if it is of another kind.
fn ask(query: Query, object: HANDLE) -> Option<[i32; 2]> {
    let mut said = [0_i32; 2];
    let size = size_of_val(&said) as u32;
    // SAFETY: room for the two numbers that such a function writes.
    let status = unsafe { query(object, 0, (&raw mut said).cast(), size, std::ptr::null_mut()) };
    (status >= 0).then_some(said)
}

/// Returns true if an object has a name, by which other processes may have it, too.
fn has_name(object: HANDLE) -> bool {
    let mut said = [0_u64; ROOM];
    let size = size_of_val(&said) as u32;
    let into = said.as_mut_ptr().cast();
    // SAFETY: room for the information.
    let status = unsafe { NtQueryObject(object, NAME, into, size, std::ptr::null_mut()) };
    status < 0 || said.first().is_some_and(|length| length & 0xFFFF != 0)
}

/// Returns the kind and the count of an object that the scheduler does not know; `None` if it may be of another process, or is
/// none of these.
pub(super) fn adopted(handle: usize) -> Option<(Kind, i64)> {
    let object = handle as HANDLE;
    if has_name(object) {
        return None;
    }
    // Type 0 is one for all (`NotificationEvent`), until it is reset.
    let event = |[kind, state]: [i32; 2]| (Kind::Event { manual: kind == 0 }, state.into());
    let semaphore = |[count, most]: [i32; 2]| (Kind::Semaphore(most.into()), count.into());
    ask(NtQueryEvent, object)
        .map(event)
        .or_else(|| ask(NtQuerySemaphore, object).map(semaphore))
        .or_else(|| ask(NtQueryMutant, object).map(|_| (Kind::Mutex, 0)))
}
