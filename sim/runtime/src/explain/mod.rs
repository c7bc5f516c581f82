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

pub use chain::{ChainFrame, FrameDestination, first_managed, frame_chain, target_chain};
pub use deciding::{deciding, parting};
pub use event::{DropReason, EntryCheck, Event, HiddenReason, SilentReason, WalkStart};
pub use names::{NamedAddress, Names};
pub use story::{StoryLine, StoryWriter, Topic, story};

use core::cell::{Cell, RefCell};

/// Recorded events that were put aside.
#[derive(Debug, Default)]
pub struct InterruptedLog {
    listening: bool,
    events: Vec<Event>,
}

impl InterruptedLog {
    /// Returns the events.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }
}

/// A place in the log, from which the events of a call are recorded.
#[derive(Clone, Copy, Debug)]
pub struct LogMark {
    listened: bool,
    events: usize,
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

    /// Starts recording the events of a call, which may be a part of another one that is being recorded.
    pub fn mark(&self) -> LogMark {
        LogMark { listened: self.listening.replace(true), events: self.events.borrow().len() }
    }

    /// Returns the events recorded since the mark. They remain a part of what was being recorded before it.
    pub fn since(&self, mark: LogMark) -> Vec<Event> {
        self.listening.set(mark.listened);
        let mut events = self.events.borrow_mut();
        if mark.listened {
            events.get(mark.events..).unwrap_or_default().to_vec()
        } else {
            core::mem::take(&mut *events)
        }
    }

    /// Puts aside what is being recorded: another thread's calls come between. [`resume`](Self::resume) goes on
    /// with it.
    #[inline]
    pub fn interrupt(&self) -> InterruptedLog {
        // Most calls are not recorded.
        if !self.listening.get() && self.events.borrow().is_empty() {
            return InterruptedLog::default();
        }
        InterruptedLog { listening: self.listening.take(), events: self.events.take() }
    }

    /// Goes on recording where [`interrupt`](Self::interrupt) has ended.
    #[inline]
    pub fn resume(&self, log: InterruptedLog) {
        self.listening.set(log.listening);
        if !log.events.is_empty() || !self.events.borrow().is_empty() {
            self.events.replace(log.events);
        }
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
