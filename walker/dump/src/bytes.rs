//! The bytes of a dump, in memory or in a file.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

/// The bytes of a dump, which need not be in memory. Offsets count in bytes from its start.
pub trait DumpBytes: Debug + Sync {
    /// Returns the size of the dump in bytes.
    fn size(&self) -> u64;

    /// Fills `buffer` with the bytes from `offset` on. Returns `None` if they are beyond the end, or cannot be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Option<()>;

    /// Returns `len` bytes from `offset` on, if they are in memory.
    fn slice(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let _ = (offset, len);
        None
    }
}

/// Where the bytes of a dump are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'d> {
    Memory(&'d [u8]),
    Elsewhere(&'d dyn DumpBytes),
}

impl DumpBytes for Source<'_> {
    fn size(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Elsewhere(bytes) => bytes.size(),
        }
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Option<()> {
        match self {
            Self::Memory(_) => buffer.copy_from_slice(self.slice(offset, buffer.len())?),
            Self::Elsewhere(bytes) => bytes.read_at(offset, buffer)?,
        }
        Some(())
    }

    fn slice(&self, offset: u64, len: usize) -> Option<&[u8]> {
        match self {
            Self::Memory(bytes) => bytes.get(usize::try_from(offset).ok()?..)?.get(..len),
            Self::Elsewhere(bytes) => bytes.slice(offset, len),
        }
    }
}

/// Size of a block in bytes.
const BLOCK: usize = 0x1_0000;
/// Number of blocks: 16 MiB.
const BLOCKS: usize = 256;

/// A dump of which the blocks that were read last are in memory: 16 MiB at most, however large it is.
#[derive(Debug)]
pub struct CachedBytes<B> {
    bytes: B,
    /// Each block has one place, by its number.
    blocks: Mutex<Vec<Block>>,
}

#[derive(Debug, Default)]
struct Block {
    /// One more than the block's number, or 0.
    next: u64,
    bytes: Vec<u8>,
}

impl<B: DumpBytes> CachedBytes<B> {
    /// Creates a cache without blocks.
    pub fn new(bytes: B) -> Self {
        let blocks = std::iter::repeat_with(Block::default).take(BLOCKS).collect();
        Self { bytes, blocks: Mutex::new(blocks) }
    }

    /// Returns the bytes that are cached.
    pub fn into_inner(self) -> B {
        self.bytes
    }

    /// Copies bytes of one block from `offset` on. Returns their number, one at least.
    fn copy(&self, blocks: &mut [Block], offset: u64, buffer: &mut [u8]) -> Option<usize> {
        let number = offset / BLOCK as u64;
        let block = blocks.get_mut((number % BLOCKS as u64) as usize)?;
        if block.next != number + 1 {
            let start = number * BLOCK as u64;
            let len = self.bytes.size().checked_sub(start)?.min(BLOCK as u64);
            // A read that fails leaves nothing.
            block.next = 0;
            block.bytes.resize(len as usize, 0);
            self.bytes.read_at(start, &mut block.bytes)?;
            block.next = number + 1;
        }
        let bytes = block.bytes.get((offset % BLOCK as u64) as usize..)?;
        let len = bytes.len().min(buffer.len());
        buffer.get_mut(..len)?.copy_from_slice(bytes.get(..len)?);
        (len != 0).then_some(len)
    }
}

impl<B: DumpBytes> DumpBytes for CachedBytes<B> {
    fn size(&self) -> u64 {
        self.bytes.size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Option<()> {
        // What another thread left is complete, or has no number.
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            done += self.copy(&mut blocks, offset.checked_add(done as u64)?, rest)?;
        }
        Some(())
    }
}
