//! From an address to the entry of its function.

use super::bytes::{Bases, Bytes};
use super::entry::{CodeRanges, Frames};
use super::rule::Place;
use super::scan::{Function, Problems, scan, select};
use crate::image::{CfiSections, Section};
use alloc::boxed::Box;
use alloc::vec::Vec;
use gimli::{DwEhPe, constants};

/// The index of an image's functions.
#[derive(Clone, Debug)]
pub(super) enum Index<'a> {
    /// The linker's, in `.eh_frame_hdr`.
    Header(Header<'a>),
    /// One that a pass over all entries has made, with the offset of each function's entry.
    Made(Box<[Function<u32>]>),
}

impl<'a> Index<'a> {
    /// Uses the header's table if it has one of the usual form and lists all functions: it does not
    /// list those of `.debug_frame`. Else makes an index.
    pub(super) fn new(
        sections: &CfiSections<'a>,
        both: &[Frames<'a>; 2],
        code: &CodeRanges,
        problems: &mut Problems,
    ) -> Self {
        let [_, debug_frame] = both;
        let header = sections.eh_frame_hdr.filter(|_| debug_frame.bytes.is_empty());
        if let Some(header) = header.and_then(|header| Header::read(sections, header)) {
            return Self::Header(header);
        }
        let mut functions = Vec::new();
        for frames in both {
            scan(frames, code, problems, &mut |visited| {
                let Place { section, offset } = visited.place;
                let range = visited.fde.range;
                functions.push(Function { range, section, content: offset });
            });
        }
        Self::Made(select(functions).into())
    }

    /// Returns the number of functions that are listed.
    pub(super) const fn len(&self) -> usize {
        match self {
            Self::Header(header) => header.len(),
            Self::Made(functions) => functions.len(),
        }
    }

    /// Returns the size of what was made, in bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Header(_) => 0,
            Self::Made(functions) => size_of_val(&**functions),
        }
    }
}

/// The table of an `.eh_frame_hdr`: functions by address, ascending (Linux Standard Base, "The
/// .eh_frame_hdr section").
///
/// The linker wrote it; whether it tells the truth is checked where it is used: an entry counts only
/// if its FDE begins at the same address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header<'a> {
    /// RVA of the header, from which its addresses count.
    rva: u32,
    /// RVA of `.eh_frame`.
    eh_frame: u32,
    /// Address of a function and of its FDE, as distances from the header.
    entries: &'a [[u8; 8]],
}

/// An entry of a header.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeaderEntry {
    /// RVA of the function.
    pub(super) begin: u32,
    /// Offset of the FDE in `.eh_frame`.
    pub(super) offset: usize,
}

impl<'a> Header<'a> {
    /// The form in which all linkers write entries: signed 32-bit distances from the header.
    const FORM: DwEhPe = DwEhPe(constants::DW_EH_PE_datarel.0 | constants::DW_EH_PE_sdata4.0);

    fn read(sections: &CfiSections<'a>, header: Section<'a>) -> Option<Self> {
        let mut bytes = Bytes::new(header.bytes, 0, header.bytes.len()).ok()?;
        if bytes.u8().ok()? != 1 {
            return None;
        }
        let [pointer, count, form] =
            [bytes.u8().ok()?, bytes.u8().ok()?, bytes.u8().ok()?].map(DwEhPe);
        if form != Self::FORM || count != constants::DW_EH_PE_udata4 {
            return None;
        }
        let address = sections.preferred_base.wrapping_add(u64::from(header.rva));
        let bases = Bases { section: Some(address), text: None, data: Some(address) };
        let eh_frame = bases.pointer(&mut bytes, pointer).ok()?;
        let section = sections.eh_frame?.rva;
        if eh_frame.wrapping_sub(sections.preferred_base) != section.into() {
            return None;
        }
        let count = usize::try_from(bytes.u32().ok()?).ok()?;
        let (entries, _) = header.bytes.get(bytes.offset()..)?.as_chunks();
        let entries = entries.get(..count).filter(|entries| !entries.is_empty())?;
        Some(Self { rva: header.rva, eh_frame: section, entries })
    }

    /// Returns the number of entries.
    pub(super) const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the index after the last entry whose function begins at or before `rva`.
    #[inline]
    pub(super) fn after(&self, rva: u32) -> usize {
        let distance = i64::from(rva) - i64::from(self.rva);
        self.entries.partition_point(|[b0, b1, b2, b3, ..]| {
            i64::from(i32::from_le_bytes([*b0, *b1, *b2, *b3])) <= distance
        })
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<HeaderEntry> {
        let [b0, b1, b2, b3, f0, f1, f2, f3] = *self.entries.get(at)?;
        let begin = self.rva.wrapping_add_signed(i32::from_le_bytes([b0, b1, b2, b3]));
        let fde = self.rva.wrapping_add_signed(i32::from_le_bytes([f0, f1, f2, f3]));
        Some(HeaderEntry { begin, offset: fde.wrapping_sub(self.eh_frame) as usize })
    }
}

/// Returns the function that contains `rva`.
pub(super) fn find<T>(functions: &[Function<T>], rva: u32) -> Option<&Function<T>> {
    let after = functions.partition_point(|function| function.range.start <= rva);
    let function = functions.get(after.checked_sub(1)?)?;
    function.range.contains(&rva).then_some(function)
}
