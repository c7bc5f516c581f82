//! Rules of steps already made, by return address.

use super::win64::rule::Rule;
use alloc::boxed::Box;
use alloc::vec;

const ENTRY_BITS: u32 = 10;

/// Remembers how callers are found from return addresses that come again and again, as they do in
/// samples of one program. It never changes a result.
///
/// It notices when it is used with another code map, or the map has changed, and starts anew.
/// Making one allocates; using it does not.
#[derive(Clone, Debug)]
pub struct Cache {
    /// The version of the code map that the entries were made from.
    version: u64,
    entries: Box<[Option<Entry>]>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    rip: u64,
    rule: Rule,
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
        Self { version: 0, entries: vec![None; 1 << ENTRY_BITS].into_boxed_slice() }
    }

    #[inline]
    fn index(rip: u64) -> usize {
        (rip.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - ENTRY_BITS)) as usize
    }

    /// The rule for the return address `rip` in version `version` of a code map.
    #[inline]
    pub(super) fn get(&self, version: u64, rip: u64) -> Option<&Rule> {
        let entry = self.entries.get(Self::index(rip))?.as_ref()?;
        (entry.rip == rip && self.version == version).then_some(&entry.rule)
    }

    /// Remembers a rule.
    pub(super) fn insert(&mut self, version: u64, rip: u64, rule: Rule) {
        if self.version != version {
            self.entries.fill(None);
            self.version = version;
        }
        if let Some(entry) = self.entries.get_mut(Self::index(rip)) {
            *entry = Some(Entry { rip, rule });
        }
    }
}
