//! The rows of a table: which rule holds from which address.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// The kind of a rule, and its index among the rules of that kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RuleId(u32);

impl RuleId {
    const KIND: u32 = 3 << 30;
    const GENERAL: u32 = 1 << 30;
    const FAULT: u32 = 2 << 30;

    /// No rule: no function is here.
    pub(super) const NOTHING: Self = Self(u32::MAX);

    /// The largest number of rules of a kind.
    pub(super) const LIMIT: usize = 1 << 29;

    pub(super) const fn of_simple(at: usize) -> Self {
        Self(at as u32 & !Self::KIND)
    }

    pub(super) const fn of_general(at: usize) -> Self {
        Self(at as u32 & !Self::KIND | Self::GENERAL)
    }

    pub(super) const fn of_fault(at: usize) -> Self {
        Self(at as u32 & !Self::KIND | Self::FAULT)
    }

    /// Returns the index of a simple rule; for other rules, an index out of range.
    #[inline]
    pub(super) const fn simple(self) -> usize {
        self.0 as usize
    }

    pub(super) const fn general(self) -> Option<usize> {
        if self.0 & Self::KIND == Self::GENERAL {
            Some((self.0 & !Self::KIND) as usize)
        } else {
            None
        }
    }

    pub(super) const fn fault(self) -> Option<usize> {
        if self.0 & Self::KIND == Self::FAULT {
            Some((self.0 & !Self::KIND) as usize)
        } else {
            None
        }
    }
}

/// A row: `rule` holds from `start` to the next row.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowStart {
    /// RVA.
    pub(super) start: u32,
    pub(super) rule: RuleId,
}

/// Rows ascending by start; neighbours have different rules.
#[derive(Debug, Default)]
pub(super) struct RowsBuilder {
    rows: Vec<RowStart>,
}

impl RowsBuilder {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { rows: Vec::with_capacity(capacity) }
    }

    pub(super) const fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn get(&self, range: Range<usize>) -> &[RowStart] {
        self.rows.get(range).unwrap_or_default()
    }

    /// Adds a row, which starts at or after the last one. If the last row's index is `first` or
    /// higher, it absorbs a row with the same rule, and takes the rule of a row with the same
    /// start.
    #[inline]
    pub(super) fn push(&mut self, start: u32, rule: RuleId, first: usize) {
        if self.rows.len() > first
            && let Some(last) = self.rows.last_mut()
        {
            if last.rule == rule {
                return;
            }
            if last.start == start {
                last.rule = rule;
                return;
            }
        }
        self.rows.push(RowStart { start, rule });
    }

    pub(super) fn finish(self) -> Rows {
        let last = self.rows.last().map_or(0, |row| row.start);
        let wanted = self.rows.len().max(1);
        let mut shift = 0;
        while (last >> shift) as usize >= wanted && shift < u32::BITS - 1 {
            shift += 1;
        }
        let count = (last >> shift) as usize + 2;
        let mut buckets = vec![0; count];
        let (mut row, mut start) = (0, 0_u64);
        for bucket in &mut buckets {
            while self.rows.get(row + 1).is_some_and(|next| u64::from(next.start) <= start) {
                row += 1;
            }
            *bucket = row as u32;
            start += 1 << shift;
        }
        Rows { starts: self.rows.into(), buckets: buckets.into(), shift }
    }
}

/// Rows that can be searched by address.
///
/// Addresses are divided into buckets of 2^`shift` bytes, about as many as there are rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    starts: Box<[RowStart]>,
    /// The row that contains the first address of each bucket, and one more entry after the last
    /// bucket.
    buckets: Box<[u32]>,
    shift: u32,
}

impl Rows {
    pub(super) const fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns the size in bytes.
    pub(super) fn size(&self) -> usize {
        size_of_val(&*self.starts) + size_of_val(&*self.buckets)
    }

    /// Returns the rule that holds at `rva`.
    #[inline]
    pub(super) fn find(&self, rva: u32) -> RuleId {
        match self.starts.get(self.at(rva)) {
            Some(row) if row.start <= rva => row.rule,
            _ => RuleId::NOTHING,
        }
    }

    /// Returns the range in which the rule at `rva` holds.
    pub(super) fn range(&self, rva: u32) -> Range<u32> {
        let at = self.at(rva);
        let start = |at: usize| self.starts.get(at).map(|row| row.start);
        start(at).unwrap_or(0)..start(at + 1).unwrap_or(u32::MAX)
    }

    /// Returns the index of the last row that starts at or before `rva`, else of the first row.
    #[inline]
    fn at(&self, rva: u32) -> usize {
        let bucket = (rva >> self.shift) as usize;
        let [first, last] = match self.buckets.get(bucket..).and_then(<[u32]>::first_chunk) {
            Some([first, last]) => [*first as usize, *last as usize],
            // After the last row's start.
            None => [self.starts.len().saturating_sub(1); 2],
        };
        // There are nearly always fewer than four.
        let (mut at, mut end) = (first, last);
        while end > at + 4 {
            let middle = at + (end - at) / 2;
            match self.starts.get(middle) {
                Some(row) if row.start <= rva => at = middle,
                _ => end = middle,
            }
        }
        while at < end && self.starts.get(at + 1).is_some_and(|row| row.start <= rva) {
            at += 1;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns rows with these starts, whose rules are numbered.
    fn rows(starts: &[u32]) -> Rows {
        let mut builder = RowsBuilder::default();
        for (n, start) in starts.iter().enumerate() {
            builder.push(*start, RuleId::of_simple(n), 0);
        }
        builder.finish()
    }

    /// Rows are dense, sparse, in heaps and at the ends of the address space.
    #[test]
    fn a_row_is_found_at_each_of_its_addresses() {
        let dense: Vec<u32> = (0x1000..0x1100).collect();
        let heaps = (0..64_u32).flat_map(|heap| (0..heap).map(move |n| heap * 0x1_0000 + n * 3));
        let heaps: Vec<u32> = heaps.collect();
        let sparse: Vec<u32> = (1..40).map(|n| n * n * 0x10_0001).collect();
        for starts in [
            &[0x1000][..],
            &[0],
            &[u32::MAX],
            &[0, u32::MAX],
            &[7, u32::MAX - 1],
            &dense,
            &heaps,
            &sparse,
        ] {
            let rows = rows(starts);
            for near in starts {
                for rva in near.saturating_sub(2)..=near.saturating_add(2) {
                    let after = starts.partition_point(|start| *start <= rva);
                    let expected = after.checked_sub(1).map_or(RuleId::NOTHING, RuleId::of_simple);
                    assert_eq!(rows.find(rva), expected, "{rva:#x} of {starts:x?}");
                    if after > 0 {
                        let end = starts.get(after).copied().unwrap_or(u32::MAX);
                        assert_eq!(
                            rows.range(rva),
                            starts[after - 1]..end,
                            "{rva:#x} of {starts:x?}"
                        );
                    }
                }
            }
            assert_eq!(rows.len(), starts.len());
            let size = size_of_val(starts) * 2 + size_of_val(&*rows.buckets);
            assert_eq!(rows.size(), size);
            // A bucket for each row, or two; few rows can be far apart.
            let buckets = starts.len() / 2..=starts.len() + 2;
            assert!(buckets.contains(&rows.buckets.len()), "{} buckets", rows.buckets.len());
        }
    }

    #[test]
    fn a_row_takes_the_last_rule_for_its_start() {
        let [one, two] = [RuleId::of_simple(1), RuleId::of_general(1)];
        let mut builder = RowsBuilder::default();
        builder.push(5, one, 0);
        builder.push(5, two, 0);
        builder.push(6, two, 0);
        // Another function begins at the same address: the row before it stays.
        builder.push(6, two, 1);
        let rows = builder.finish();
        assert_eq!((rows.len(), rows.find(5), rows.range(5)), (2, two, 5..6));
    }

    #[test]
    fn ids_of_rules_keep_kinds_apart() {
        for at in [0, 1, RuleId::LIMIT - 1] {
            let [simple, general, fault] =
                [RuleId::of_simple(at), RuleId::of_general(at), RuleId::of_fault(at)];
            assert_eq!((simple.simple(), simple.general(), simple.fault()), (at, None, None));
            assert_eq!((general.general(), general.fault()), (Some(at), None));
            assert_eq!((fault.general(), fault.fault()), (None, Some(at)));
            assert!(general.simple() >= RuleId::LIMIT && fault.simple() >= RuleId::LIMIT);
        }
        let nothing = RuleId::NOTHING;
        assert_eq!((nothing.general(), nothing.fault()), (None, None));
    }
}
