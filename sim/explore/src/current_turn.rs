//! The turn that is being executed: what it accesses, and what it depends on.

use super::footprint::Footprint;
use super::ids::ThreadIndex;
use core::cell::Cell;

/// Accesses of the current turn.
#[derive(Debug, Default)]
pub(super) struct CurrentTurn {
    /// The search does not ask for the access set.
    unwatched: Cell<bool>,
    /// The turn was an ordinary instruction.
    within: Cell<bool>,
    footprint: Cell<Footprint>,
    /// The turn depends on time.
    by_time: Cell<bool>,
    /// Number of threads before the turn.
    threads_before: Cell<u32>,
    /// The last position that the code has come to, and the access set since.
    position: Cell<Option<(u64, Footprint)>>,
}

impl CurrentTurn {
    /// Sets if the search of the interleaving asks for access sets: others are not noted.
    pub(super) fn watch(&self, is_watched: bool) {
        self.unwatched.set(!is_watched);
    }

    /// Starts a turn of this thread, with this number of threads.
    pub(super) fn begin(&self, thread: ThreadIndex, threads: usize) {
        self.within.set(false);
        if self.unwatched.get() {
            return;
        }
        self.footprint.set(Footprint::thread(thread));
        self.by_time.set(false);
        self.threads_before.set(threads as u32);
        self.position.set(None);
    }

    /// Notes that the turn ends after an ordinary instruction, only because each one is a switch point.
    pub(super) fn ends_within(&self) {
        self.within.set(true);
    }

    /// Returns true if the turn has ended after an ordinary instruction.
    pub(super) const fn is_within(&self) -> bool {
        self.within.get()
    }

    /// Returns true if the turn depends on time.
    pub(super) const fn depends_on_time(&self) -> bool {
        self.by_time.get()
    }

    /// Returns the number that the first thread has which is started in the turn.
    pub(super) const fn first_started(&self) -> u32 {
        self.threads_before.get()
    }

    /// Notes that the code has come to a position, which determines what it does next.
    pub(super) fn comes_to(&self, position: u64) {
        self.position.set(Some((position, Footprint::default())));
    }

    /// Returns the position that the code has come to last, and the access set since.
    pub(super) const fn position(&self) -> Option<(u64, Footprint)> {
        self.position.get()
    }

    /// Adds to the access set.
    pub(super) fn touch(&self, footprint: Footprint) {
        if self.unwatched.get() {
            return;
        }
        self.footprint.set(self.footprint.get() | footprint);
        if let Some((position, since)) = self.position.get() {
            self.position.set(Some((position, since | footprint)));
        }
    }

    /// Notes that the turn depends on time.
    pub(super) fn touch_time(&self) {
        self.by_time.set(true);
        self.touch(Footprint::TIME);
    }

    /// Returns the access set.
    pub(super) const fn footprint(&self) -> Footprint {
        self.footprint.get()
    }
}
