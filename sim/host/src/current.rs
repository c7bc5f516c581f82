//! The thread of a history that calls the runtime, or is called by it.
//!
//! In a history the session's state is that of the thread that has the turn. Where other threads may run,
//! it is put back afterwards.

use crate::session::Inner;
use clr_explore::CurrentThread;
use std::cell::Cell;

/// A thread of a history, for as long as its call lasts.
type Caller = &'static CurrentThread<'static, 'static>;

/// The thread of a history that has the turn, if there is one.
#[derive(Default)]
pub(crate) struct Current(Cell<Option<Caller>>);

impl Inner {
    /// Returns the thread of the history that has the turn.
    pub(crate) fn current(&self) -> Option<Caller> {
        self.current.0.get()
    }

    /// Calls `act` for a thread of a history.
    ///
    /// # Safety
    /// The session's runtime is that of the history.
    #[cfg(scheduled)]
    pub(crate) unsafe fn on_behalf_of<T>(
        &self,
        me: &CurrentThread<'_, '_>,
        act: impl FnOnce() -> T,
    ) -> T {
        // SAFETY: the reference is given up below, before the thread's own borrow ends. Of the second
        // lifetime, which is that of the history's process, the session holds the runtime itself.
        let me = unsafe { std::mem::transmute::<&CurrentThread<'_, '_>, Caller>(me) };
        let (before, within) = (self.current.0.replace(Some(me)), self.within.take());
        let done = self.acting_as(me.os(), act);
        self.current.0.set(before);
        self.within.set(within);
        done
    }

    /// Calls `act`, in which other threads may run.
    pub(crate) fn switching<T>(&self, act: impl FnOnce() -> T) -> T {
        let (current, caller, within) = (self.current.0.get(), self.caller(), self.within.get());
        let walks = self.walks.take();
        let done = act();
        self.walks.set(walks);
        self.current.0.set(current);
        self.set_caller(caller);
        self.within.set(within);
        done
    }
}
