//! Cache of decoded instructions, by address.

use super::memory::PAGE_SIZE;
use super::op::{Kind, Op, PackedOp};
use std::collections::BTreeMap;

const OFFSET: u64 = PAGE_SIZE - 1;
/// Length of the longest instruction in bytes.
pub(super) const LONGEST: u64 = 15;
/// Maximum numbers of operations and pages that are kept. Beyond these the cache is cleared.
const MOST_OPS: usize = 1 << 20;
const MOST_PAGES: usize = 1 << 12;

const UNDECODED: PackedOp = Op::new(Kind::Undecoded).pack();

/// Index of an operation that is always undecoded.
pub(super) const UNKNOWN: u32 = 0;

/// For every byte of a page, the index of the operation that begins there, or [`UNKNOWN`] if none
/// has been decoded.
type Slots = [u32; PAGE_SIZE as usize];

/// Number of pages of code that are found without a search.
const RECENT: usize = 64;

#[derive(Debug)]
pub(super) struct CodeCache {
    /// The first operation is always undecoded. Each other one belongs to one address for good,
    /// even if the instruction there changes, so that indices stay valid.
    ops: Vec<PackedOp>,
    slots: Vec<Slots>,
    /// Index of the slots by page number.
    pages: BTreeMap<u64, u32>,
    /// Recently used pages, by the low bits of their number: address and index of the slots. Unused
    /// entries have an odd address.
    recent: [(u64, u32); RECENT],
    /// Page of the last lookup.
    current: (u64, u32),
    /// End of the instruction of the last operation.
    end: u64,
}

const NO_PAGE: (u64, u32) = (1, 0);

impl CodeCache {
    pub(super) fn new() -> Self {
        Self {
            ops: vec![UNDECODED],
            slots: Vec::new(),
            pages: BTreeMap::new(),
            recent: [NO_PAGE; RECENT],
            current: NO_PAGE,
            end: 0,
        }
    }

    /// Returns the operation with the given index.
    #[inline(always)]
    pub(super) fn op(&self, index: u32) -> PackedOp {
        match self.ops.get(index as usize) {
            Some(op) => *op,
            None => UNDECODED,
        }
    }

    /// Returns the index of the operation at `address`, or [`UNKNOWN`] if there is none or it is
    /// not on the current page.
    #[inline(always)]
    pub(super) fn find(&self, address: u64) -> u32 {
        if self.current.0 == address & !OFFSET
            && let Some(slots) = self.slots.get(self.current.1 as usize)
        {
            slots[(address & OFFSET) as usize]
        } else {
            UNKNOWN
        }
    }

    /// Stores the index of the target's operation in a direct jump.
    pub(super) fn link(&mut self, index: u32, target: u32) {
        if let Some(op) = self.ops.get_mut(index as usize) {
            op.set_link(target);
        }
    }

    /// Makes the page of `address` the current one, and returns the index of the operation at
    /// `address`.
    pub(super) fn enter(&mut self, address: u64) -> u32 {
        let number = address / PAGE_SIZE;
        let recent = &mut self.recent[number as usize % RECENT];
        if recent.0 != address & !OFFSET {
            let Some(slots) = self.pages.get(&number) else { return UNKNOWN };
            *recent = (address & !OFFSET, *slots);
        }
        self.current = *recent;
        self.find(address)
    }

    /// Returns true if operations of the page with this number may be cached.
    pub(super) fn has_page(&self, number: u64) -> bool {
        self.pages.contains_key(&number)
    }

    /// Sets the operation at `address`. Calls `watch` with the numbers of pages that begin to hold
    /// code.
    pub(super) fn insert(&mut self, address: u64, op: Op, mut watch: impl FnMut(u64)) {
        if self.ops.len() >= MOST_OPS || self.slots.len() >= MOST_PAGES {
            *self = Self::new();
        }
        let end = address.wrapping_add(op.len.into());
        let last = if op.len == 0 { address } else { end.wrapping_sub(1) };
        // A write to any byte of the instruction must be noticed.
        for number in [last / PAGE_SIZE, address / PAGE_SIZE] {
            if !self.pages.contains_key(&number) {
                self.pages.insert(number, self.slots.len() as u32);
                self.slots.push([UNKNOWN; PAGE_SIZE as usize]);
                watch(number);
            }
        }
        let mut index = self.slot(address).map_or(UNKNOWN, |slot| *slot);
        if index == UNKNOWN {
            index = self.ops.len() as u32;
            // Code is mostly decoded in the order in which it is executed.
            if self.end == address
                && let Some(before) = self.ops.last_mut()
            {
                before.followed = before.kind != Kind::Undecoded;
            }
            self.ops.push(UNDECODED);
            if let Some(slot) = self.slot(address) {
                *slot = index;
            }
        }
        if index as usize + 1 == self.ops.len() {
            self.end = end;
        }
        let followed = op.len > 0 && self.slot(end).is_some_and(|slot| *slot == index + 1);
        if let Some(place) = self.ops.get_mut(index as usize) {
            *place = op.pack();
            place.followed = followed;
        }
    }

    fn slot(&mut self, address: u64) -> Option<&mut u32> {
        let slots = *self.pages.get(&(address / PAGE_SIZE))?;
        let slots = self.slots.get_mut(slots as usize)?;
        Some(&mut slots[(address & OFFSET) as usize])
    }

    /// Drops the operations that contain one of these bytes. Takes time proportional to `len`.
    pub(super) fn invalidate(&mut self, address: u64, len: u64) {
        let mut at = address.wrapping_sub(LONGEST - 1);
        let mut left = len.saturating_add(LONGEST - 1);
        while left > 0 {
            let here = (PAGE_SIZE - (at & OFFSET)).min(left);
            if let Some(slots) = self.pages.get(&(at / PAGE_SIZE))
                && let Some(slots) = self.slots.get(*slots as usize)
            {
                let first = (at & OFFSET) as usize;
                for index in &slots[first..first + here as usize] {
                    if let Some(op) = self.ops.get_mut(*index as usize) {
                        *op = UNDECODED;
                    }
                }
            }
            left -= here;
            at = at.wrapping_add(here);
        }
    }

    /// Drops the operations that have a byte on the page with this number.
    pub(super) fn invalidate_page(&mut self, number: u64) {
        if self.has_page(number) {
            self.invalidate(number.wrapping_mul(PAGE_SIZE), PAGE_SIZE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(len: u8, imm: i32) -> Op {
        Op { len, imm, ..Op::new(Kind::Nop) }
    }

    fn known(code: &mut CodeCache, address: u64) -> Option<i32> {
        let index = code.enter(address);
        let op = code.op(index);
        (op.kind != Kind::Undecoded).then_some(op.imm)
    }

    #[test]
    fn operations_are_found_until_a_byte_of_theirs_changes() {
        let mut code = CodeCache::new();
        let mut watched = Vec::new();
        assert_eq!(known(&mut code, 0x1000), None);
        code.insert(0x1FFE, op(4, 1), |number| watched.push(number));
        code.insert(0x1FFC, op(2, 2), |number| watched.push(number));
        code.insert(0x2002, op(1, 3), |number| watched.push(number));
        assert_eq!(watched, [2, 1]);
        code.invalidate(0x2001, 1);
        assert_eq!(known(&mut code, 0x1FFE), None);
        // Operations that end before the write are dropped too, and decoded again.
        assert_eq!(known(&mut code, 0x2002), Some(3));
        code.insert(0x1FFC, op(2, 4), |_| unreachable!());
        code.invalidate(0x2002, 1);
        assert_eq!(known(&mut code, 0x2002), None);
        code.insert(0x1800, op(2, 5), |_| unreachable!());
        code.insert(0x2800, op(2, 6), |_| unreachable!());
        code.invalidate_page(2);
        assert_eq!(known(&mut code, 0x2800), None);
        assert_eq!(known(&mut code, 0x1800), Some(5));
        assert!(code.has_page(2) && !code.has_page(3));
    }

    #[test]
    fn indices_stay_and_neighbours_know_each_other() {
        let mut code = CodeCache::new();
        for (address, len) in
            [(0x1000, 2), (0x1002, 3), (0x1005, 1), (0x1100, 1), (0x1FFF, 2), (0x2001, 1)]
        {
            code.insert(address, op(len, 0), |_| ());
        }
        let followed = |code: &CodeCache| (1..7).map(|n| code.op(n).followed).collect::<Vec<_>>();
        assert_eq!(followed(&code), [true, true, false, false, true, false]);
        code.invalidate(0x1002, 1);
        assert_eq!(code.op(2).kind, Kind::Undecoded);
        assert_eq!(code.enter(0x1002), 2);
        // A longer instruction in its place has another successor.
        code.insert(0x1000, op(5, 0), |_| ());
        code.insert(0x1002, op(3, 0), |_| ());
        assert_eq!(followed(&code), [false, true, false, false, true, false]);
        code.insert(0x1000, op(2, 0), |_| ());
        assert_eq!(followed(&code), [true, true, false, false, true, false]);
        code.link(1, 4);
        assert_eq!(code.op(1).link(), 4);
    }

    #[test]
    fn pages_of_equal_low_bits_are_distinguished() {
        let mut code = CodeCache::new();
        let far = 0x1000 + RECENT as u64 * PAGE_SIZE;
        code.insert(0x1000, op(1, 1), |_| ());
        code.insert(far, op(1, 2), |_| ());
        for _ in 0..2 {
            assert_eq!(known(&mut code, 0x1000), Some(1));
            assert_eq!(code.find(far), UNKNOWN, "not the current page");
            assert_eq!(known(&mut code, far), Some(2));
            assert_eq!(known(&mut code, far + RECENT as u64 * PAGE_SIZE), None);
        }
    }

    #[test]
    fn the_ends_of_the_address_space_meet() {
        let mut code = CodeCache::new();
        code.insert(u64::MAX, op(2, 1), |_| ());
        assert_eq!(known(&mut code, u64::MAX), Some(1));
        code.invalidate(0, 1);
        assert_eq!(known(&mut code, u64::MAX), None);
    }
}
