//! Room that a thread fills in, in a signal handler, when another one asks it to.

use crate::os;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A thread that does not run within this time, or blocks signals, gives no answer.
const PATIENCE: Duration = Duration::from_millis(100);

/// The states of a request, in the low bits of its word; the others number the requests.
mod phase {
    /// The content is the asking thread's.
    pub(super) const IDLE: u32 = 0;
    /// The content is nobody's, and a handler may take it.
    pub(super) const ASKED: u32 = 1;
    /// The content is a handler's.
    pub(super) const TAKING: u32 = 2;
    pub(super) const BITS: u32 = 2;
}

/// The room for one answer.
#[derive(Debug)]
pub struct Slot<T> {
    /// Number of the request and its phase.
    word: AtomicU32,
    content: UnsafeCell<T>,
}

// SAFETY: the word says whose the content is: that of the one thread that asks, or the
// handler's that has changed it from ASKED to TAKING.
unsafe impl<T: Send> Sync for Slot<T> {}

impl<T> Slot<T> {
    /// Makes the room, with what is in it.
    pub const fn new(content: T) -> Self {
        Self { word: AtomicU32::new(phase::IDLE), content: UnsafeCell::new(content) }
    }

    /// Asks a thread to fill the room in, after `prepare`, and waits for it. `index` goes with the signal.
    ///
    /// # Safety
    /// Only one thread calls this, and no answer of an earlier call is in use.
    #[expect(clippy::mut_from_ref, reason = "the caller promises that there is only one")]
    pub unsafe fn ask(
        &self,
        tid: i32,
        index: usize,
        prepare: impl FnOnce(&mut T),
    ) -> Option<&mut T> {
        let number = self.word.load(Ordering::Relaxed) >> phase::BITS;
        let number = number.wrapping_add(1) & (u32::MAX >> phase::BITS);
        let word = |phase| number << phase::BITS | phase;
        // SAFETY: between requests the content is this thread's.
        prepare(unsafe { &mut *self.content.get() });
        self.word.store(word(phase::ASKED), Ordering::Release);
        let asked_at = os::now();
        let value = index << 32 | number as usize;
        if !os::interrupt(tid, value) {
            self.word.store(word(phase::IDLE), Ordering::Relaxed);
            return None;
        }
        loop {
            let now = self.word.load(Ordering::Acquire);
            if now == word(phase::IDLE) {
                // SAFETY: the handler has given the content back.
                return Some(unsafe { &mut *self.content.get() });
            }
            let waited = Duration::from_nanos(os::now().saturating_sub(asked_at));
            if waited > PATIENCE && now == word(phase::ASKED) {
                // The handler comes too late: it will find another word.
                let (old, new) = (now, word(phase::IDLE));
                let order = (Ordering::Acquire, Ordering::Relaxed);
                if self.word.compare_exchange(old, new, order.0, order.1).is_ok() {
                    return None;
                }
            }
            // A handler that has begun ends: else the watchdog sees it.
            os::wait(&self.word, now, PATIENCE);
        }
    }

    /// Fills the room in, in the signal handler, if the request with this number still waits.
    pub fn fill(&self, number: u32, fill: impl FnOnce(&mut T)) {
        let word = |phase| number << phase::BITS | phase;
        let (old, new) = (word(phase::ASKED), word(phase::TAKING));
        let order = (Ordering::Acquire, Ordering::Relaxed);
        if self.word.compare_exchange(old, new, order.0, order.1).is_err() {
            return;
        }
        // SAFETY: the content is this handler's until the word changes.
        fill(unsafe { &mut *self.content.get() });
        self.word.store(word(phase::IDLE), Ordering::Release);
        os::wake(&self.word);
    }
}
