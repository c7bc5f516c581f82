//! Memory of single words for tests: only words that were put there can be read.

use super::TargetMemory;
use clr_unwind::{Memory, Unreadable};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    /// By address (VA), which is a multiple of 8.
    words: BTreeMap<u64, u64>,
    /// Addresses written by the code under test.
    pub(crate) written: BTreeSet<u64>,
}

impl Words {
    pub(crate) fn new(words: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut memory = Self::default();
        for (at, value) in words {
            memory.put(at, value);
        }
        memory
    }

    pub(crate) fn put(&mut self, at: u64, value: u64) {
        assert!(at.is_multiple_of(8));
        self.words.insert(at, value);
    }

    /// Returns the same memory without one of its words.
    pub(crate) fn without(&self, at: u64) -> Self {
        let mut memory = self.clone();
        assert!(memory.words.remove(&at).is_some());
        memory
    }

    pub(crate) fn addresses(&self) -> Vec<u64> {
        self.words.keys().copied().collect()
    }

    pub(crate) fn get(&self, at: u64) -> u64 {
        self.words[&at]
    }
}

impl Memory for Words {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        for (byte, at) in buffer.iter_mut().zip(0..) {
            let at = address.wrapping_add(at);
            let word = self.words.get(&(at & !7)).ok_or(unreadable)?;
            *byte = word.to_le_bytes()[(at & 7) as usize];
        }
        Ok(())
    }
}

impl TargetMemory for Words {
    fn write_u64(&mut self, address: u64, value: u64) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: 8 };
        *self.words.get_mut(&address).ok_or(unreadable)? = value;
        self.written.insert(address);
        Ok(())
    }
}
