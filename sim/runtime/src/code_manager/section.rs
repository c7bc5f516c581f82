//! Range sections: the addresses of managed code (contract §2.6, §8.4).

use super::CodeIndex;
use clr_codegen::{NibbleMap, NibbleMapError};
use thiserror::Error;

/// Kind of a block in a code heap that is not a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StubKind {
    /// A jump that is too far for a jump instruction.
    JumpStub,
    /// The target of a method's first call.
    Precode,
    /// A helper of ready-to-run code.
    DynamicHelper,
    /// A stub of virtual stub dispatch.
    VirtualStubDispatch,
    /// Code assembled by a stub linker.
    StubLink,
    /// A stub that counts calls of a method.
    CallCounting,
    /// The copy of the write barrier. It lies in memory of its own, which the code manager does not
    /// know.
    WriteBarrier,
}

/// Contents of a block after its code header in a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Block {
    /// A method's code.
    Code(CodeIndex),
    /// A stub, which is not managed code (C-039).
    Stub(StubKind),
}

/// Reason why a section cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SectionError {
    /// A nibble map cannot represent a start.
    #[error(transparent)]
    NibbleMap(#[from] NibbleMapError),
    /// A start is outside of the section.
    #[error("a method at {start:#x} lies outside of its section")]
    Outside {
        /// The start (VA).
        start: u64,
    },
    /// The section is empty or larger than 4 GiB.
    #[error("a section from {low:#x} to {high:#x} is empty or too large")]
    Size {
        /// First address (VA).
        low: u64,
        /// End (VA, exclusive).
        high: u64,
    },
}

/// A range of addresses that one code manager is responsible for.
#[derive(Clone, Debug)]
pub struct RangeSection {
    low: u64,
    high: u64,
    kind: SectionKind,
    /// Blocks by start, as offsets from `low`; ascending.
    starts: Vec<(u32, Block)>,
}

#[derive(Clone, Debug)]
enum SectionKind {
    /// A JIT heap. Offsets in the map count from `low` rounded down to a bucket.
    CodeHeap(NibbleMap),
    /// A ready-to-run image.
    ReadyToRun,
    /// A native image with its code sections, as offsets from `low`: first and end (exclusive).
    NativeImage(Vec<(u32, u32)>),
}

/// Size in bytes of a bucket of a nibble map.
const BUCKET: u64 = 32;

impl RangeSection {
    /// Creates a JIT heap with these blocks, by their start (VA).
    ///
    /// # Errors
    /// Returns [`SectionError`] if the range is invalid, or a start is outside of it or cannot be
    /// represented in a nibble map.
    pub fn code_heap(low: u64, high: u64, blocks: &[(u64, Block)]) -> Result<Self, SectionError> {
        let mut map = NibbleMap::new();
        let lead = (low % BUCKET) as u32;
        let starts = starts(low, high, blocks)?;
        for (start, _) in &starts {
            map.set((start + lead) & !3)?;
        }
        Ok(Self { low, high, kind: SectionKind::CodeHeap(map), starts })
    }

    /// Creates a ready-to-run image whose methods start at these addresses (VA).
    ///
    /// # Errors
    /// Returns [`SectionError`] if the range is invalid or a start is outside of it.
    pub fn ready_to_run(
        low: u64,
        high: u64,
        methods: &[(u64, CodeIndex)],
    ) -> Result<Self, SectionError> {
        let blocks: Vec<_> = methods.iter().map(|(at, code)| (*at, Block::Code(*code))).collect();
        let starts = starts(low, high, &blocks)?;
        Ok(Self { low, high, kind: SectionKind::ReadyToRun, starts })
    }

    /// Creates a native image (NGen) with the code sections at `sections` (VA, first and end): hot,
    /// unprofiled, cold. A method with cold code has two starts.
    ///
    /// # Errors
    /// Returns [`SectionError`] if the range is invalid or an address is outside of it.
    pub fn native_image(
        low: u64,
        high: u64,
        sections: &[(u64, u64)],
        methods: &[(u64, CodeIndex)],
    ) -> Result<Self, SectionError> {
        let blocks: Vec<_> = methods.iter().map(|(at, code)| (*at, Block::Code(*code))).collect();
        let starts = starts(low, high, &blocks)?;
        let offset = |start: u64| {
            let offset = start.checked_sub(low).filter(|_| start <= high);
            offset.map(|offset| offset as u32).ok_or(SectionError::Outside { start })
        };
        let mut ranges = Vec::with_capacity(sections.len());
        for (first, behind) in sections {
            ranges.push((offset(*first)?, offset(*behind)?));
        }
        Ok(Self { low, high, kind: SectionKind::NativeImage(ranges), starts })
    }

    /// Returns the first address (VA).
    pub const fn low(&self) -> u64 {
        self.low
    }

    /// Returns the end (VA, exclusive).
    pub const fn high(&self) -> u64 {
        self.high
    }

    /// Returns true if the section is a heap of the JIT.
    pub(super) const fn is_code_heap(&self) -> bool {
        matches!(self.kind, SectionKind::CodeHeap(_))
    }

    /// Returns true if the function table alone determines the entry of an address, regardless of
    /// the entry's end (contract §8.3).
    pub(super) const fn ignores_ends(&self) -> bool {
        !self.is_code_heap()
    }

    /// Returns true if entries of cold code refer to those of the hot part.
    pub(super) const fn has_cold_entries(&self) -> bool {
        matches!(self.kind, SectionKind::NativeImage(_))
    }

    /// Returns the block with the last start at or before `ip` (VA). Padding belongs to the
    /// preceding method (C-041, C-147), except in native images, where only addresses inside a code
    /// section belong to a method. How far away the start may be is the code manager's to say.
    pub fn find(&self, ip: u64) -> Option<Block> {
        if ip < self.low || ip >= self.high {
            return None;
        }
        let offset = (ip - self.low) as u32;
        let start = match &self.kind {
            SectionKind::CodeHeap(map) => {
                // The map stores starts with word granularity, the headers with byte granularity.
                let lead = (self.low % BUCKET) as u32;
                let start = map.find(offset + lead)?.saturating_sub(lead);
                let index = self.starts.partition_point(|(at, _)| *at < start);
                return self.starts.get(index).map(|(_, block)| *block);
            }
            SectionKind::ReadyToRun => offset,
            SectionKind::NativeImage(sections) => {
                sections.iter().find(|(first, behind)| (*first..*behind).contains(&offset))?;
                offset
            }
        };
        let after = self.starts.partition_point(|(at, _)| *at <= start);
        self.starts.get(after.checked_sub(1)?).map(|(_, block)| *block)
    }
}

fn starts(low: u64, high: u64, blocks: &[(u64, Block)]) -> Result<Vec<(u32, Block)>, SectionError> {
    if high <= low || high - low > u64::from(u32::MAX) - BUCKET {
        return Err(SectionError::Size { low, high });
    }
    let mut starts = Vec::with_capacity(blocks.len());
    for (start, block) in blocks {
        if *start < low || *start >= high {
            return Err(SectionError::Outside { start: *start });
        }
        starts.push(((start - low) as u32, *block));
    }
    starts.sort_by_key(|(start, _)| *start);
    Ok(starts)
}
