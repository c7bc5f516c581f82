//! Which instruction was executed after which.

use std::collections::BTreeSet;

/// The steps of a function's execution.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    /// The instructions that were executed after one another: the later one first.
    steps: BTreeSet<(u32, u32)>,
    /// The instructions that leave the function.
    leaving: Vec<u32>,
}

impl Steps {
    /// Notes that `rva` is executed after `before`.
    pub(crate) fn note(&mut self, before: Option<u32>, rva: u32) {
        self.steps.extend(before.map(|before| (rva, before)));
    }

    /// Notes that the function is left at `rva`.
    pub(crate) fn leave(&mut self, rva: u32) {
        self.leaving.push(rva);
    }

    /// Returns the instructions from which a path leads to a return, and forgets the steps.
    pub(crate) fn take_returning(&mut self) -> BTreeSet<u32> {
        let mut returning = BTreeSet::new();
        let mut left = core::mem::take(&mut self.leaving);
        while let Some(rva) = left.pop() {
            if returning.insert(rva) {
                let before = self.steps.range((rva, 0)..=(rva, u32::MAX));
                left.extend(before.map(|(_, before)| *before));
            }
        }
        self.steps.clear();
        returning
    }
}
