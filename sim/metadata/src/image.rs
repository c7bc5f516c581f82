//! A PE file with IL and metadata (ECMA-335, II.25), in the file and as it is mapped.
//!
//! The order of its only section is that of Roslyn: import table (8 bytes, which nothing fills), CLI header, IL, metadata.

use crate::{Metadata, Method, Table, write};

/// Offset of the headers behind the DOS header.
const HEADERS: u32 = 0x80;
/// Sizes of the COFF header with its signature, and of a section's.
const COFF: u32 = 24;
const SECTION: u32 = 40;
/// Alignment in the file, and in memory.
const FILE_ALIGNMENT: u32 = 0x200;
const ALIGNMENT: u32 = 0x2000;
/// RVA of the section.
const TEXT: u32 = 0x2000;
/// RVA of the CLI header, and its size.
const CLI: u32 = TEXT + 8;
const CLI_SIZE: u32 = 72;
/// COMIMAGE_FLAGS_ILONLY.
const IL_ONLY: u32 = 1;
/// Number of directories, and that of the CLI header.
const DIRECTORIES: u32 = 16;
const CLI_DIRECTORY: u32 = 14;

/// The form of the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// 32 bits, for any processor.
    Pe32,
    /// 64 bits.
    Pe32Plus {
        /// `IMAGE_FILE_MACHINE`.
        machine: u16,
    },
}

impl Format {
    /// Returns `IMAGE_FILE_MACHINE`: for any processor, `IMAGE_FILE_MACHINE_I386`.
    pub const fn machine(self) -> u16 {
        match self {
            Self::Pe32 => 0x14C,
            Self::Pe32Plus { machine } => machine,
        }
    }
}

/// The place of the sections of an image in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// As in the file.
    Flat,
    /// Each section at its RVA.
    Loaded,
}

/// A module's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    headers: Vec<u8>,
    text: Vec<u8>,
    metadata: (u32, u32),
}

impl Image {
    /// Makes the image of a module. Sets the RVA of each method with a body, in the order of the rows.
    pub fn new(
        metadata: &mut Metadata,
        bodies: &[Option<Vec<u8>>],
        format: Format,
        is_library: bool,
    ) -> Self {
        let mut text = vec![0; (CLI - TEXT + CLI_SIZE) as usize];
        for (method, body) in metadata.tokens(Table::Method).zip(bodies) {
            let Some(body) = body else { continue };
            text.resize(text.len().next_multiple_of(4), 0);
            metadata.set(method, Method::RVA, TEXT + text.len() as u32);
            text.extend(body);
        }
        text.resize(text.len().next_multiple_of(4), 0);
        let at = TEXT + text.len() as u32;
        let root = write(metadata);
        let size = root.len() as u32;
        text.extend(root);
        let cli = cli_header(at, size);
        for (to, byte) in text.iter_mut().skip((CLI - TEXT) as usize).zip(cli) {
            *to = byte;
        }
        let headers = headers(text.len() as u32, format, is_library);
        Self { headers, text, metadata: (at, size) }
    }

    /// Returns the bytes in a layout.
    pub fn bytes(&self, layout: Layout) -> Vec<u8> {
        let (at, alignment) = match layout {
            Layout::Flat => (self.headers.len(), FILE_ALIGNMENT),
            Layout::Loaded => (TEXT as usize, ALIGNMENT),
        };
        let mut bytes = self.headers.clone();
        bytes.resize(at, 0);
        bytes.extend(&self.text);
        bytes.resize(bytes.len().next_multiple_of(alignment as usize), 0);
        bytes
    }

    /// Returns the offset of an RVA in a layout.
    pub fn offset(&self, rva: u32, layout: Layout) -> u32 {
        match layout {
            Layout::Flat => (rva.saturating_sub(TEXT)).saturating_add(self.headers.len() as u32),
            Layout::Loaded => rva,
        }
    }

    /// Returns the bytes from an RVA to the end of its section.
    pub fn at(&self, rva: u32) -> &[u8] {
        let offset = rva.checked_sub(TEXT).map(|offset| offset as usize);
        offset.and_then(|offset| self.text.get(offset..)).unwrap_or_default()
    }

    /// Returns RVA and size of the metadata.
    pub const fn metadata(&self) -> (u32, u32) {
        self.metadata
    }
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn cli_header(metadata: u32, size: u32) -> Vec<u8> {
    // Size, version of the runtime 2.5, metadata, flags; no entry point, resources, strong name and the rest.
    let mut words = words(&[CLI_SIZE, 5 << 16 | 2, metadata, size, IL_ONLY]);
    words.resize(CLI_SIZE as usize, 0);
    words
}

fn headers(text: u32, format: Format, is_library: bool) -> Vec<u8> {
    let (magic, optional) = match format {
        Format::Pe32 => (0x10B_u16, 96 + 8 * DIRECTORIES),
        Format::Pe32Plus { .. } => (0x20B, 112 + 8 * DIRECTORIES),
    };
    let size = (HEADERS + COFF + optional + SECTION).next_multiple_of(FILE_ALIGNMENT);
    let mut out = vec![0; HEADERS as usize];
    for (offset, byte) in [(0, b'M'), (1, b'Z'), (0x18, 0x40), (0x3C, HEADERS as u8)] {
        if let Some(to) = out.get_mut(offset) {
            *to = byte;
        }
    }
    out.extend(*b"PE\0\0");
    out.extend(format.machine().to_le_bytes());
    out.extend(1_u16.to_le_bytes());
    out.extend([0; 12]);
    out.extend((optional as u16).to_le_bytes());
    // Executable and aware of large addresses; a library.
    let characteristics = 0x22 | if is_library { 0x2000_u16 } else { 0 };
    out.extend(characteristics.to_le_bytes());
    out.extend(magic.to_le_bytes());
    out.extend([48, 0]);
    let raw = text.next_multiple_of(FILE_ALIGNMENT);
    out.extend(words(&[raw, 0, 0, 0, TEXT]));
    match format {
        Format::Pe32 => out.extend(words(&[TEXT + raw.next_multiple_of(ALIGNMENT), 0x0040_0000])),
        Format::Pe32Plus { .. } => out.extend(words(&[0x8000_0000, 1])),
    }
    out.extend(words(&[ALIGNMENT, FILE_ALIGNMENT]));
    // Versions of the system, of the image and of the subsystem.
    for version in [4_u16, 0, 0, 0, 4, 0] {
        out.extend(version.to_le_bytes());
    }
    out.extend(words(&[0, TEXT + text.next_multiple_of(ALIGNMENT), size, 0]));
    // The console; no relocation at random, no execution of data, no SEH.
    out.extend(3_u16.to_le_bytes());
    out.extend(0x8540_u16.to_le_bytes());
    let reserves = [0x0010_0000, 0x1000, 0x0010_0000, 0x1000];
    match format {
        Format::Pe32 => out.extend(words(&reserves)),
        Format::Pe32Plus { .. } => {
            out.extend(reserves.iter().flat_map(|size| [*size, 0]).flat_map(u32::to_le_bytes));
        }
    }
    out.extend(words(&[0, DIRECTORIES]));
    for directory in 0..DIRECTORIES {
        let is_cli = directory == CLI_DIRECTORY;
        out.extend(words(if is_cli { &[CLI, CLI_SIZE] } else { &[0, 0] }));
    }
    out.extend(*b".text\0\0\0");
    out.extend(words(&[text, TEXT, raw, size, 0, 0, 0, 0x6000_0020]));
    out.resize(size as usize, 0);
    out
}
