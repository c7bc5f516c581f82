//! What the library of C says of the heap when it calls `abort`. Of a damaged heap the lock may be owned for ever, and what it would
//! give may belong to others: the process reports the message, and nothing else. A call that was refused has changed nothing.

use super::reports;
use libc::c_char;
use std::ffi::CStr;
use std::sync::OnceLock;

/// Beginnings of the messages about the heap (`malloc_printerr` and `__malloc_assert` of glibc 2.36, malloc/malloc.c).
const BEGINNINGS: [&[u8]; 13] = [
    b"malloc(",
    b"malloc_consolidate(",
    b"calloc(",
    b"free(",
    b"realloc(",
    b"munmap_chunk(",
    b"mremap_chunk(",
    b"tcache_thread_shutdown(",
    b"corrupted ",
    b"double free ",
    b"invalid fastbin ",
    b"break adjusted ",
    b"Fatal glibc error: malloc ",
];

/// Messages about calls that are refused before they take the lock and change anything (`_int_free`, `munmap_chunk` and
/// `__libc_realloc` of the same file).
const REFUSALS: [&[u8]; 6] = [
    b"free(): invalid pointer",
    b"free(): invalid size",
    b"free(): double free detected in tcache 2",
    b"double free or corruption (fasttop)",
    b"munmap_chunk(): invalid pointer",
    b"realloc(): invalid pointer",
];

/// `struct abort_msg_s` of glibc (include/stdlib.h and others): the size of its memory, and a text with a final NUL.
#[repr(C)]
struct Message {
    size: u32,
    text: [c_char; 0],
}

/// Returns the place of the pointer to the message of `abort`, which debuggers read.
fn place() -> Option<*const *const Message> {
    static FOUND: OnceLock<usize> = OnceLock::new();
    // SAFETY: a text with a final NUL.
    let find = || unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__abort_msg".as_ptr()) } as usize;
    let found = *FOUND.get_or_init(find);
    (found != 0).then_some(found as *const *const Message)
}

/// Finds the message, before anything is damaged: the loader allocates.
pub(in crate::scheduled) fn find_message() {
    place();
}

/// Returns the message of the library of C about the heap.
fn message() -> Option<&'static [u8]> {
    // SAFETY: the library's variable: NULL, or the message, which stays.
    let text = unsafe {
        let message = place()?.read();
        if message.is_null() {
            return None;
        }
        CStr::from_ptr((&raw const (*message).text).cast())
    };
    let text = text.to_bytes().trim_ascii_end();
    BEGINNINGS.iter().any(|it| text.starts_with(it)).then_some(text)
}

/// Reports a damaged heap, if there is one, and ends the process. Called in a signal handler after `abort`, on a thread that may
/// own the heap's lock.
pub(super) fn report() {
    if let Some(message) = message().filter(|message| !REFUSALS.contains(message))
        && reports::send_damage(message)
    {
        // SAFETY: no destructors are executed.
        unsafe { libc::_exit(0) }
    }
}

/// Returns the message about a call that was refused.
pub(super) fn refusal() -> Option<&'static str> {
    let message = message().filter(|message| REFUSALS.contains(message))?;
    std::str::from_utf8(message).ok()
}
