//! Heaps: texts, blobs and GUIDs, each at an offset that never changes.

use crate::{compress, decompress};
use std::collections::BTreeMap;

/// A heap of `#Strings`, `#Blob` or `#US`. What is added later gets memory of its own: a profiler keeps pointers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heap {
    /// Pieces by their offset: entries with their length before them and the final 0 of strings behind.
    pieces: BTreeMap<u32, Box<[u8]>>,
    /// Offsets of what was added, to find it again.
    known: BTreeMap<Box<[u8]>, u32>,
    size: u32,
}

impl Heap {
    /// Creates the heap of strings with these bytes.
    pub(crate) fn of_strings(bytes: &[u8]) -> Self {
        // What fills the stream up is no text.
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 2);
        let bytes = bytes.get(..end).unwrap_or(bytes);
        Self::of_entries(bytes, |heap, offset| heap.text_with_end(offset).len())
    }

    /// Creates a heap of blobs with these bytes.
    pub(crate) fn of_blobs(bytes: &[u8]) -> Self {
        Self::of_entries(bytes, |heap, offset| {
            decompress(heap.from(offset)).map_or(0, |(len, head)| head + len as usize)
        })
    }

    fn of_entries(bytes: &[u8], size_of: impl Fn(&Self, u32) -> usize) -> Self {
        let pieces = BTreeMap::from([(0, bytes.into())]);
        let mut heap = Self { pieces, known: BTreeMap::new(), size: bytes.len() as u32 };
        let mut offset = 0;
        while offset < heap.size {
            let size = size_of(&heap, offset);
            let Some(entry) = heap.from(offset).get(..size).filter(|_| size > 0) else { break };
            let entry = entry.into();
            heap.known.entry(entry).or_insert(offset);
            offset += size as u32;
        }
        heap
    }

    /// Adds a text, unless it is known. Returns its offset.
    pub fn add(&mut self, text: &str) -> u32 {
        let kept = text.split('\0').next().unwrap_or_default();
        if kept.is_empty() { 0 } else { self.entry([kept.as_bytes(), &[0]].concat()) }
    }

    /// Adds a blob, unless it is known. Returns its offset.
    pub fn add_blob(&mut self, blob: &[u8]) -> u32 {
        if blob.is_empty() {
            return 0;
        }
        self.entry([&compress(blob.len() as u32), blob].concat())
    }

    /// Adds a text of a program, in UTF-16, with the byte that follows it, unless it is known. Returns its offset, the row of
    /// its token. The byte is 1 if a character may be unlike those of ASCII (II.24.2.4).
    pub fn add_user_string(&mut self, text: &[u16], last: u8) -> u32 {
        let mut blob: Vec<u8> = text.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        blob.push(last);
        self.entry([&compress(blob.len() as u32)[..], &blob].concat())
    }

    fn entry(&mut self, bytes: Vec<u8>) -> u32 {
        let bytes = bytes.into_boxed_slice();
        if let Some(offset) = self.known.get(&bytes) {
            return *offset;
        }
        if self.size == 0 {
            // The first entry is the empty one.
            self.pieces.insert(0, Box::new([0]));
            self.size = 1;
        }
        let offset = self.size;
        self.size += bytes.len() as u32;
        self.known.insert(bytes.clone(), offset);
        self.pieces.insert(offset, bytes);
        offset
    }

    /// Returns the bytes from an offset to the end of its piece.
    fn from(&self, offset: u32) -> &[u8] {
        let Some((start, piece)) = self.pieces.range(..=offset).next_back() else { return &[] };
        piece.get((offset - start) as usize..).unwrap_or_default()
    }

    /// Returns the text at an offset, or "" if there is none.
    pub fn text(&self, offset: u32) -> &str {
        std::str::from_utf8(self.text_with_end(offset).split_last().map_or(&[], |(_, text)| text))
            .unwrap_or_default()
    }

    /// Returns the text at an offset with its final 0.
    pub fn text_with_end(&self, offset: u32) -> &[u8] {
        let bytes = self.from(offset);
        let end = bytes.iter().position(|byte| *byte == 0);
        end.and_then(|end| bytes.get(..=end)).unwrap_or(&[0])
    }

    /// Returns the blob at an offset, or an empty one.
    pub fn blob(&self, offset: u32) -> &[u8] {
        self.blob_checked(offset).unwrap_or_default()
    }

    /// Returns the blob at an offset, if there is one.
    pub fn blob_checked(&self, offset: u32) -> Option<&[u8]> {
        let bytes = self.from(offset);
        let (len, head) = decompress(bytes)?;
        bytes.get(head..head + len as usize)
    }

    /// Returns the offset of the entry behind the blob at this one, if there is one.
    pub fn next_blob(&self, offset: u32) -> Option<u32> {
        let (len, head) = decompress(self.from(offset))?;
        Some(offset + head as u32 + len).filter(|next| *next < self.size)
    }

    /// Returns the offset of the entry behind the text at this one, if there is one.
    pub fn next_text(&self, offset: u32) -> Option<u32> {
        let next = offset + self.text_with_end(offset).len() as u32;
        Some(next).filter(|next| *next < self.size)
    }

    /// Returns the number of bytes.
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Returns all bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.pieces.values().flat_map(|piece| piece.iter().copied()).collect()
    }
}

/// The heap of GUIDs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guids(pub(crate) Vec<[u8; 16]>);

impl Guids {
    /// Adds a GUID. Returns its number, from 1.
    pub fn add(&mut self, guid: [u8; 16]) -> u32 {
        self.0.push(guid);
        self.0.len() as u32
    }

    /// Returns a GUID by its number, or zeros if there is none.
    pub fn get(&self, number: u32) -> [u8; 16] {
        let index = number.checked_sub(1);
        index.and_then(|index| self.0.get(index as usize)).copied().unwrap_or_default()
    }

    /// Returns the number of GUIDs.
    pub fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
