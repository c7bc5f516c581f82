//! A frame in a second opinion, and the copied stack that it is computed from.

use clr_sampler::os::OwnProcess;
use clr_unwind::Memory as _;
use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The registers of a frame, numbered as in machine code: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) rip: u64,
    pub(super) registers: [u64; 16],
}

impl Frame {
    pub(super) const fn rsp(&self) -> u64 {
        self.registers[4]
    }
}

/// Pages that were read: of native images, which do not change while they are loaded, or of anything
/// during one walk.
#[derive(Debug, Default)]
pub(super) struct Pages(RefCell<HashMap<u64, Box<[u8]>>>);

impl Pages {
    const SIZE: u64 = 4096;

    /// Fills `buffer` with the bytes at `address` (VA), if they can be read.
    pub(super) fn fill(&self, address: u64, buffer: &mut [u8]) -> Option<()> {
        let mut pages = self.0.borrow_mut();
        let (mut address, mut rest) = (address, buffer);
        while !rest.is_empty() {
            let start = address / Self::SIZE * Self::SIZE;
            let page = match pages.entry(start) {
                Entry::Occupied(page) => page.into_mut(),
                // What cannot be read now may be there later.
                Entry::Vacant(place) => {
                    let mut page = vec![0; Self::SIZE as usize];
                    OwnProcess.read(start, &mut page).ok()?;
                    place.insert(page.into())
                }
            };
            let page = page.get(usize::try_from(address - start).ok()?..)?;
            let (here, after) = rest.split_at_mut(rest.len().min(page.len()));
            here.copy_from_slice(page.get(..here.len())?);
            address += here.len() as u64;
            rest = after;
        }
        Some(())
    }

    /// Returns the word at `address` (VA), if it can be read.
    pub(super) fn read(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.fill(address, &mut bytes)?;
        Some(u64::from_le_bytes(bytes))
    }

    /// Forgets all pages.
    pub(super) fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}

/// The stack at the time of the sample; all other memory is that of now.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackCopy<'s> {
    pub(super) from: u64,
    pub(super) bytes: &'s [u8],
}

impl StackCopy<'_> {
    /// Returns true if `address` (VA) is in the copied part of the stack, where no code is.
    pub(super) fn contains(&self, address: u64) -> bool {
        let end = self.from + self.bytes.len() as u64;
        (self.from..end).contains(&address)
    }

    /// Returns the word at `address` (VA).
    pub(super) fn read(&self, address: u64) -> Option<u64> {
        if self.contains(address) {
            let at = usize::try_from(address - self.from).ok()?;
            return self.bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word));
        }
        OwnProcess.read_u64(address).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_show_the_memory_of_the_process() {
        static WORDS: [u64; 2000] = [0x0102_0304_0506_0708; 2000];
        let pages = Pages::default();
        let start = &raw const WORDS as u64;
        for at in [0, 8, 4096, 8000, 15_992] {
            assert_eq!(pages.read(start + at), Some(WORDS[0]), "{at}");
        }
        assert_eq!(pages.read(start + 4), Some(0x0506_0708_0102_0304));
        assert_eq!(pages.read(8), None);
    }

    #[test]
    fn a_copy_comes_before_memory() {
        let bytes = [7_u8; 24];
        let from = &raw const bytes as u64;
        let copy = StackCopy { from: from - 8, bytes: &[9; 16] };
        assert_eq!(copy.read(from), Some(0x0909_0909_0909_0909));
        assert_eq!(copy.read(from + 8), Some(0x0707_0707_0707_0707));
        assert_eq!(copy.read(from + 1), None, "neither whole");
        assert!(copy.contains(from - 8) && copy.contains(from + 7) && !copy.contains(from + 8));
    }
}
