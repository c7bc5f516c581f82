//! The range section map: a tree over the address space, whose leaves are lists of sections.
//!
//! Five levels of 256 pointers each take 8 bits of an address, from bit 56 down; what is left are
//! chunks of 128 KiB, each with a list of fragments of range sections. Bit 0 of a pointer marks what
//! may be unloaded.

use super::descriptor::ContractDescriptor;
use super::error::{CodeLookupError, ContractError};
use crate::jitted::header::copy;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use clr_unwind::{Memory, Unreadable};
use core::ops::Range;

const LEVELS: u32 = 5;
const BITS_PER_LEVEL: u32 = 8;
/// Bits of an address within a chunk.
const CHUNK_BITS: u32 = 17;
const POINTERS_PER_TABLE: u32 = 256;
/// Limits of lists and of the whole tree.
const FRAGMENT_LIMIT: u32 = 1 << 12;
const TABLE_LIMIT: u32 = 1 << 14;

/// `RANGE_SECTION_COLLECTIBLE`, `RANGE_SECTION_CODEHEAP`, `RANGE_SECTION_RANGELIST`.
const CODE_HEAP: u32 = 2;
const RANGE_LIST: u32 = 4;
const KNOWN_FLAGS: u32 = 7;

/// A range of addresses with code of one kind.
#[derive(Clone, Debug)]
pub(super) struct RangeSection {
    pub(super) range: Range<u64>,
    /// Address of the `CodeHeapListNode` (VA), if the section is a code heap.
    pub(super) heap: u64,
    /// Address of the ready-to-run image's Module (VA), or 0.
    pub(super) module: u64,
    /// True for stubs outside code heaps.
    pub(super) is_stubs: bool,
}

/// The range section map of a runtime: its address, and the offsets of its structures.
#[derive(Clone, Copy, Debug)]
pub(super) struct RangeSections {
    /// Address of the table of the highest level (VA).
    top: u64,
    fragment_begin: u32,
    fragment_end: u32,
    fragment_section: u32,
    fragment_next: u32,
    begin: u32,
    end: u32,
    next_for_delete: u32,
    jit_manager: u32,
    flags: u32,
    heap: u32,
    ready_to_run: u32,
}

impl RangeSections {
    pub(super) fn new(descriptor: &ContractDescriptor) -> Result<Self, ContractError> {
        let map = descriptor.global("ExecutionManagerCodeRangeMapAddress")?;
        let top = descriptor.field("RangeSectionMap", "TopLevelData")?;
        let fragment = |field| descriptor.field("RangeSectionFragment", field);
        let section = |field| descriptor.field("RangeSection", field);
        Ok(Self {
            top: map.wrapping_add(top.into()),
            fragment_begin: fragment("RangeBegin")?,
            fragment_end: fragment("RangeEndOpen")?,
            fragment_section: fragment("RangeSection")?,
            fragment_next: fragment("Next")?,
            begin: section("RangeBegin")?,
            end: section("RangeEndOpen")?,
            next_for_delete: section("NextForDelete")?,
            jit_manager: section("JitManager")?,
            flags: section("Flags")?,
            heap: section("HeapList")?,
            ready_to_run: section("R2RModule")?,
        })
    }

    /// Returns the section that contains `address` (VA), unless it is about to be deleted.
    pub(super) fn find<M: Memory + ?Sized>(
        &self,
        memory: &M,
        address: u64,
    ) -> Result<Option<RangeSection>, CodeLookupError> {
        let mut table = self.top;
        for level in (0..LEVELS).rev() {
            let index = address >> (CHUNK_BITS + level * BITS_PER_LEVEL) & 0xFF;
            table = pointer(memory, table.wrapping_add(index * 8))?;
            if table == 0 {
                return Ok(None);
            }
        }
        let mut fragment = table;
        for _ in 0..FRAGMENT_LIMIT {
            if fragment == 0 {
                return Ok(None);
            }
            if self.fragment_range(memory, fragment)?.contains(&address) {
                return self.section(memory, fragment);
            }
            fragment = pointer(memory, at(fragment, self.fragment_next))?;
        }
        Err(CodeLookupError::Endless { address: table })
    }

    /// Returns all sections, ascending by address.
    pub(super) fn all<M: Memory + ?Sized>(
        &self,
        memory: &M,
    ) -> Result<Vec<RangeSection>, CodeLookupError> {
        let mut tables = alloc::vec![self.top];
        for _ in 1..LEVELS {
            tables = next_level(memory, &tables)?;
        }
        let mut sections = BTreeMap::new();
        for list in next_level(memory, &tables)? {
            let mut fragment = list;
            let mut count = 0;
            while fragment != 0 {
                if let Some(section) = self.section(memory, fragment)? {
                    sections.insert(section.range.start, section);
                }
                count += 1;
                if count > FRAGMENT_LIMIT {
                    return Err(CodeLookupError::Endless { address: list });
                }
                fragment = pointer(memory, at(fragment, self.fragment_next))?;
            }
        }
        Ok(sections.into_values().collect())
    }

    fn fragment_range<M: Memory + ?Sized>(
        &self,
        memory: &M,
        fragment: u64,
    ) -> Result<Range<u64>, Unreadable> {
        let begin = memory.read_u64(at(fragment, self.fragment_begin))?;
        Ok(begin..memory.read_u64(at(fragment, self.fragment_end))?)
    }

    /// Reads the section of a fragment; `None` if it is about to be deleted.
    fn section<M: Memory + ?Sized>(
        &self,
        memory: &M,
        fragment: u64,
    ) -> Result<Option<RangeSection>, CodeLookupError> {
        let part = self.fragment_range(memory, fragment)?;
        let address = memory.read_u64(at(fragment, self.fragment_section))?;
        let field = |offset| memory.read_u64(at(address, offset));
        if field(self.next_for_delete)? != 0 {
            return Ok(None);
        }
        let range = field(self.begin)?..field(self.end)?;
        let (module, heap) = (field(self.ready_to_run)?, field(self.heap)?);
        let flags = memory.read_u32(at(address, self.flags))?;
        let covers = range.start <= part.start && part.start < part.end && part.end <= range.end;
        // A section is an image, a code heap, or a list of stubs.
        let kinds = [module != 0, flags & CODE_HEAP != 0, flags & RANGE_LIST != 0];
        let is_one = kinds.iter().filter(|&&kind| kind).count() == 1;
        let has_heap = heap != 0 || flags & CODE_HEAP == 0;
        let known = flags & !KNOWN_FLAGS == 0 && field(self.jit_manager)? != 0;
        if !covers || !is_one || !has_heap || !known {
            return Err(CodeLookupError::RangeSection { address });
        }
        let [_, _, is_stubs] = kinds;
        Ok(Some(RangeSection { range, heap, module, is_stubs }))
    }
}

/// Returns the tables that the tables of one level point to.
fn next_level<M: Memory + ?Sized>(memory: &M, tables: &[u64]) -> Result<Vec<u64>, CodeLookupError> {
    let mut next = Vec::new();
    for &table in tables {
        let pointers = copy(memory, table, POINTERS_PER_TABLE * 8)?;
        let pointers = pointers.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes) & !1);
        next.extend(pointers.filter(|&pointer| pointer != 0));
        if next.len() as u64 > u64::from(TABLE_LIMIT) {
            return Err(CodeLookupError::Endless { address: table });
        }
    }
    Ok(next)
}

/// Reads a pointer without its mark.
fn pointer<M: Memory + ?Sized>(memory: &M, address: u64) -> Result<u64, Unreadable> {
    Ok(memory.read_u64(address)? & !1)
}

const fn at(structure: u64, offset: u32) -> u64 {
    structure.wrapping_add(offset as u64)
}
