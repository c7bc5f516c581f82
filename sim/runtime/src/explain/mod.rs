//! Explanations of calls: every decision records an event that names its clause and the values that
//! decided it.
//!
//! Recording is off until [`Log::listen`]; a decision then costs one branch. A [`StoryWriter`] turns the
//! recorded events into sentences.

mod chain;
mod clauses;
mod deciding;
mod event;
mod names;
mod story;

pub use chain::{ChainFrame, FrameDestination, first_managed, frame_chain};
pub use deciding::{deciding, parting};
pub use event::{DropReason, EntryCheck, Event, HiddenReason, SilentReason, WalkStart};
pub use names::{NamedAddress, Names};
pub use story::{StoryLine, StoryWriter, Topic};

use core::cell::{Cell, RefCell};

/// Recorded events that were put aside.
#[derive(Debug)]
pub struct InterruptedLog {
    listening: bool,
    events: Vec<Event>,
}

/// The recorded events of calls, in order.
#[derive(Debug, Default)]
pub struct Log {
    listening: Cell<bool>,
    events: RefCell<Vec<Event>>,
}

impl Log {
    /// Starts recording events.
    pub fn listen(&self) {
        self.listening.set(true);
    }

    /// Returns the events recorded since the last call, and stops recording.
    pub fn take(&self) -> Vec<Event> {
        self.listening.set(false);
        self.events.take()
    }

    /// Puts aside what is being recorded: another thread's calls come between. [`resume`](Self::resume) goes on
    /// with it.
    #[must_use]
    pub fn interrupt(&self) -> InterruptedLog {
        InterruptedLog { listening: self.listening.take(), events: self.events.take() }
    }

    /// Goes on recording where [`interrupt`](Self::interrupt) has ended.
    pub fn resume(&self, log: InterruptedLog) {
        self.listening.set(log.listening);
        self.events.replace(log.events);
    }

    #[inline]
    pub(crate) fn record(&self, event: impl FnOnce() -> Event) {
        if self.listening.get() {
            self.push(event());
        }
    }

    #[cold]
    fn push(&self, event: Event) {
        self.events.borrow_mut().push(event);
    }
}
