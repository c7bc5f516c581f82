//! Memory that a copy of the process shares with it.

use std::fs::{read_dir, read_link, read_to_string};

/// The name of the file that .NET maps twice, for writing and for execution, from .NET 7 on.
const CODE: &str = "memfd:doublemapper";

/// A mapping that is shared between processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    start: u64,
    len: usize,
    protection: i32,
    offset: i64,
    /// The file, if it is open.
    file: Option<i32>,
}

/// Returns the shared mappings of this process.
pub(super) fn mappings() -> Vec<Mapping> {
    let maps = read_to_string("/proc/self/maps").unwrap_or_default();
    let file = maps.contains(CODE).then(code_file).flatten();
    maps.lines().filter_map(|line| parse(line, file)).collect()
}

/// Returns the descriptor of the file with code.
fn code_file() -> Option<i32> {
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

/// Makes the mappings private in the calling process, or read-only where that is not possible: nothing that it
/// writes is seen by another one.
///
/// # Safety
/// No other thread of the process exists, and no Rust reference leads to the memory.
pub(super) unsafe fn make_private(mappings: &[Mapping]) {
    for mapping in mappings {
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
