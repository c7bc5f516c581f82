//! Mapping of pages and their permissions.

use super::{AddressSpace, MAX_PAGES, PAGE_SIZE};
use core::fmt;
use core::ops::BitOr;
use thiserror::Error;

/// The bytes of a page.
pub(super) type Frame = [u8; PAGE_SIZE as usize];

/// The permissions of a page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Protection(u8);

impl Protection {
    /// No access.
    pub const NONE: Self = Self(0);
    /// Read access.
    pub const READ: Self = Self(1);
    /// Write access.
    pub const WRITE: Self = Self(2);
    /// Execute access.
    pub const EXECUTE: Self = Self(4);
    /// Guard page: no access is permitted, regardless of the other permissions, until the host
    /// changes the protection.
    pub const GUARD: Self = Self(8);
    /// Read and write access, for data.
    pub const READ_WRITE: Self = Self(1 | 2);
    /// Read and execute access, for code.
    pub const READ_EXECUTE: Self = Self(1 | 4);

    /// Returns true if all permissions of `other` are included.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns true if the access `wanted` is permitted.
    pub(super) const fn permits(self, wanted: Self) -> bool {
        self.contains(wanted) && !self.contains(Self::GUARD)
    }
}

impl BitOr for Protection {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters =
            [(Self::READ, 'r'), (Self::WRITE, 'w'), (Self::EXECUTE, 'x'), (Self::GUARD, 'g')];
        for (bit, letter) in letters {
            write!(f, "{}", if self.contains(bit) { letter } else { '-' })?;
        }
        Ok(())
    }
}

/// Consecutive pages with equal permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address (VA).
    pub start: u64,
    /// Number of pages.
    pub pages: u64,
    /// Permissions.
    pub protection: Protection,
}

/// The reason why pages cannot be mapped, unmapped or protected. Nothing has been changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MapError {
    /// The start is not a multiple of [`PAGE_SIZE`].
    #[error("{address:#x} is not at the start of a page")]
    Misaligned {
        /// Start (VA).
        address: u64,
    },
    /// The pages would exceed the address space.
    #[error("the pages from {address:#x} on go beyond the end of the address space")]
    Wraps {
        /// Start (VA).
        address: u64,
    },
    /// A page is already mapped.
    #[error("the page at {address:#x} is already mapped")]
    Overlap {
        /// First such page (VA).
        address: u64,
    },
    /// A page is not mapped.
    #[error("the page at {address:#x} is not mapped")]
    Unmapped {
        /// First such page (VA).
        address: u64,
    },
    /// More than [`MAX_PAGES`] pages would be mapped.
    #[error("mapping the pages from {address:#x} on would exceed the limit")]
    TooMany {
        /// Start (VA).
        address: u64,
    },
}

/// A mapped page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) frame: u32,
    pub(super) protection: Protection,
}

/// The page frames: host memory for pages.
#[derive(Debug)]
pub(super) struct Frames {
    /// The first page frame is always zero, and shared by all pages that were never written.
    bytes: Vec<Frame>,
    /// Generation in which each page frame was created; it may be written only in that generation.
    stamps: Vec<u64>,
    free: Vec<u32>,
}

impl Frames {
    /// The page frame of pages that were never written.
    pub(super) const ZEROES: u32 = 0;

    pub(super) fn new() -> Self {
        // The generation never gets that high, so this page frame is never written.
        Self { bytes: vec![[0; PAGE_SIZE as usize]], stamps: vec![u64::MAX], free: Vec::new() }
    }

    #[inline(always)]
    pub(super) fn get(&self, frame: u32) -> Option<&Frame> {
        self.bytes.get(frame as usize)
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, frame: u32) -> Option<&mut Frame> {
        self.bytes.get_mut(frame as usize)
    }

    /// Returns true if the page frame was created in this generation.
    pub(super) fn is_of(&self, frame: u32, generation: u64) -> bool {
        self.stamps.get(frame as usize) == Some(&generation)
    }

    /// Copies a page frame for this generation. Returns `None` at the limit of page frames.
    pub(super) fn copy(&mut self, frame: u32, generation: u64) -> Option<u32> {
        let content = *self.get(frame)?;
        if let Some(copy) = self.free.pop() {
            *self.get_mut(copy)? = content;
            *self.stamps.get_mut(copy as usize)? = generation;
            return Some(copy);
        }
        let copy = u32::try_from(self.bytes.len()).ok()?;
        if u64::from(copy) > MAX_PAGES {
            return None;
        }
        self.bytes.push(content);
        self.stamps.push(generation);
        Some(copy)
    }

    /// Returns the number of page frames.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number of free page frames, or `None` if a page frame is free twice.
    #[cfg(test)]
    pub(super) fn unused(&self) -> Option<usize> {
        let mut free = self.free.clone();
        free.sort_unstable();
        free.dedup();
        (free.len() == self.free.len()).then_some(free.len())
    }

    /// Releases a page frame that is no longer used.
    pub(super) fn release(&mut self, frame: u32) {
        if frame != Self::ZEROES {
            self.free.push(frame);
        }
    }
}

/// Returns the page numbers from `start` on.
fn numbers(start: u64, pages: u64) -> Result<core::ops::Range<u64>, MapError> {
    if !start.is_multiple_of(PAGE_SIZE) {
        return Err(MapError::Misaligned { address: start });
    }
    let first = start / PAGE_SIZE;
    let end = first.checked_add(pages).filter(|&end| end <= u64::MAX / PAGE_SIZE + 1);
    Ok(first..end.ok_or(MapError::Wraps { address: start })?)
}

impl AddressSpace {
    pub(crate) fn map(
        &mut self,
        start: u64,
        pages: u64,
        protection: Protection,
    ) -> Result<(), MapError> {
        let numbers = numbers(start, pages)?;
        if let Some((number, _)) = self.pages.range(numbers.clone()).next() {
            return Err(MapError::Overlap { address: number * PAGE_SIZE });
        }
        if pages > MAX_PAGES - self.pages.len() as u64 {
            return Err(MapError::TooMany { address: start });
        }
        for number in numbers {
            self.set_page(number, Some(Page { frame: Frames::ZEROES, protection }));
        }
        Ok(())
    }

    /// Returns the page numbers from `start` on if all those pages are mapped.
    fn mapped(&self, start: u64, pages: u64) -> Result<core::ops::Range<u64>, MapError> {
        let numbers = numbers(start, pages)?;
        let mut expected = numbers.start;
        for (number, _) in self.pages.range(numbers.clone()) {
            if *number != expected {
                break;
            }
            expected += 1;
        }
        if expected == numbers.end {
            Ok(numbers)
        } else {
            Err(MapError::Unmapped { address: expected * PAGE_SIZE })
        }
    }

    pub(crate) fn unmap(&mut self, start: u64, pages: u64) -> Result<(), MapError> {
        for number in self.mapped(start, pages)? {
            self.set_page(number, None);
        }
        Ok(())
    }

    pub(crate) fn protect(
        &mut self,
        start: u64,
        pages: u64,
        protection: Protection,
    ) -> Result<(), MapError> {
        for number in self.mapped(start, pages)? {
            let page = self.pages.get(&number).map(|page| Page { protection, ..*page });
            self.set_page(number, page);
        }
        Ok(())
    }

    /// Returns the mapped regions, ascending by address.
    pub(crate) fn regions(&self) -> Vec<Region> {
        let mut regions: Vec<Region> = Vec::new();
        for (number, page) in &self.pages {
            let start = number * PAGE_SIZE;
            match regions.last_mut() {
                Some(last)
                    if last.protection == page.protection
                        && last.start / PAGE_SIZE + last.pages == *number =>
                {
                    last.pages += 1;
                }
                _ => regions.push(Region { start, pages: 1, protection: page.protection }),
            }
        }
        regions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_runs_of_equal_pages() {
        let mut space = AddressSpace::new();
        space.map(0x2000, 3, Protection::READ).unwrap();
        space.map(0x1000, 1, Protection::READ_WRITE).unwrap();
        space.map(0x7000, 1, Protection::READ).unwrap();
        space.protect(0x3000, 1, Protection::READ | Protection::GUARD).unwrap();
        let regions = space.regions();
        let expected = [
            (0x1000, 1, "rw--"),
            (0x2000, 1, "r---"),
            (0x3000, 1, "r--g"),
            (0x4000, 1, "r---"),
            (0x7000, 1, "r---"),
        ];
        let found: Vec<_> =
            regions.iter().map(|r| (r.start, r.pages, format!("{:?}", r.protection))).collect();
        assert_eq!(found, expected.map(|(start, pages, p)| (start, pages, p.to_owned())));
        space.unmap(0x2000, 3).unwrap();
        assert_eq!(space.regions().len(), 2);
    }

    #[test]
    fn impossible_mappings_are_refused_and_change_nothing() {
        let mut space = AddressSpace::new();
        let last = u64::MAX - 0xFFF;
        space.map(last, 1, Protection::READ).unwrap();
        space.map(0x5000, 1, Protection::READ).unwrap();
        let r = Protection::READ;
        assert_eq!(space.map(0x1001, 1, r), Err(MapError::Misaligned { address: 0x1001 }));
        assert_eq!(space.map(last - 0x1000, 3, r), Err(MapError::Wraps { address: last - 0x1000 }));
        assert_eq!(space.map(0x1000, u64::MAX, r), Err(MapError::Wraps { address: 0x1000 }));
        assert_eq!(space.map(0x4000, 9, r), Err(MapError::Overlap { address: 0x5000 }));
        assert_eq!(space.map(0x6000, MAX_PAGES - 1, r), Err(MapError::TooMany { address: 0x6000 }));
        assert_eq!(space.unmap(0x5000, 2), Err(MapError::Unmapped { address: 0x6000 }));
        assert_eq!(space.protect(0x4000, 2, r), Err(MapError::Unmapped { address: 0x4000 }));
        assert_eq!(space.regions().len(), 2);
        assert_eq!(space.map(0x9000, 0, r), Ok(()));
    }
}
