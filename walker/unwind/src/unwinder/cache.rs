//! A cache of rules by address.

use super::{Position, win64};
use crate::cfi;
use alloc::boxed::Box;
use alloc::vec;

const WAYS: usize = 4;

/// A cache of the rules for return addresses and interrupted code, which recur in samples of one
/// program. A result is the same with it and without.
///
/// A cache that is used with another code map, or after the map has changed, empties itself. Making
/// a cache allocates; using it does not.
#[derive(Clone, Debug)]
pub struct Cache {
    /// Version of the code map that the entries were made from.
    version: u64,
    cfi: Table<cfi::Rule, 10>,
    win64: Table<win64::Rule, 9>,
}

/// A cached rule.
#[derive(Clone, Copy, Debug)]
pub(super) enum CachedRule<'c> {
    Win64(&'c win64::Rule),
    Cfi(&'c cfi::Rule),
}

/// The rules of one kind, in 2^`BITS` sets.
///
/// A look-up by return address waits until that is read from the stack, and the next step waits for
/// the look-up: in a deep stack, memory latency is the whole cost. So each entry remembers which
/// entry was looked up after it, and a processor that predicts this entry to be right continues
/// with it before it has the return address.
#[derive(Clone, Debug)]
struct Table<R, const BITS: u32> {
    sets: Box<[Set<R>]>,
    /// For each entry's place, the place of the next entry.
    next: Box<[u16]>,
    /// Place of the entry that was found last.
    last: u16,
}

/// The rules of the return addresses that share a hash, newest first; the oldest one is replaced.
/// An empty entry has the key 0, which is never looked up.
///
/// Two entries of native code share a line of the processor's cache, and one of other code fills a
/// line, so that a step needs one line unless the set has older entries.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Set<R> {
    entries: [Entry<R>; WAYS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry<R> {
    key: u64,
    rule: R,
}

const _: () = assert!(size_of::<Entry<cfi::Rule>>() == 32, "two entries in a line");
const _: () = assert!(size_of::<Entry<win64::Rule>>() == 64, "an entry in a line");

/// Returns the key of an address at a position. Keys of interrupted code may be those of return
/// addresses elsewhere, so that the rule must say what it is for.
#[inline]
const fn key(rip: u64, position: Position) -> u64 {
    match position {
        Position::ReturnAddress => rip,
        Position::Interrupted => !rip,
    }
}

impl<R: Copy + Default, const BITS: u32> Table<R, BITS> {
    const SETS: usize = 1 << BITS;

    fn new() -> Self {
        const { assert!(Self::SETS * WAYS <= 1 << u16::BITS, "a place has 16 bits") };
        Self {
            sets: vec![Set::default(); Self::SETS].into(),
            next: vec![0; Self::SETS * WAYS].into(),
            last: 0,
        }
    }

    fn clear(&mut self) {
        // Entry by entry: a set may not be built on a small stack.
        for entry in self.sets.iter_mut().flat_map(|set| &mut set.entries) {
            entry.key = 0;
        }
    }

    #[inline]
    const fn set(key: u64) -> usize {
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - BITS)) as usize
    }

    #[inline]
    fn entry(&self, place: u16) -> Option<&Entry<R>> {
        let place = usize::from(place);
        self.sets.get(place / WAYS)?.entries.get(place % WAYS)
    }

    /// Returns the place of the entry with the key `key`, which is not 0, if that is the expected one.
    #[inline]
    fn expected(&self, key: u64) -> Option<u16> {
        let place = *self.next.get(usize::from(self.last))?;
        (self.entry(place)?.key == key).then_some(place)
    }

    /// Returns the place of the entry with the key `key`, which is not 0.
    #[inline]
    fn find(&self, key: u64) -> Option<u16> {
        let at = Self::set(key);
        let way = self.sets.get(at)?.entries.iter().position(|entry| entry.key == key)?;
        Some((at * WAYS + way) as u16)
    }

    /// Returns the rule of the expected entry.
    #[inline]
    fn go_on(&mut self, place: u16) -> Option<&R> {
        self.last = place;
        Some(&self.entry(place)?.rule)
    }

    /// Returns the rule of another entry, which is expected the next time.
    #[inline]
    fn go_to(&mut self, place: u16) -> Option<&R> {
        if let Some(next) = self.next.get_mut(usize::from(self.last)) {
            *next = place;
        }
        self.go_on(place)
    }

    fn insert(&mut self, key: u64, rule: R) {
        if let Some(set) = self.sets.get_mut(Self::set(key)) {
            set.entries.rotate_right(1);
            set.entries[0] = Entry { key, rule };
        }
    }
}

impl Default for Cache {
    fn default() -> Self {
        Self::new()
    }
}

impl Cache {
    /// Creates an empty cache.
    pub fn new() -> Self {
        // No code map has version 0.
        Self { version: 0, cfi: Table::new(), win64: Table::new() }
    }

    /// Returns the rule for rip at a position in version `version` of a code map. The two
    /// flags say which kinds to look up: rules of native code, and rules of code with UNWIND_INFO.
    #[inline]
    pub(super) fn get(
        &mut self,
        version: u64,
        rip: u64,
        position: Position,
        [cfi, win64]: [bool; 2],
    ) -> Option<CachedRule<'_>> {
        let key = key(rip, position);
        if self.version != version || key == 0 {
            return None;
        }
        let cfi = cfi && position == Position::ReturnAddress;
        if cfi && let Some(place) = self.cfi.expected(key) {
            return self.cfi.go_on(place).map(CachedRule::Cfi);
        }
        let is_for = |rule: &&win64::Rule| rule.position() == position;
        if win64 && let Some(place) = self.win64.expected(key) {
            return self.win64.go_on(place).filter(is_for).map(CachedRule::Win64);
        }
        if cfi && let Some(place) = self.cfi.find(key) {
            return self.cfi.go_to(place).map(CachedRule::Cfi);
        }
        if win64 && let Some(place) = self.win64.find(key) {
            return self.win64.go_to(place).filter(is_for).map(CachedRule::Win64);
        }
        None
    }

    /// Adds a rule of native code, which is not in the cache yet.
    pub(super) fn insert_cfi(&mut self, version: u64, rip: u64, rule: cfi::Rule) {
        self.renew(version);
        self.cfi.insert(key(rip, Position::ReturnAddress), rule);
    }

    /// Adds a rule of code with UNWIND_INFO, which is not in the cache yet.
    pub(super) fn insert_win64(&mut self, version: u64, rip: u64, rule: win64::Rule) {
        self.renew(version);
        self.win64.insert(key(rip, rule.position()), rule);
    }

    /// Removes the rules of another version.
    fn renew(&mut self, version: u64) {
        if self.version != version {
            self.cfi.clear();
            self.win64.clear();
            self.version = version;
        }
    }
}
