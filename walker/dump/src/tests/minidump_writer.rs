//! Minidumps and images of Windows, written for tests.

use std::ops::Range;

/// Makes a minidump. Streams are written after what they name.
#[derive(Default)]
pub(super) struct MinidumpWriter {
    threads: Vec<(u32, u64, u64)>,
    modules: Vec<(u64, Vec<u8>, String)>,
    pages: Vec<(u64, Vec<u8>)>,
    /// True for ranges that have each its own place.
    is_small: bool,
}

/// `PROCESSOR_ARCHITECTURE_AMD64`.
pub(super) const AMD64: u16 = 9;

impl MinidumpWriter {
    pub(super) fn small() -> Self {
        Self { is_small: true, ..Self::default() }
    }

    /// Adds a thread. Its other registers have their numbers, and xmm registers twice them.
    pub(super) fn thread(mut self, id: u32, rip: u64, rsp: u64) -> Self {
        self.threads.push((id, rip, rsp));
        self
    }

    /// Adds a module whose headers are those of a file.
    pub(super) fn module(mut self, base: u64, file: &[u8], path: &str) -> Self {
        self.modules.push((base, file.into(), path.into()));
        self
    }

    pub(super) fn page(mut self, address: u64, bytes: &[u8]) -> Self {
        self.pages.push((address, bytes.into()));
        self
    }

    pub(super) fn write(self) -> Vec<u8> {
        self.write_for(AMD64)
    }

    /// Writes the dump of a process for this processor.
    pub(super) fn write_for(self, processor: u16) -> Vec<u8> {
        let mut dump = vec![0; 32 + 4 * 12];
        let mut streams = Vec::new();
        let mut add = |dump: &[u8], kind: u32, range: Range<usize>| {
            assert!(range.end <= dump.len());
            streams.push([kind, range.len() as u32, range.start as u32]);
        };
        let start = dump.len();
        dump.extend(processor.to_le_bytes());
        dump.resize(start + 56, 0);
        add(&dump, 7, start..start + 56);

        let contexts: Vec<_> = self
            .threads
            .iter()
            .map(|(_, rip, rsp)| (dump.len(), dump.extend(context(*rip, *rsp))).0)
            .collect();
        let start = dump.len();
        put32(&mut dump, &[self.threads.len() as u32]);
        for ((id, ..), place) in self.threads.iter().zip(contexts) {
            put32(&mut dump, &[*id, 0, 0, 0]);
            put64(&mut dump, &[0x7000 + u64::from(*id), 0]);
            put32(&mut dump, &[0, 0, CONTEXT as u32, place as u32]);
        }
        add(&dump, 3, start..dump.len());

        let mut names = Vec::new();
        for (.., path) in &self.modules {
            names.push(dump.len() as u32);
            let units: Vec<u8> = path.encode_utf16().flat_map(u16::to_le_bytes).collect();
            put32(&mut dump, &[units.len() as u32]);
            dump.extend(units);
            dump.extend([0, 0]);
        }
        let start = dump.len();
        put32(&mut dump, &[self.modules.len() as u32]);
        for ((base, file, _), name) in self.modules.iter().zip(names) {
            let field = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
            put64(&mut dump, &[*base]);
            put32(&mut dump, &[field(0x40 + 80), field(0x40 + 88), field(0x40 + 8), name]);
            put32(&mut dump, &[0xFEEF_04BD, 0x1_0000, 10 << 16, 1526 << 16 | 7]);
            dump.resize(dump.len() + 108 - 40, 0);
        }
        add(&dump, 4, start..dump.len());

        let count = self.pages.len();
        let start = dump.len();
        let (header, kind) = if self.is_small { (4, 5) } else { (16, 9) };
        let end = start + header + 16 * count;
        let mut offset = end;
        if self.is_small {
            put32(&mut dump, &[count as u32]);
        } else {
            put64(&mut dump, &[count as u64, end as u64]);
        }
        for (address, bytes) in &self.pages {
            put64(&mut dump, &[*address]);
            if self.is_small {
                put32(&mut dump, &[bytes.len() as u32, offset as u32]);
            } else {
                put64(&mut dump, &[bytes.len() as u64]);
            }
            offset += bytes.len();
        }
        add(&dump, kind, start..end);
        dump.extend(self.pages.iter().flat_map(|(_, bytes)| bytes));

        dump[..8].copy_from_slice(b"MDMP\x93\xA7\0\0");
        dump[8..12].copy_from_slice(&4_u32.to_le_bytes());
        dump[12..16].copy_from_slice(&32_u32.to_le_bytes());
        for (at, word) in streams.concat().iter().enumerate() {
            dump[32 + 4 * at..36 + 4 * at].copy_from_slice(&word.to_le_bytes());
        }
        dump
    }
}

fn put32(bytes: &mut Vec<u8>, words: &[u32]) {
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

fn put64(bytes: &mut Vec<u8>, words: &[u64]) {
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

/// Size of a `CONTEXT` in bytes.
const CONTEXT: usize = 0x4D0;

fn context(rip: u64, rsp: u64) -> Vec<u8> {
    let mut context = vec![0; CONTEXT];
    let mut place = |at: usize, bytes: &[u8]| context[at..at + bytes.len()].copy_from_slice(bytes);
    place(0x44, &0x246_u32.to_le_bytes());
    for number in 0..16_u64 {
        let value = if number == 4 { rsp } else { number };
        place(0x78 + 8 * number as usize, &value.to_le_bytes());
        place(0x1A0 + 16 * number as usize, &(2 * u128::from(number)).to_le_bytes());
    }
    place(0xF8, &rip.to_le_bytes());
    context
}

/// A library of Windows: code, constants with exports and imports, data, relocations. Each section has a page, and 0x200 bytes in the
/// file.
pub(super) struct Library;

impl Library {
    pub(super) const PREFERRED: u64 = 0x1_8000_0000;
    pub(super) const SIZE: u64 = 0x5000;
    /// RVAs.
    pub(super) const CODE: u64 = 0x1000;
    pub(super) const MOVED: u64 = 0x2010;
    pub(super) const IMPORTED: u64 = 0x2020;
    pub(super) const FILLED: u64 = 0x2038;
    pub(super) const CONSTANT: u64 = 0x2030;
    pub(super) const DATA: u64 = 0x3000;
    pub(super) const MOVED_DATA: u64 = 0x3008;
    /// Exports, ascending by name; the last one leads to another library.
    pub(super) const EXPORTS: [(&str, u64); 3] = [("Beta", 0x1010), ("Gamma", 0x1020), ("Out", 0)];
    /// Where the base is in the headers.
    pub(super) const BASE_FIELD: u64 = 0x40 + 24 + 24;

    /// Returns the file, in which nothing is zero in the sections but the tables.
    pub(super) fn file() -> Vec<u8> {
        let mut file = vec![0; 0xA00];
        file[0x200..].fill(0xCC);
        let mut place = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        let words = |words: &[u32]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        place(0, b"MZ");
        place(0x3C, &[0x40]);
        place(0x40, b"PE\0\0\x64\x86\x04\0\x11\x22\x33\x44");
        place(0x54, &[240, 0]);
        place(0x58, &[0x0B, 0x02]);
        place(0x58 + 24, &Self::PREFERRED.to_le_bytes());
        place(0x58 + 32, &words(&[0x1000, 0x200]));
        place(0x58 + 56, &words(&[Self::SIZE as u32, 0x400, 0x1234_5678]));
        place(0x58 + 108, &[16]);
        let directory = 0x58 + 112;
        place(directory, &words(&[0x2080, 0x100]));
        place(directory + 5 * 8, &words(&[0x4000, 16]));
        place(directory + 10 * 8, &words(&[0x2180, 0x78]));
        place(directory + 12 * 8, &words(&[Self::IMPORTED as u32, 16]));
        for (index, flags) in
            [0x6000_0020, 0x4000_0040, 0xC000_0040, 0x4200_0040].into_iter().enumerate()
        {
            let (rva, offset) = (0x1000 * (index as u32 + 1), 0x200 * (index as u32 + 1));
            let fields = words(&[0x200, rva, 0x200, offset, 0, 0, 0, flags]);
            place(0x58 + 240 + 40 * index + 8, &fields);
        }
        let moved = (Self::PREFERRED + 0x1234).to_le_bytes();
        place(0x410, &moved);
        place(0x608, &moved);
        // Functions, names, ordinals: numbers of functions in another order than names.
        place(0x480, &[0; 40]);
        place(0x480 + 20, &words(&[3, 3, 0x20A8, 0x20B4, 0x20C0]));
        place(0x4A8, &words(&[0x1020, 0x20F8, 0x1010]));
        place(0x4B4, &words(&[0x20E0, 0x20E8, 0x20F0]));
        place(0x4C0, &[2, 0, 0, 0, 1, 0]);
        place(0x4E0, b"Beta\0\0\0\0Gamma\0\0\0Out\0\0\0\0\0a.b\0");
        // The configuration: its size, and a word that the loader fills in.
        place(0x580, &[0; 0x78]);
        place(0x580, &[0x78]);
        place(0x580 + 0x70, &(Self::PREFERRED + Self::FILLED).to_le_bytes());
        // Two blocks of one relocation each, of eight bytes, with padding.
        place(0x800, &words(&[0x2000, 12, 0xA010, 0x3000]));
        place(0x800 + 12, &words(&[0x3000, 12, 0xA008]));
        place(directory + 5 * 8, &words(&[0x4000, 24]));
        file
    }
}
