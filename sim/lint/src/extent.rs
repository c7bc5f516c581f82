//! The ranges of an image that its unwind data describes.

use clr_walker::code_map::CodeRegion;
use clr_walker::image::RuntimeFunction;
use clr_walker::unwind::win64::UnwindInfo;
use core::ops::Range;

/// Maximum number of links of a chain of UNWIND_INFO, as in Windows.
const CHAIN_LIMIT: u32 = 32;

/// The functions of a region, by its unwind data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extents<'m, 'a> {
    region: &'m CodeRegion<'a>,
}

impl<'m, 'a> Extents<'m, 'a> {
    pub(crate) const fn new(region: &'m CodeRegion<'a>) -> Self {
        Self { region }
    }

    /// Returns the described ranges, ascending as in the table.
    pub(crate) fn all(self) -> Vec<Range<u32>> {
        match self.region.cfi() {
            Some(table) => table.functions().collect(),
            None => self.region.functions().iter().map(|entry| entry.begin..entry.end).collect(),
        }
    }

    /// Returns the described range that contains `rva`.
    pub(crate) fn of(self, rva: u32) -> Option<Range<u32>> {
        if let Some(table) = self.region.cfi() {
            return table.function(rva);
        }
        let entry = self.region.functions().find(rva)?;
        Some(entry.begin..entry.end)
    }

    /// Returns true if `rva` has unwind data.
    pub(crate) fn has_data(self, rva: u32) -> bool {
        self.of(rva).is_some()
    }

    pub(crate) fn is_executable(self, rva: u32) -> bool {
        self.region.is_executable(rva)
    }

    /// Returns true if both RVAs are in parts of the same function: in one range, in ranges that are
    /// chained to one another, or both in none.
    pub(crate) fn is_same(self, one: u32, other: u32) -> bool {
        if let Some(table) = self.region.cfi() {
            return match table.function(one) {
                Some(range) => range.contains(&other),
                None => table.function(other).is_none(),
            };
        }
        let find = |rva| self.region.functions().find(rva);
        match (find(one), find(other)) {
            (None, None) => true,
            (Some(one), Some(other)) => one == other || self.root(one) == self.root(other),
            _ => false,
        }
    }

    /// Returns the begin of the entry at the root of the chain.
    fn root(self, mut entry: RuntimeFunction) -> Option<u32> {
        for _ in 0..CHAIN_LIMIT {
            let info = UnwindInfo::read(self.region, entry.unwind_info & !1).ok()?;
            match info.parent().ok()? {
                Some(parent) => entry = parent,
                None => return Some(entry.begin),
            }
        }
        None
    }

    /// Returns true if the range that begins at `rva` is a part of a function that is not entered at
    /// its begin.
    pub(crate) fn is_chained(self, rva: u32) -> bool {
        let Some(entry) = self.region.functions().find(rva) else { return false };
        self.region.cfi().is_none()
            && (entry.indirect().is_some() || self.root(entry) != Some(entry.begin))
    }

    /// Returns true if the UNWIND_INFO of the range with `rva` has a handler, and neither codes nor a
    /// parent.
    pub(crate) fn has_handler_alone(self, rva: u32) -> bool {
        let entry = self.region.functions().find(rva).filter(|entry| entry.indirect().is_none());
        entry.filter(|_| self.region.cfi().is_none()).is_some_and(|entry| {
            UnwindInfo::read(self.region, entry.unwind_info).is_ok_and(|info| {
                info.slot_count() == 0
                    && !info.is_chained()
                    && matches!(info.handler(), Ok(Some(_)))
            })
        })
    }
}
