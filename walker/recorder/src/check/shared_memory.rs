//! Memory that a copy of the process shares with it.

use std::fs::{read_dir, read_link};
use std::mem::zeroed;

/// The name of the file that .NET maps twice, for writing and for execution, from .NET 7 on.
const CODE: &str = "memfd:doublemapper";

/// A mapping that is shared between processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapping {
    start: u64,
    len: usize,
    protection: i32,
    offset: i64,
    /// The file, if it is open.
    file: Option<i32>,
}

/// Returns the descriptor of the file with code, if there is one.
pub(super) fn code_file() -> Option<i32> {
    read_dir("/proc/self/fd").ok()?.flatten().find_map(|entry| {
        let target = read_link(entry.path()).ok()?;
        target.to_str()?.contains(CODE).then(|| entry.file_name().to_str()?.parse().ok())?
    })
}

/// Returns the mapping of a line of `/proc/self/maps`, if it is shared and can be accessed.
fn parse(line: &str, code: Option<i32>) -> Option<Mapping> {
    let mut words = line.split_ascii_whitespace();
    let (range, allowed, offset) = (words.next()?, words.next()?, words.next()?);
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = range.split_once('-')?;
    let (start, end) = (hex(start)?, hex(end)?);
    let bit = |letter, bit| if allowed.contains(letter) { bit } else { 0 };
    let protection =
        bit('r', libc::PROT_READ) | bit('w', libc::PROT_WRITE) | bit('x', libc::PROT_EXEC);
    let file = code.filter(|_| line.contains(CODE));
    // What is reserved of the file with code may become code.
    let is_shared = allowed.ends_with('s') && (protection != 0 || file.is_some());
    is_shared.then_some(Mapping {
        start,
        len: usize::try_from(end - start).ok()?,
        protection,
        offset: i64::try_from(hex(offset)?).ok()?,
        file,
    })
}

/// Makes the shared mappings of the calling process its own, or read-only where that is not possible: nothing that
/// it writes is seen by another one. `code` is the file with code: the process gets another file with the same content in
/// its place, for what .NET writes to code by one mapping it expects in the other. Code may be written, too, so that
/// a tracer can set traps. The text of the mappings goes to `room`. Returns false if that is too small, or if something cannot be
/// read or mapped. Allocates nothing.
///
/// # Safety
/// No other thread of the process exists, and no Rust reference leads to the memory.
pub(super) unsafe fn make_private(code: Option<i32>, room: &mut [u8]) -> bool {
    let Some(text) = read_mappings(room) else { return false };
    let mappings = || text.lines().filter_map(|line| parse(line, code));
    // SAFETY: each range is mapped, and has the same content afterwards.
    unsafe {
        let copy = code.map(|code| copy_of(code, mappings()));
        if copy == Some(None) {
            return false;
        }
        let copy = copy.flatten();
        let is_done = mappings().all(|mapping| {
            let (start, len) = (mapping.start as *mut libc::c_void, mapping.len);
            match copy.filter(|_| mapping.file.is_some()) {
                Some(copy) => {
                    let flags = libc::MAP_SHARED | libc::MAP_FIXED;
                    let code = mapping.protection & libc::PROT_EXEC != 0;
                    let protection = mapping.protection | if code { libc::PROT_WRITE } else { 0 };
                    libc::mmap(start, len, protection, flags, copy, mapping.offset) == start
                }
                None => libc::mprotect(start, len, mapping.protection & !libc::PROT_WRITE) == 0,
            }
        });
        is_done && code.zip(copy).is_none_or(|(code, copy)| libc::dup2(copy, code) == code)
    }
}

/// Returns a new file with what the process can read of `code` by its mappings.
///
/// # Safety
/// The mappings are the process's.
unsafe fn copy_of(code: i32, mappings: impl Iterator<Item = Mapping>) -> Option<i32> {
    // SAFETY: as the caller says; the structure is one of numbers.
    unsafe {
        let mut status: libc::stat = zeroed();
        let copy = libc::memfd_create(c"code".as_ptr(), libc::MFD_CLOEXEC);
        let is_made = copy >= 0
            && libc::fstat(code, &raw mut status) == 0
            && libc::ftruncate(copy, status.st_size) == 0;
        let mut readable = mappings
            .filter(|mapping| mapping.file.is_some() && mapping.protection & libc::PROT_READ != 0);
        let is_written = is_made
            && readable.all(|mapping| {
                let start = mapping.start as *const libc::c_void;
                let written = libc::pwrite(copy, start, mapping.len, mapping.offset);
                usize::try_from(written) == Ok(mapping.len)
            });
        is_written.then_some(copy)
    }
}

/// Reads the text of this process's mappings.
fn read_mappings(room: &mut [u8]) -> Option<&str> {
    // SAFETY: the kernel reads a text, and writes to `room` alone.
    let file = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY) };
    let mut len = 0;
    loop {
        let rest = room.get_mut(len..).filter(|rest| !rest.is_empty())?;
        // SAFETY: as above.
        match unsafe { libc::read(file, rest.as_mut_ptr().cast(), rest.len()) } {
            0 => break,
            read => len += usize::try_from(read).ok()?,
        }
    }
    // SAFETY: nothing else uses the descriptor.
    unsafe { libc::close(file) };
    str::from_utf8(&room[..len]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_mappings_are_found() {
        let code = "7f00-8f00 r-xs 00010000 00:01 5  /memfd:doublemapper (deleted)";
        let found = parse(code, Some(9)).unwrap();
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        let expected =
            Mapping { start: 0x7F00, len: 0x1000, protection, offset: 0x10000, file: Some(9) };
        assert_eq!(found, expected);
        assert_eq!(parse("7f00-8f00 rw-s 0 00:01 5 /dev/shm/a", Some(9)).unwrap().file, None);
        for line in ["7f00-8f00 rw-p 0 00:00 0", "7f00-8f00 ---s 0 00:00 0 /a", ""] {
            assert_eq!(parse(line, Some(9)), None, "{line}");
        }
        let reserved = "7f00-8f00 ---s 00010000 00:01 5  /memfd:doublemapper (deleted)";
        assert_eq!(parse(reserved, Some(9)).unwrap(), Mapping { protection: 0, ..expected });
    }
}
