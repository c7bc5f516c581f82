use super::*;
use crate::{CachedBytes, DumpBytes, Missing, NoFiles, StoppedProcess as _};
use clr_unwind::Memory as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// A dump elsewhere, which counts what is read, and cannot be read from some offset on.
#[derive(Debug)]
struct Elsewhere<'d> {
    bytes: &'d [u8],
    size: u64,
    readable: u64,
    count: AtomicU64,
}

impl<'d> Elsewhere<'d> {
    fn new(bytes: &'d [u8], size: u64) -> Self {
        Self { bytes, size, readable: size, count: AtomicU64::new(0) }
    }
}

impl DumpBytes for Elsewhere<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    /// The bytes, and then zeros.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Option<()> {
        self.count.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        let end = offset.checked_add(buffer.len() as u64)?;
        if end > self.readable {
            return None;
        }
        buffer.fill(0);
        if let Some(bytes) = usize::try_from(offset).ok().and_then(|at| self.bytes.get(at..)) {
            let len = bytes.len().min(buffer.len());
            buffer[..len].copy_from_slice(&bytes[..len]);
        }
        Some(())
    }
}

/// A core whose pages are in blocks of their own, or across two.
fn core() -> Vec<u8> {
    let pages: Vec<u8> = (0..0x4_0000_u32).map(|at| (at >> 8) as u8 ^ at as u8).collect();
    CoreWriter::default().thread(7, 1, 2).page(0x10_0000, &pages).page(0x20_0000, &[1; 8]).write()
}

#[test]
fn a_dump_elsewhere_is_what_it_is_in_memory() {
    let core = core();
    let memory = CoreDump::open(&core, &NoFiles).unwrap();
    let cached = CachedBytes::new(Elsewhere::new(&core, core.len() as u64));
    let dump = CoreDump::open_bytes(&cached, &NoFiles).unwrap();
    assert_eq!(dump.threads(), memory.threads());
    for address in (0x10_0000..0x14_0000).step_by(0xFFB).chain([0x20_0000, 0x20_0001, 0x30_0000]) {
        assert_eq!(dump.read_u64(address), memory.read_u64(address), "{address:#x}");
        assert_eq!(dump.missing(address), memory.missing(address));
    }
    let (mut all, mut expected) = (vec![0; 0x4_0000], vec![0; 0x4_0000]);
    dump.read(0x10_0000, &mut all).unwrap();
    memory.read(0x10_0000, &mut expected).unwrap();
    assert!(all == expected);
    assert_eq!(dump.window(0x10_0000, 8), None);
}

/// A segment of four GiB.
#[test]
fn of_a_large_dump_is_read_what_is_asked_for() {
    let mut core = CoreWriter::default().thread(7, 1, 2).page(0x10_0000, &[9; 8]).write();
    // The size in the last program header, before the notes.
    let headers = 64 + 56;
    let size = 4_u64 << 30;
    core[headers + 32..headers + 40].copy_from_slice(&size.to_le_bytes());
    let cached = CachedBytes::new(Elsewhere::new(&core, size + core.len() as u64));
    let dump = CoreDump::open_bytes(&cached, &NoFiles).unwrap();
    assert_eq!(dump.read_u64(0x10_0000), Ok(0x0909_0909_0909_0909));
    for address in [size / 2, size + 0xF_FFF8] {
        assert_eq!(dump.read_u64(address), Ok(0), "{address:#x}");
    }
    let error = dump.read_u64(size + 0x10_0000).unwrap_err();
    assert_eq!(error.address, size + 0x10_0000);
    let read = cached.into_inner().count.load(Ordering::Relaxed);
    assert!(read < 1 << 20, "{read} bytes were read");
}

#[test]
fn what_cannot_be_read_is_an_error_with_its_place() {
    let core = core();
    let mut elsewhere = Elsewhere::new(&core, core.len() as u64);
    elsewhere.readable = 0x1_0000;
    let cached = CachedBytes::new(elsewhere);
    let dump = CoreDump::open_bytes(&cached, &NoFiles).unwrap();
    assert!(dump.read_u64(0x10_0000).is_ok());
    assert!(dump.read_u64(0x13_0000).is_err());
    assert_eq!(dump.missing(0x13_0000), Some(Missing::Unread));
    let mut elsewhere = Elsewhere::new(&core, core.len() as u64);
    elsewhere.readable = 0x100;
    let error = CoreDump::open_bytes(&elsewhere, &NoFiles).unwrap_err();
    assert!(matches!(error, DumpError::Unread { offset: 64.., size: 1.. }), "{error}");
}

/// Thousands of headers, each with the same notes.
#[test]
fn notes_are_not_longer_than_the_dump() {
    let mut core = core();
    let (first, second) = (64, 64 + 56);
    let notes = core[first..first + 56].to_vec();
    core[second..second + 56].copy_from_slice(&notes);
    assert!(CoreDump::open(&core, &NoFiles).is_ok(), "twice is less than the dump");
    let field = |at: usize| u64::from_le_bytes(notes[at..at + 8].try_into().unwrap());
    let (offset, size) = (field(8), field(32));
    core.truncate((offset + size) as usize);
    let error = CoreDump::open(&core, &NoFiles).unwrap_err();
    assert_eq!(error, DumpError::Truncated { offset, size, end: offset + size });
}

/// More than 65534 segments: their number is in a section header.
#[test]
fn the_number_of_many_segments_is_elsewhere() {
    let mut core = core();
    let sections = core.len() as u64;
    core[40..48].copy_from_slice(&sections.to_le_bytes());
    let count = u32::from(core[56]);
    core[56..58].fill(0xFF);
    let mut section = [0; 64];
    section[44..48].copy_from_slice(&count.to_le_bytes());
    core.extend(section);
    let dump = CoreDump::open(&core, &NoFiles).unwrap();
    assert_eq!(dump.read_u64(0x20_0000), Ok(0x0101_0101_0101_0101));
    core.truncate(sections as usize);
    let error = CoreDump::open(&core, &NoFiles).unwrap_err();
    assert_eq!(error, DumpError::ProgramHeaders { offset: 64 });
}
