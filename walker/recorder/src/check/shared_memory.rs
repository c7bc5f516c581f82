//! Memory that a copy of the process shares with it.

use std::fs::{read_dir, read_link};

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
    let is_shared = allowed.ends_with('s') && protection != 0;
    is_shared.then_some(Mapping {
        start,
        len: usize::try_from(end - start).ok()?,
        protection,
        offset: i64::try_from(hex(offset)?).ok()?,
        file: code.filter(|_| line.contains(CODE)),
    })
}

/// Makes the shared mappings of the calling process private, or read-only where that is not possible: nothing that
/// it writes is seen by another one. `code` is the file with code; the text of the mappings goes to `room`.
/// Returns false if that is too small, or if the text cannot be read. Allocates nothing.
///
/// # Safety
/// No other thread of the process exists, and no Rust reference leads to the memory.
pub(super) unsafe fn make_private(code: Option<i32>, room: &mut [u8]) -> bool {
    let Some(text) = read_mappings(room) else { return false };
    for mapping in text.lines().filter_map(|line| parse(line, code)) {
        let (start, len) = (mapping.start as *mut libc::c_void, mapping.len);
        // SAFETY: the range is mapped, and has the same content afterwards.
        unsafe {
            match mapping.file {
                Some(file) => {
                    let flags = libc::MAP_PRIVATE | libc::MAP_FIXED;
                    libc::mmap(start, len, mapping.protection, flags, file, mapping.offset);
                }
                None => {
                    libc::mprotect(start, len, mapping.protection & !libc::PROT_WRITE);
                }
            }
        }
    }
    true
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
    }
}
