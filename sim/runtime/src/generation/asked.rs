//! Which questions code has asked about a runtime: on another one that gives the same answers to them, it does the same.

use super::{Generation, QUESTIONS};
use core::cell::Cell;

thread_local! {
    /// What the code of this thread has asked.
    static ASKED: Cell<u128> = const { Cell::new(0) };
}

/// The first bit for each ICorProfilerInfo, and their number.
pub(super) const INTERFACES: u32 = 96;
const ALL_INTERFACES: u8 = 16;

/// Bits for the operating system, the product, and all that tells a runtime from the others.
pub(super) const OS: u32 = 125;
pub(super) const PRODUCT: u32 = 126;
pub(super) const WHICH: u32 = 127;
const _: () = assert!(QUESTIONS.len() <= INTERFACES as usize, "each question has a bit");

/// Notes that something was asked, by its bit: the index of a question, or one of those above.
pub(super) fn note(bit: u32) {
    ASKED.set(ASKED.get() | 1 << bit);
}

/// The questions that code has asked about a runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked(u128);

impl Asked {
    /// Calls a function, and returns its result with what it has asked on this thread.
    pub fn by<T>(body: impl FnOnce() -> T) -> (T, Self) {
        let before = ASKED.replace(0);
        let done = body();
        let asked = ASKED.get();
        ASKED.set(before | asked);
        (done, Self(asked))
    }

    /// Returns true if two runtimes give the same answers to all that was asked.
    #[must_use]
    pub fn is_answered_alike(self, one: Generation, other: Generation) -> bool {
        let was_asked = |bit: u32| self.0 >> bit & 1 != 0;
        let (family, others) = (one.answers().family, other.answers().family);
        let mut questions = (0..).zip(QUESTIONS).filter(|(index, _)| was_asked(*index));
        questions.all(|(_, question)| (question.is_answered_alike)(one, other))
            && (0..ALL_INTERFACES).all(|number| {
                let has = |it: Generation| it.answers().profiler_info.value >= number;
                !was_asked(INTERFACES + u32::from(number)) || has(one) == has(other)
            })
            && (!was_asked(OS) || family.os == others.os)
            && (!was_asked(PRODUCT) || family.product == others.product)
            && (!was_asked(WHICH) || one == other)
    }
}
