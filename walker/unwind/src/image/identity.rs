//! Which build of a file an image is.

use super::ImageLayout;
use crate::memory::{Memory, Segment};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::{Display, Formatter};
use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};

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
    fn fmt(&self, formatter: &mut Formatter<'_>) -> core::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// Fields of a PE image's headers that tell one build from another, and that no loader changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeIdentity {
    /// `TimeDateStamp`, which deterministic builds fill with a hash of the contents.
    pub time_stamp: u32,
    /// `SizeOfImage` in bytes.
    pub size_of_image: u32,
    /// `CheckSum`.
    pub check_sum: u32,
}

/// Which build of a file an image is, by a part of its contents.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImageIdentity {
    /// An ELF image's build id.
    BuildId(BuildId),
    /// The program headers of an ELF image without a build id. Two builds may have the same.
    ProgramHeaders(Box<[u8]>),
    /// A PE image's headers.
    Pe(PeIdentity),
}

/// Size of notes at most, in bytes; images have about 100.
const NOTES_LIMIT: u64 = 0x1_0000;
/// Program headers at most; images have about a dozen.
const HEADER_LIMIT: u16 = 256;
/// Length of a build id at most in bytes; linkers write 8 to 20, and users what they want.
const BUILD_ID_LIMIT: usize = 64;

impl ImageIdentity {
    /// Returns the identity of a file, or `None` if it is no image.
    pub fn of_file(file: &[u8]) -> Option<Self> {
        Self::of(&Segment::new(0, file), 0, ImageLayout::File)
    }

    /// Returns the identity of the image whose first byte is at `base` (VA), or `None` if there is none, or its headers cannot be
    /// read.
    pub fn of<M: Memory + ?Sized>(memory: &M, base: u64, layout: ImageLayout) -> Option<Self> {
        let mut magic = [0; 4];
        memory.read(base, &mut magic).ok()?;
        match magic {
            [0x7F, b'E', b'L', b'F'] => elf(memory, base, layout),
            [b'M', b'Z', ..] => pe(memory, base).map(Self::Pe),
            _ => None,
        }
    }

    /// Returns the build id, of an ELF image.
    pub const fn build_id(&self) -> Option<&BuildId> {
        if let Self::BuildId(id) = self { Some(id) } else { None }
    }
}

fn bytes<M: Memory + ?Sized>(memory: &M, address: u64, len: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    memory.read(address, &mut bytes).ok()?;
    Some(bytes)
}

fn elf<M: Memory + ?Sized>(memory: &M, base: u64, layout: ImageLayout) -> Option<ImageIdentity> {
    let header = bytes(memory, base, size_of::<FileHeader64<LE>>())?;
    let (header, _) = object::from_bytes::<FileHeader64<LE>>(&header).ok()?;
    let size = size_of::<ProgramHeader64<LE>>();
    let is_right = header.is_supported() && usize::from(header.e_phentsize(LE)) == size;
    let count = Some(header.e_phnum(LE)).filter(|count| is_right && *count <= HEADER_LIMIT)?;
    let table = bytes(memory, base.checked_add(header.e_phoff(LE))?, usize::from(count) * size)?;
    let headers = object::slice_from_all_bytes::<ProgramHeader64<LE>>(&table).ok()?;
    let of_kind = |kind| headers.iter().filter(move |header| header.p_type(LE) == kind);
    // The base is the start of the page.
    let lowest = of_kind(elf::PT_LOAD).map(|header| header.p_vaddr(LE) & !0xFFF).min()?;
    let id = of_kind(elf::PT_NOTE).find_map(|header| {
        let at = match layout {
            ImageLayout::Loaded => header.p_vaddr(LE).checked_sub(lowest)?,
            ImageLayout::File => header.p_offset(LE),
        };
        let size = usize::try_from(header.p_filesz(LE).min(NOTES_LIMIT)).ok()?;
        let notes = bytes(memory, base.checked_add(at)?, size)?;
        build_id(&notes, if header.p_align(LE) == 8 { 8 } else { 4 })
    });
    Some(match id {
        Some(id) => ImageIdentity::BuildId(id),
        None => ImageIdentity::ProgramHeaders(table.into()),
    })
}

/// Returns the build id in notes.
fn build_id(mut notes: &[u8], align: usize) -> Option<BuildId> {
    loop {
        let (header, _) = notes.split_first_chunk::<12>()?;
        let (words, _) = header.as_chunks();
        let [name, size, kind] = words else { return None };
        let name = u32::from_le_bytes(*name) as usize;
        let size = u32::from_le_bytes(*size) as usize;
        let start = name.checked_add(12)?.checked_next_multiple_of(align)?;
        let contents = notes.get(start..)?;
        let is_gnu = notes.get(12..)?.get(..name)? == b"GNU\0";
        if u32::from_le_bytes(*kind) == elf::NT_GNU_BUILD_ID.0 && is_gnu {
            let id = contents.get(..size).filter(|id| (1..=BUILD_ID_LIMIT).contains(&id.len()))?;
            return Some(BuildId(id.into()));
        }
        notes = notes.get(start.checked_add(size)?.checked_next_multiple_of(align)?..)?;
    }
}

/// Offsets from `e_lfanew`, in bytes: the signature `PE\0\0`, then the file header, then the optional header, in which PE32 and
/// PE32+ have these fields at the same places. Others, as the preferred base, change in memory.
const PE_TIME_STAMP: u64 = 8;
const PE_SIZE_OF_IMAGE: u64 = 24 + 56;
const PE_CHECK_SUM: u64 = 24 + 64;

fn pe<M: Memory + ?Sized>(memory: &M, base: u64) -> Option<PeIdentity> {
    let field = |at: u64| memory.read_u32(base.checked_add(at)?).ok();
    let start = u64::from(field(0x3C)?);
    if field(start)?.to_le_bytes() != *b"PE\0\0" {
        return None;
    }
    Some(PeIdentity {
        time_stamp: field(start + PE_TIME_STAMP)?,
        size_of_image: field(start + PE_SIZE_OF_IMAGE)?,
        check_sum: field(start + PE_CHECK_SUM)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
        bytes[at..at + value.len()].copy_from_slice(value);
    }

    /// Returns a file of two pages, whose second is loaded at 0x3000, with notes there: one of another owner, and a build id. In
    /// notes that are aligned to 8, the contents of the first one end with padding.
    fn elf_file(align: u8) -> Vec<u8> {
        let mut file = vec![0; 0x2000];
        put(&mut file, 0, b"\x7FELF\x02\x01\x01");
        put(&mut file, 16, &[3, 0, 62, 0, 1]);
        put(&mut file, 32, &[64]);
        put(&mut file, 52, &[64, 0, 56, 0, 2, 0]);
        let mut header = |at: usize, kind: u8, offset: u64, address: u64, size: u64| {
            put(&mut file, at, &[kind]);
            for (index, word) in
                [offset, address, address, size, size, align.into()].iter().enumerate()
            {
                put(&mut file, at + 8 + 8 * index, &word.to_le_bytes());
            }
        };
        header(64, 1, 0, 0x1000, 0x1000);
        header(120, 4, 0x1100, 0x3100, 0x80);
        let second = 16 + 4_usize.next_multiple_of(align.into());
        put(&mut file, 0x1100, &[4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, b'N', b'o', b'\0', b'\0']);
        put(&mut file, 0x1100 + second, &[4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, b'G', b'N', b'U', 0]);
        put(&mut file, 0x1100 + second + 16, &[0xAB, 0x0C, 0xD0]);
        file
    }

    #[test]
    fn a_build_id_is_the_same_in_the_file_and_in_memory() {
        for align in [4, 8] {
            let file = elf_file(align);
            let identity = ImageIdentity::of_file(&file).unwrap();
            assert_eq!(identity.build_id().unwrap().to_string(), "ab0cd0");
            let mut memory = vec![0; 0x3000];
            put(&mut memory, 0, &file[..0x1000]);
            put(&mut memory, 0x2000, &file[0x1000..]);
            let memory = Segment::new(0x7000_0000, &memory);
            let of = |layout| ImageIdentity::of(&memory, 0x7000_0000, layout);
            assert_eq!(of(ImageLayout::Loaded).as_ref(), Some(&identity));
            assert_ne!(of(ImageLayout::File).as_ref(), Some(&identity));
        }
    }

    #[test]
    fn an_image_without_a_build_id_is_known_by_its_program_headers() {
        let mut file = elf_file(4);
        put(&mut file, 120, &[6]);
        let headers = file[64..64 + 112].to_vec().into_boxed_slice();
        assert_eq!(ImageIdentity::of_file(&file), Some(ImageIdentity::ProgramHeaders(headers)));
    }

    #[test]
    fn a_pe_image_is_known_by_three_fields() {
        let mut file = vec![0; 0x200];
        put(&mut file, 0, b"MZ");
        put(&mut file, 0x3C, &[0x80]);
        put(&mut file, 0x80, b"PE\0\0");
        put(&mut file, 0x88, &[1, 2, 3, 4]);
        put(&mut file, 0x80 + 24 + 56, &[5, 6]);
        put(&mut file, 0x80 + 24 + 64, &[7]);
        let identity = PeIdentity { time_stamp: 0x0403_0201, size_of_image: 0x605, check_sum: 7 };
        assert_eq!(ImageIdentity::of_file(&file), Some(ImageIdentity::Pe(identity)));
        put(&mut file, 0x80, b"NE");
        assert_eq!(ImageIdentity::of_file(&file), None);
    }

    #[test]
    fn damaged_headers_give_no_identity_or_another_one() {
        let file = elf_file(4);
        let identity = ImageIdentity::of_file(&file);
        for len in 0..file.len() {
            let found = ImageIdentity::of_file(&file[..len]);
            assert!(len >= 0x1180 || found != identity, "{len}");
        }
        for (at, value) in [(32, [0xFF; 8]), (56, [0xFF; 8]), (72, [0xFF; 8]), (152, [0xFF; 8])] {
            let mut file = file.clone();
            put(&mut file, at, &value);
            let _ = ImageIdentity::of_file(&file);
        }
    }
}
