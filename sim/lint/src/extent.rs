//! The ranges of an image that its unwind data describes.

use clr_unwind::compact::{Entry, Layout};
use clr_unwind::win64::UnwindInfo;
use clr_unwind::{CodeRegion, RuntimeFunction};
use core::cmp::Reverse;
use core::ops::Range;

/// Returns true if an entry of compact unwind information describes a frame.
fn describes(entry: &Entry) -> bool {
    entry.encoding.layout() != Ok(Layout::Nothing)
}

/// The functions of a region, by its unwind data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extents<'m, 'a> {
    region: &'m CodeRegion<'a>,
}

impl<'m, 'a> Extents<'m, 'a> {
    /// Maximum number of links of a chain of UNWIND_INFO, as in Windows.
    pub(crate) const CHAIN_LIMIT: u32 = 32;

    pub(crate) const fn new(region: &'m CodeRegion<'a>) -> Self {
        Self { region }
    }

    /// Returns the described ranges, ascending as in the table.
    pub(crate) fn all(self) -> Vec<Range<u32>> {
        let Some(table) = self.region.cfi() else {
            return self.region.functions().iter().map(|entry| entry.begin..entry.end).collect();
        };
        let mut all: Vec<_> = table.functions().collect();
        if let Some(compact) = self.region.compact() {
            let entries = compact.entries().map_while(Result::ok);
            all.extend(entries.filter(describes).map(|entry| entry.range));
            // Of two that begin together, the longer one counts.
            all.sort_unstable_by_key(|range| (range.start, Reverse(range.end)));
            all.dedup_by_key(|range| range.start);
        }
        all
    }

    /// Returns the described range that contains `rva`.
    pub(crate) fn of(self, rva: u32) -> Option<Range<u32>> {
        if let Some(table) = self.region.cfi() {
            return table.function(rva).or_else(|| self.compact(rva));
        }
        let entry = self.region.functions().find(rva)?;
        Some(entry.begin..entry.end)
    }

    /// Returns the range of the compact unwind entry with `rva`. Linkers join the entries of
    /// neighbouring functions that have the same frame.
    fn compact(self, rva: u32) -> Option<Range<u32>> {
        let entry = self.region.compact()?.find(rva).ok()??;
        describes(&entry).then_some(entry.range)
    }

    /// Returns true if the code at `rva` makes the frame of a compact unwind entry, so that a function
    /// begins there even if the entry is wrong: a push, or `sub rsp`.
    pub(crate) fn has_prologue(self, rva: u32) -> bool {
        let first = self.region.bytes_from(rva).unwrap_or_default();
        let makes_frame = matches!(
            first,
            [0x50..=0x57, ..] | [0x41, 0x50..=0x57, ..] | [0x48, 0x81 | 0x83, 0xEC, ..]
        );
        makes_frame && self.compact(rva).is_some()
    }

    /// Returns true if `rva` has unwind data.
    pub(crate) fn has_data(self, rva: u32) -> bool {
        self.of(rva).is_some()
    }

    /// Returns true if unwind data of a single function describes both RVAs. An entry of compact unwind
    /// information may be for several.
    pub(crate) fn is_one_function(self, one: u32, other: u32) -> bool {
        let range = match self.region.cfi() {
            Some(table) => table.function(one),
            None => self.region.functions().find(one).map(|entry| entry.begin..entry.end),
        };
        range.is_some_and(|range| range.contains(&other))
    }

    pub(crate) fn is_executable(self, rva: u32) -> bool {
        self.region.is_executable(rva)
    }

    /// Returns true if both RVAs are in parts of the same function: in one range, in ranges that are
    /// chained to one another, or both in none.
    pub(crate) fn is_same(self, one: u32, other: u32) -> bool {
        if self.region.cfi().is_some() {
            return match self.of(one) {
                Some(range) => range.contains(&other),
                None => self.of(other).is_none(),
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
        for _ in 0..Self::CHAIN_LIMIT {
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
