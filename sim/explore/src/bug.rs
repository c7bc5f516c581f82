//! Mistakes that the tests plant into the scheduler, to see that they are noticed.

/// A mistake that a scheduler could have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// Who is resumed stays suspended.
    LostResume,
    /// Who is suspended once is suspended twice.
    DoubleSuspension,
    /// Who is suspended goes on.
    SuspensionIgnored,
    /// A thread of the program gives nobody a chance where it changes its mode.
    MissedSafePoint,
    /// A lock is given back without others having had a chance.
    UnlockIsNoPoint,
    /// A history tells each choice one turn too late.
    ReplayOffByOne,
    /// Whoever waits for an event that is reset does not notice.
    EventWithoutFootprint,
    /// Steps sleep on, whatever others touch.
    NeverAwake,
    /// Whoever waits with a limit is not woken by time.
    TimersForgotten,
    /// What one history has left behind is there in the next.
    StateCarriedOver,
}

#[cfg(test)]
thread_local! {
    static PLANTED: core::cell::Cell<Option<Bug>> = const { core::cell::Cell::new(None) };
}

impl Bug {
    /// Whether it is planted.
    #[cfg(test)]
    pub(super) fn is_planted(self) -> bool {
        PLANTED.get() == Some(self)
    }

    /// Nothing is planted outside of tests.
    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "tests ask for one of them")]
    pub(super) const fn is_planted(self) -> bool {
        false
    }

    /// Runs something with it.
    #[cfg(test)]
    pub(super) fn within<T>(self, body: impl FnOnce() -> T) -> T {
        PLANTED.set(Some(self));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        PLANTED.set(None);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
