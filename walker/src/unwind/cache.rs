//! Rules of steps already made, by return address.

use super::{dwarf, win64};
use alloc::boxed::Box;
use alloc::vec;

const SET_BITS: u32 = 9;
const WAYS: usize = 4;

/// Remembers how callers are found from return addresses that come again and again, as they do in
/// samples of one program. It never changes a result.
///
/// It notices when it is used with another code map, or the map has changed, and starts anew.
/// Making one allocates; using it does not.
#[derive(Clone, Debug)]
pub struct Cache {
    /// The version of the code map that the entries were made from.
    version: u64,
    sets: Box<[Set]>,
}

/// What is remembered of a return address.
#[derive(Clone, Copy, Debug)]
pub(super) enum CachedRule {
    Win64(win64::rule::Rule),
    Cfi(dwarf::rule::Rule),
}

/// The rules of the return addresses that share a hash; the oldest one makes room.
#[derive(Clone, Copy, Debug, Default)]
struct Set {
    rips: [u64; WAYS],
    rules: [Option<CachedRule>; WAYS],
    oldest: usize,
}

impl Default for Cache {
    fn default() -> Self {
        Self::new()
    }
}

impl Cache {
    /// An empty cache.
    #[must_use]
    pub fn new() -> Self {
        // No code map has version 0.
        Self { version: 0, sets: vec![Set::default(); 1 << SET_BITS].into_boxed_slice() }
    }

    #[inline]
    fn index(rip: u64) -> usize {
        (rip.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - SET_BITS)) as usize
    }

    /// The rule for the return address `rip` in version `version` of a code map.
    #[inline]
    pub(super) fn get(&self, version: u64, rip: u64) -> Option<&CachedRule> {
        if self.version != version {
            return None;
        }
        let set = self.sets.get(Self::index(rip))?;
        let way = set.rips.iter().position(|&known| known == rip)?;
        set.rules.get(way)?.as_ref()
    }

    /// Remembers a rule, which is not there yet.
    pub(super) fn insert(&mut self, version: u64, rip: u64, rule: CachedRule) {
        if self.version != version {
            self.sets.fill(Set::default());
            self.version = version;
        }
        if let Some(set) = self.sets.get_mut(Self::index(rip)) {
            let way = set.oldest % WAYS;
            (set.rips[way], set.rules[way]) = (rip, Some(rule));
            set.oldest = way + 1;
        }
    }
}
