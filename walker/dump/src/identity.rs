//! Which file it is.

use crate::headers::{ImageHeaders, Read, read_file};
use object::elf;
use std::fmt::{Display, Formatter};

/// The build id of an ELF image: a hash of its contents, from the linker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId(Box<[u8]>);

impl BuildId {
    /// Returns the bytes.
    pub const fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Display for BuildId {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// Fields of a PE image's headers that tell one build from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeIdentity {
    /// `TimeDateStamp`, which deterministic builds fill with a hash of the contents.
    pub time_stamp: u32,
    /// `SizeOfImage` in bytes.
    pub size_of_image: u32,
    /// `CheckSum`.
    pub check_sum: u32,
}

/// Which file it is, by a part of its contents.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// An ELF image's build id.
    BuildId(BuildId),
    /// A PE image's headers.
    Pe(PeIdentity),
}

/// Size of notes at most; images have about 100 bytes.
const NOTES_LIMIT: u64 = 0x1_0000;
/// Length of a build id at most in bytes; linkers write 8 to 20, and users what they want.
const BUILD_ID_LIMIT: usize = 64;

/// The place of an image's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Loaded: by address, from the start of its lowest segment.
    Loaded,
    /// As in its file.
    File,
}

impl Identity {
    /// Returns the identity of a file, or `None` if it is no image, or one without a build id.
    pub fn of_file(file: &[u8]) -> Option<Self> {
        Self::of(Layout::File, &|offset, buffer| read_file(file, offset, buffer))
    }

    /// Returns the identity of an image.
    pub(crate) fn of(layout: Layout, read: Read<'_>) -> Option<Self> {
        let mut magic = [0; 4];
        read(0, &mut magic)?;
        match magic {
            [0x7F, b'E', b'L', b'F'] => build_id(layout, read).map(Self::BuildId),
            [b'M', b'Z', ..] => pe(read).map(Self::Pe),
            _ => None,
        }
    }

    /// Returns the build id, of an ELF image.
    pub const fn build_id(&self) -> Option<&BuildId> {
        if let Self::BuildId(id) = self { Some(id) } else { None }
    }
}

fn build_id(layout: Layout, read: Read<'_>) -> Option<BuildId> {
    let headers = ImageHeaders::read(read)?;
    let start = headers.range().start;
    headers.notes.iter().find_map(|(range, offset)| {
        let at = if layout == Layout::Loaded { range.start.checked_sub(start)? } else { *offset };
        let size = range.end - range.start;
        let mut bytes = vec![0; usize::try_from(size.min(NOTES_LIMIT)).ok()?];
        read(at, &mut bytes)?;
        build_id_in(&bytes)
    })
}

/// Returns the build id in notes.
fn build_id_in(mut notes: &[u8]) -> Option<BuildId> {
    loop {
        let (header, rest) = notes.split_first_chunk::<12>()?;
        let (words, _) = header.as_chunks();
        let [name, size, kind] = words else { return None };
        let name = u32::from_le_bytes(*name) as usize;
        let size = u32::from_le_bytes(*size) as usize;
        let contents = rest.get(name.checked_next_multiple_of(4)?..)?;
        if u32::from_le_bytes(*kind) == elf::NT_GNU_BUILD_ID.0 && rest.starts_with(b"GNU\0") {
            let id = contents.get(..size).filter(|id| (1..=BUILD_ID_LIMIT).contains(&id.len()))?;
            return Some(BuildId(id.into()));
        }
        notes = contents.get(size.checked_next_multiple_of(4)?..)?;
    }
}

/// Offsets from `e_lfanew`, in bytes: the signature `PE\0\0`, then the file header, then the optional header of PE32+.
const PE_TIME_STAMP: usize = 8;
const PE_SIZE_OF_IMAGE: usize = 24 + 56;
const PE_CHECK_SUM: usize = 24 + 64;

fn pe(read: Read<'_>) -> Option<PeIdentity> {
    let mut start = [0; 4];
    read(0x3C, &mut start)?;
    let mut bytes = [0; PE_CHECK_SUM + 4];
    read(u32::from_le_bytes(start).into(), &mut bytes)?;
    if !bytes.starts_with(b"PE\0\0") {
        return None;
    }
    let field = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes);
    Some(PeIdentity {
        time_stamp: field(PE_TIME_STAMP)?,
        size_of_image: field(PE_SIZE_OF_IMAGE)?,
        check_sum: field(PE_CHECK_SUM)?,
    })
}
