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
