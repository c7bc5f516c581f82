//! Writers of small cores and of a small image.

use std::ops::Range;

/// Writes a core as the kernel does: notes first, then pages.
#[derive(Clone, Debug, Default)]
pub(super) struct CoreWriter {
    notes: Vec<u8>,
    files: Vec<(Range<u64>, u64, String)>,
    pages: Vec<(u64, Vec<u8>)>,
}

fn put(bytes: &mut Vec<u8>, words: &[u64]) {
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

impl CoreWriter {
    /// Begins the core of a process with a thread, and with a loader elsewhere.
    pub(super) fn loaded() -> Self {
        let auxiliary: Vec<u8> =
            [7, 0x9000, 0, 0].iter().flat_map(|it: &u64| it.to_le_bytes()).collect();
        Self::default().thread(1, 0, 0).note(6, &auxiliary)
    }

    pub(super) fn note(mut self, kind: u32, contents: &[u8]) -> Self {
        let sizes = [5, contents.len() as u32, kind];
        self.notes.extend(sizes.iter().flat_map(|word| word.to_le_bytes()));
        self.notes.extend(b"CORE\0\0\0\0");
        self.notes.extend(contents);
        self.notes.resize(self.notes.len().next_multiple_of(4), 0);
        self
    }

    /// Adds a thread whose registers have the numbers of their places in the note, rip and rsp apart.
    pub(super) fn thread(self, id: u32, rip: u64, rsp: u64) -> Self {
        let mut status = vec![0; 112];
        status[12..14].copy_from_slice(&19_u16.to_le_bytes());
        status[32..36].copy_from_slice(&id.to_le_bytes());
        let mut registers: Vec<u64> = (0..27).collect();
        registers[15] = 202;
        (registers[16], registers[19]) = (rip, rsp);
        put(&mut status, &registers);
        put(&mut status, &[0]);
        self.note(1, &status)
    }

    pub(super) fn file(mut self, range: Range<u64>, offset: u64, path: &str) -> Self {
        self.files.push((range, offset, path.into()));
        self
    }

    pub(super) fn page(mut self, address: u64, bytes: &[u8]) -> Self {
        self.pages.push((address, bytes.into()));
        self
    }

    pub(super) fn write(mut self) -> Vec<u8> {
        if !self.files.is_empty() {
            let mut note = Vec::new();
            put(&mut note, &[self.files.len() as u64, 0x1000]);
            for (range, offset, _) in &self.files {
                put(&mut note, &[range.start, range.end, offset / 0x1000]);
            }
            for (.., path) in &self.files {
                note.extend(path.as_bytes());
                note.push(0);
            }
            self = self.note(0x4649_4C45, &note);
        }
        let count = 1 + self.pages.len();
        let mut core = header(4, count as u16);
        let mut offset = 64 + 56 * count as u64;
        put_header(&mut core, 4, 0, offset, 0, self.notes.len() as u64, 0);
        offset += self.notes.len() as u64;
        for (address, bytes) in &self.pages {
            let size = bytes.len() as u64;
            put_header(&mut core, 1, 6, offset, *address, size, size);
            offset += size;
        }
        core.extend(&self.notes);
        core.extend(self.pages.iter().flat_map(|(_, bytes)| bytes));
        core
    }
}

fn header(kind: u16, count: u16) -> Vec<u8> {
    let mut bytes = b"\x7FELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend([kind, 62].iter().flat_map(|word| word.to_le_bytes()));
    bytes.extend(1_u32.to_le_bytes());
    put(&mut bytes, &[0, 64, 0]);
    bytes.extend([0; 4]);
    bytes.extend([64, 56, count, 64, 0, 0].iter().flat_map(|word: &u16| word.to_le_bytes()));
    bytes
}

fn put_header(
    bytes: &mut Vec<u8>,
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    file_size: u64,
    size: u64,
) {
    bytes.extend([kind, flags].iter().flat_map(|word| word.to_le_bytes()));
    put(bytes, &[offset, address, address, file_size, size, 0x1000]);
}

/// A shared object: headers, code, data that is read-only after relocation, data.
pub(super) struct Image;

impl Image {
    pub(super) const BASE: u64 = 0x7000_0000;
    /// Places by address in the file's terms.
    pub(super) const CODE: u64 = 0x1000;
    pub(super) const MOVED_BY_RELA: u64 = 0x3000;
    pub(super) const IMPORTED: u64 = 0x3010;
    pub(super) const MOVED_BY_RELR: [u64; 4] = [0x3100, 0x3108, 0x3110, 0x3300];
    pub(super) const DATA: u64 = 0x4000;
    pub(super) const EXPORTED: (&str, u64) = ("exported", 0x1020);

    /// Returns the file, whose bytes are the low bytes of their offsets where nothing else is.
    pub(super) fn file(build_id: u8) -> Vec<u8> {
        let mut file = header(3, 7);
        put_header(&mut file, 1, 4, 0, 0, 0x1000, 0x1000);
        put_header(&mut file, 1, 5, 0x1000, 0x1000, 0x1000, 0x1000);
        put_header(&mut file, 1, 6, 0x2000, 0x3000, 0x1000, 0x1000);
        put_header(&mut file, 1, 6, 0x3000, 0x4000, 0x800, 0x1800);
        put_header(&mut file, 2, 6, 0x2800, 0x3800, 0x100, 0x100);
        put_header(&mut file, 0x6474_E552, 4, 0x2000, 0x3000, 0x1000, 0x1000);
        put_header(&mut file, 4, 4, 0x280, 0x280, 0x24, 0x24);
        let filled = file.len()..0x3800;
        file.extend(filled.map(|offset| offset as u8));
        let mut place = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        let words =
            |words: &[u64]| words.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>();
        place(0x280, &[4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, b'G', b'N', b'U', 0]);
        place(0x290, &[build_id; 20]);
        // R_X86_64_RELATIVE, R_X86_64_GLOB_DAT of symbol 1.
        place(0x400, &words(&[0x3000, 8, 0x1234, 0x3010, 1 << 32 | 6, 0]));
        // The second bitmap begins 63 words after the first: at 0x3300.
        place(0x600, &words(&[0x3100, 0b111, 0b11]));
        place(0x2100, &words(&[0x100, 0x108, 0x110]));
        place(0x2300, &words(&[0x300]));
        // One bucket, symbols from number 1 on, one word of filter.
        place(0x700, &[1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        place(0x718, &[1, 0, 0, 0]);
        let hash = b"exported"
            .iter()
            .fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)));
        place(0x71C, &(hash | 1).to_le_bytes());
        place(0x800, &[0; 24]);
        place(0x818, &words(&[1, 0x1020, 4]));
        place(0x900, b"\0exported\0");
        let dynamic = [
            [6, 0x800], // DT_SYMTAB
            [5, 0x900], // DT_STRTAB
            [7, 0x400], // DT_RELA, DT_RELASZ
            [8, 48],
            [36, 0x600], // DT_RELR, DT_RELRSZ
            [35, 24],
            [0x6FFF_FEF5, 0x700], // DT_GNU_HASH
            [0, 0],
        ];
        place(0x2800, &words(dynamic.as_flattened()));
        file
    }

    /// Returns another file, which has code of eight pages at 0x10000.
    pub(super) fn file_with_large_code(build_id: u8) -> Vec<u8> {
        let mut file = header(3, 3);
        put_header(&mut file, 1, 4, 0, 0, 0x1000, 0x1000);
        put_header(&mut file, 1, 5, 0x1_0000, 0x1_0000, 0x8000, 0x8000);
        put_header(&mut file, 4, 4, 0x280, 0x280, 0x24, 0x24);
        let headers = file.len();
        file.resize(0x1_8000, 0);
        file[headers..0x2A4].copy_from_slice(&Self::file(build_id)[headers..0x2A4]);
        file
    }

    /// Adds the mappings of the image, loaded at the base.
    pub(super) fn map(core: CoreWriter, path: &str) -> CoreWriter {
        let base = Self::BASE;
        core.file(base..base + 0x1000, 0, path)
            .file(base + 0x1000..base + 0x2000, 0x1000, path)
            .file(base + 0x3000..base + 0x4000, 0x2000, path)
            .file(base + 0x4000..base + 0x5000, 0x3000, path)
    }
}

/// A PE image: headers and code in the first page of its file, and data in the second.
pub(super) struct Portable;

impl Portable {
    /// RVAs of the sections, whose bytes are at 0x200 and 0x1000 of the file.
    pub(super) const CODE: u64 = 0x1_0200;
    pub(super) const DATA: u64 = 0x2_0000;

    pub(super) fn file() -> Vec<u8> {
        let mut file: Vec<u8> = (0..0x2000_u32).map(|offset| offset as u8).collect();
        file[..0x200].fill(0);
        let mut place = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        place(0, b"MZ");
        place(0x3C, &[0x40]);
        // Machine, two sections, time stamp, size of the optional header of PE32+ without directories.
        place(0x40, b"PE\0\0\x64\x86\x02\0\x11\x22\x33\x44");
        place(0x54, &[112, 0]);
        place(0x58, &[0x0B, 0x02]);
        place(0x58 + 56, &0x2_1000_u32.to_le_bytes());
        let mut section = |at: usize, rva: u32, size: u32, offset: u32, flags: u32| {
            let fields = [size, rva, size, offset, 0, 0, 0, flags];
            let bytes: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
            place(at + 8, &bytes);
        };
        section(0x58 + 112, Self::CODE as u32, 0xE00, 0x200, 0x6000_0020);
        section(0x58 + 112 + 40, Self::DATA as u32, 0x1000, 0x1000, 0xC000_0040);
        file
    }
}
