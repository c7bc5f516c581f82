//! Why a call came out as it did: every decision leaves an event that names its clause and the
//! values that decided it.
//!
//! Listening is off until [`Log::listen`]; a decision then costs one branch. What was heard becomes
//! sentences by a [`Teller`].

mod chain;
mod clauses;
mod deciding;
mod event;
mod names;
mod story;

pub use chain::{ChainFrame, LeadsTo, first_managed, frame_chain};
pub use deciding::{deciding, parting};
pub use event::{Dropped, Event, Hidden, Passed, Silent, Start};
pub use names::{Names, Place};
pub use story::{Kind, Line, Teller};

use core::cell::{Cell, RefCell};

/// The events of calls, in their order.
#[derive(Debug, Default)]
pub struct Log {
    listening: Cell<bool>,
    events: RefCell<Vec<Event>>,
}

impl Log {
    /// From now on events are kept.
    pub fn listen(&self) {
        self.listening.set(true);
    }

    /// What has been told since the last time; from now on nothing is kept.
    pub fn take(&self) -> Vec<Event> {
        self.listening.set(false);
        self.events.take()
    }

    #[inline]
    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        if self.listening.get() {
            self.keep(event());
        }
    }

    #[cold]
    fn keep(&self, event: Event) {
        self.events.borrow_mut().push(event);
    }
}
