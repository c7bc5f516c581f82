//! Range sections: which addresses are managed code (contract §2.6, §8.4).

use super::CodeIndex;
use clr_codegen::{NibbleMap, NibbleMapError};
use thiserror::Error;

/// What the code manager of a heap calls blocks that are no methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StubKind {
    /// A jump too far for an instruction.
    JumpStub,
    /// What a method's first call goes through.
    Precode,
    /// A helper of ready-to-run code.
    DynamicHelper,
    /// Of virtual stub dispatch.
    VirtualStubDispatch,
    /// Assembled by a stub linker.
    StubLink,
}

/// What a code header in a heap is before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Block {
    /// A method's code.
    Code(CodeIndex),
    /// A stub, which is not managed code (C-039).
    Stub(StubKind),
}

/// Why a section cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SectionError {
    /// A nibble map cannot hold a start.
    #[error(transparent)]
    NibbleMap(#[from] NibbleMapError),
    /// A start lies outside of the section.
    #[error("a method at {start:#x} lies outside of its section")]
    Outside {
        /// The start (VA).
        start: u64,
    },
    /// It is empty, or larger than 4 GiB.
    #[error("a section from {low:#x} to {high:#x} is empty or too large")]
    Size {
        /// Its first address (VA).
        low: u64,
        /// The address behind its last (VA).
        high: u64,
    },
}

/// A range of addresses that one code manager answers for.
#[derive(Clone, Debug)]
pub struct RangeSection {
    low: u64,
    high: u64,
    kind: SectionKind,
    /// What starts where, from `low` on; ascending by offset.
    starts: Vec<(u32, Block)>,
}

#[derive(Clone, Debug)]
enum SectionKind {
    /// A JIT heap. Offsets in the map count from `low` rounded down to a bucket.
    CodeHeap(NibbleMap),
    /// A ready-to-run image.
    ReadyToRun,
    /// A native image with its code sections, as offsets from `low`: first and behind the last.
    NativeImage(Vec<(u32, u32)>),
}

/// Buckets of a nibble map are this large.
const BUCKET: u64 = 32;

impl RangeSection {
    /// A JIT heap with these blocks, by their start (VA).
    ///
    /// # Errors
    /// [`SectionError`].
    pub fn code_heap(low: u64, high: u64, blocks: &[(u64, Block)]) -> Result<Self, SectionError> {
        let mut map = NibbleMap::new();
        let lead = (low % BUCKET) as u32;
        let starts = starts(low, high, blocks)?;
        for (start, _) in &starts {
            map.set((start + lead) & !3)?;
        }
        Ok(Self { low, high, kind: SectionKind::CodeHeap(map), starts })
    }

    /// A ready-to-run image whose methods start at these addresses (VA).
    ///
    /// # Errors
    /// [`SectionError`].
    pub fn ready_to_run(
        low: u64,
        high: u64,
        methods: &[(u64, CodeIndex)],
    ) -> Result<Self, SectionError> {
        let blocks: Vec<_> = methods.iter().map(|(at, code)| (*at, Block::Code(*code))).collect();
        let starts = starts(low, high, &blocks)?;
        Ok(Self { low, high, kind: SectionKind::ReadyToRun, starts })
    }

    /// A native image (NGen) with the code sections at `sections` (VA, first and behind the last):
    /// hot, unprofiled, cold. A method with cold code starts twice.
    ///
    /// # Errors
    /// [`SectionError`].
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

    /// Its first address (VA).
    #[must_use]
    pub const fn low(&self) -> u64 {
        self.low
    }

    /// The address behind its last (VA).
    #[must_use]
    pub const fn high(&self) -> u64 {
        self.high
    }

    /// Whether the function table alone says which entry an address belongs to, wherever the entry
    /// ends (contract §8.3).
    pub(super) const fn ignores_ends(&self) -> bool {
        !matches!(self.kind, SectionKind::CodeHeap(_))
    }

    /// Whether entries of cold code stand for those of the hot part.
    pub(super) const fn has_cold_entries(&self) -> bool {
        matches!(self.kind, SectionKind::NativeImage(_))
    }

    /// What starts nearest to `ip` (VA), not behind it. Padding belongs to the method before
    /// (C-041, C-147), but for native images, where nothing belongs to a code section but what lies
    /// in one.
    #[must_use]
    pub fn find(&self, ip: u64) -> Option<Block> {
        if ip < self.low || ip >= self.high {
            return None;
        }
        let offset = (ip - self.low) as u32;
        let start = match &self.kind {
            SectionKind::CodeHeap(map) => {
                // The map knows starts to the word, the headers to the byte.
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
