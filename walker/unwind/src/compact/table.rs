//! Look-up of entries by address.

use super::encoding::Encoding;
use super::error::{CompactError, CompactProblem};
use crate::image::Section;
use alloc::boxed::Box;
use core::ops::Range;

/// The sections of an image that compact unwind information needs. Either may be missing.
#[derive(Clone, Debug, Default)]
pub struct CompactSections<'a> {
    /// `__TEXT,__unwind_info`. RVAs in it count from the image's header.
    pub unwind_info: Option<Section<'a>>,
    /// RVAs of `__TEXT,__stub_helper`: the code that asks the dynamic linker to bind a function. It
    /// has no unwind information, and pushes words.
    pub stub_helper: Range<u32>,
}

/// The compact unwind information of an image.
///
/// Making the table reads nothing: a look-up searches the section's own two levels of indexes, in
/// O(log n), and allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct CompactTable<'a> {
    data: &'a [u8],
    stub_helper: Range<u32>,
    /// The entries of an object file, which has no index.
    of_object: Box<[Entry]>,
}

/// The description of a range of code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The range of code (RVAs): a function, or neighbouring functions with the same encoding.
    pub range: Range<u32>,
    /// The encoding.
    pub encoding: Encoding,
}

impl Entry {
    /// Creates the description of a range of code (RVAs).
    pub const fn new(range: Range<u32>, encoding: Encoding) -> Self {
        Self { range, encoding }
    }
}

/// The language-specific handling of exceptions in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Personality {
    /// RVA of the pointer to the personality routine; 0 in an object file.
    pub pointer: u32,
    /// RVA of the language-specific data.
    pub lsda: u32,
}

/// `unwind_info_section_header`: offsets and counts in bytes of the section.
struct Header {
    common: Array,
    personalities: Array,
    index: Array,
}

/// An array of the section: offset of its first element, and number of elements.
#[derive(Clone, Copy)]
struct Array {
    offset: u32,
    count: u32,
}

/// An element of the first-level index.
#[derive(Clone, Copy)]
struct Index {
    /// RVA of the first function.
    function: u32,
    /// Offset of the second-level page; 0 for none.
    page: u32,
    /// Offset of the first element for this page in the array of language-specific data.
    lsda: u32,
}

const INDEX_SIZE: u32 = 12;
const LSDA_SIZE: u32 = 8;
const REGULAR: u32 = 2;
const COMPRESSED: u32 = 3;

impl<'a> CompactTable<'a> {
    /// Creates the table of a linked image.
    pub fn new(sections: &CompactSections<'a>) -> Self {
        let data = sections.unwind_info.map_or(&[][..], |section| section.bytes);
        Self { data, stub_helper: sections.stub_helper.clone(), of_object: Box::default() }
    }

    /// Creates the table of an object file, from entries in any order. Of entries that overlap, each
    /// ends where the next one starts.
    pub fn of_object(mut entries: alloc::vec::Vec<Entry>) -> Self {
        entries.sort_by_key(|entry| entry.range.start);
        let mut next = u32::MAX;
        for entry in entries.iter_mut().rev() {
            entry.range.end = entry.range.end.min(next);
            next = entry.range.start;
        }
        entries.retain(|entry| !entry.range.is_empty());
        Self { of_object: entries.into(), ..Self::default() }
    }

    /// Returns true if there is neither an entry nor a stub helper.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty() && self.of_object.is_empty() && self.stub_helper.is_empty()
    }

    /// Returns the RVAs of `__stub_helper`.
    pub(crate) const fn stub_helper(&self) -> &Range<u32> {
        &self.stub_helper
    }

    /// Returns the entry for the code at `rva`; `None` if no entry covers it.
    ///
    /// # Errors
    /// [`CompactError`] if the section is malformed where the search comes by.
    pub fn find(&self, rva: u32) -> Result<Option<Entry>, CompactError> {
        if self.data.is_empty() {
            let after = self.of_object.partition_point(|entry| entry.range.start <= rva);
            let entry = after.checked_sub(1).and_then(|at| self.of_object.get(at));
            return Ok(entry.filter(|entry| entry.range.contains(&rva)).cloned());
        }
        let header = self.header()?;
        let Some((first, next)) = self.index(&header, rva)? else { return Ok(None) };
        if first.page == 0 {
            return Ok(None);
        }
        let (kind, entries) = (self.u32(first.page)?, self.page_array(first.page, 4)?);
        let (range, encoding) = match kind {
            REGULAR => {
                let start = |n| self.u32(entries.at(n, 8)?);
                let Some((n, range)) = entries.last_not_after(rva, next.function, start)? else {
                    return Ok(None);
                };
                (range, self.u32(entries.at(n, 8)?.saturating_add(4))?)
            }
            COMPRESSED => {
                let offset = |n| Ok(self.u32(entries.at(n, 4)?)? & 0x00FF_FFFF);
                let start = |n| Ok(first.function.saturating_add(offset(n)?));
                let Some((n, range)) = entries.last_not_after(rva, next.function, start)? else {
                    return Ok(None);
                };
                let index = (self.u32(entries.at(n, 4)?)? >> 24) as u8;
                (range, self.encoding(&header, first.page, index)?)
            }
            other => {
                let problem = CompactProblem::PageKind(other);
                return Err(CompactError { problem, offset: first.page });
            }
        };
        Ok(Some(Entry { range, encoding: Encoding(encoding) }))
    }

    /// Returns the personality routine and the language-specific data of the function that `entry`
    /// describes; `None` if it has none.
    ///
    /// # Errors
    /// [`CompactError`] if the section is malformed where the search comes by.
    pub fn personality(&self, entry: &Entry) -> Result<Option<Personality>, CompactError> {
        let number = entry.encoding.personality();
        if self.data.is_empty() || !entry.encoding.has_lsda() {
            return Ok(None);
        }
        let header = self.header()?;
        let Some((first, next)) = self.index(&header, entry.range.start)? else { return Ok(None) };
        let count = next.lsda.saturating_sub(first.lsda) / LSDA_SIZE;
        let array = Array { offset: first.lsda, count };
        let start = |n| self.u32(array.at(n, LSDA_SIZE)?);
        let found = array.last_not_after(entry.range.start, u32::MAX, start)?;
        let Some((n, _)) = found.filter(|(_, range)| range.start == entry.range.start) else {
            return Ok(None);
        };
        let lsda = self.u32(array.at(n, LSDA_SIZE)?.saturating_add(4))?;
        let pointer = match number {
            0 => 0,
            number if u32::from(number) > header.personalities.count => {
                let offset = header.personalities.offset;
                return Err(CompactError { problem: CompactProblem::CutOff, offset });
            }
            number => self.u32(header.personalities.at(u32::from(number) - 1, 4)?)?,
        };
        Ok(Some(Personality { pointer, lsda }))
    }

    /// Returns all entries, ascending by address. The iterator ends after an error.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry, CompactError>> + '_ {
        let of_object = self.of_object.iter().cloned().map(Ok);
        of_object.chain(Entries { table: self, next: self.first() })
    }

    /// Returns the RVA of the first described function.
    fn first(&self) -> Option<u32> {
        if self.data.is_empty() {
            return None;
        }
        let header = self.header().ok()?;
        Some(self.index_at(&header, 0).map_or(0, |index| index.function))
    }

    fn header(&self) -> Result<Header, CompactError> {
        let version = self.u32(0)?;
        if version != 1 {
            return Err(CompactError { problem: CompactProblem::Version(version), offset: 0 });
        }
        let array = |at| Ok(Array { offset: self.u32(at)?, count: self.u32(at + 4)? });
        Ok(Header { common: array(4)?, personalities: array(12)?, index: array(20)? })
    }

    fn index_at(&self, header: &Header, n: u32) -> Result<Index, CompactError> {
        let at = header.index.at(n, INDEX_SIZE)?;
        let field = |by| self.u32(at.saturating_add(by));
        Ok(Index { function: field(0)?, page: field(4)?, lsda: field(8)? })
    }

    /// Returns the element of the first-level index for `rva`, and the next one. The last element
    /// only says where the code ends.
    fn index(&self, header: &Header, rva: u32) -> Result<Option<(Index, Index)>, CompactError> {
        let start = |n| Ok(self.index_at(header, n)?.function);
        let Some((n, _)) = header.index.last_not_after(rva, u32::MAX, start)? else {
            return Ok(None);
        };
        if n + 1 >= header.index.count {
            return Ok(None);
        }
        Ok(Some((self.index_at(header, n)?, self.index_at(header, n + 1)?)))
    }

    /// Returns the array whose offset in its page and count are at `by` from the page's start.
    fn page_array(&self, page: u32, by: u32) -> Result<Array, CompactError> {
        let [offset, count] = [by, by + 2].map(|by| self.u16(page.saturating_add(by)));
        Ok(Array { offset: page.saturating_add(offset?.into()), count: count?.into() })
    }

    /// Returns the encoding with an index of a compressed page: the common ones come first, then
    /// those of the page.
    fn encoding(&self, header: &Header, page: u32, index: u8) -> Result<u32, CompactError> {
        let Some(own) = u32::from(index).checked_sub(header.common.count) else {
            return self.u32(header.common.at(index.into(), 4)?);
        };
        let encodings = self.page_array(page, 8)?;
        if own >= encodings.count {
            let problem = CompactProblem::EncodingIndex(index);
            return Err(CompactError { problem, offset: page });
        }
        self.u32(encodings.at(own, 4)?)
    }

    #[inline]
    fn chunk<const N: usize>(&self, offset: u32) -> Result<[u8; N], CompactError> {
        let bytes = self.data.get(offset as usize..).and_then(<[u8]>::first_chunk);
        bytes.copied().ok_or(CompactError { problem: CompactProblem::CutOff, offset })
    }

    #[inline]
    fn u32(&self, offset: u32) -> Result<u32, CompactError> {
        self.chunk(offset).map(u32::from_le_bytes)
    }

    #[inline]
    fn u16(&self, offset: u32) -> Result<u16, CompactError> {
        self.chunk(offset).map(u16::from_le_bytes)
    }
}

impl Array {
    /// Returns the offset of an element.
    #[inline]
    fn at(self, n: u32, size: u32) -> Result<u32, CompactError> {
        let offset = n.checked_mul(size).and_then(|by| self.offset.checked_add(by));
        let error = CompactError { problem: CompactProblem::CutOff, offset: self.offset };
        offset.ok_or(error)
    }

    /// Returns the last element that does not start after `rva`, and the range from its start to that
    /// of the next element, or to `end` after the last one.
    #[inline]
    fn last_not_after(
        self,
        rva: u32,
        end: u32,
        start: impl Fn(u32) -> Result<u32, CompactError>,
    ) -> Result<Option<(u32, Range<u32>)>, CompactError> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if start(middle)? <= rva { low = middle + 1 } else { high = middle }
        }
        let Some(n) = low.checked_sub(1) else { return Ok(None) };
        let end = if low < self.count { start(low)? } else { end };
        Ok(Some((n, start(n)?..end)))
    }
}

/// The entries of a linked image.
struct Entries<'t, 'a> {
    table: &'t CompactTable<'a>,
    /// RVA at which the next entry may start; `None` at the end.
    next: Option<u32>,
}

impl Iterator for Entries<'_, '_> {
    type Item = Result<Entry, CompactError>;

    fn next(&mut self) -> Option<Self::Item> {
        let from = self.next.take()?;
        match self.table.find(from) {
            // Neighbouring pages share a border.
            Ok(Some(entry)) if entry.range.start != from => {
                let problem = CompactProblem::Order;
                Some(Err(CompactError { problem, offset: 0 }))
            }
            // Each entry contains the address at which it was found, so this ascends.
            Ok(Some(entry)) => {
                self.next = Some(entry.range.end);
                Some(Ok(entry))
            }
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        }
    }
}
