//! Bugs that the tests plant into the scheduler, to verify that they are noticed.

/// A bug that a scheduler could have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// A resumed thread stays suspended.
    LostResume,
    /// A thread that is suspended once is suspended twice.
    DoubleSuspension,
    /// A suspended thread keeps running.
    SuspensionIgnored,
    /// A thread of the program has no switch point where it changes its mode.
    MissedSafePoint,
    /// A lock is released without a switch point.
    UnlockIsNoPoint,
    /// A schedule string records each choice one turn too late.
    ReplayOffByOne,
    /// A thread that waits for an event does not notice that it was reset.
    EventWithoutFootprint,
    /// A step is expected to be the same, whatever others have done to what it reads.
    ReadsAreForgotten,
    /// A thread that waits is expected to wait, whatever others do.
    WaitsForEver,
    /// States are distinguished by the steps before them, whatever their order.
    OrderIsForgotten,
    /// The content of a lock does not say which thread owns it.
    LocksHaveNoContents,
    /// States are equal whatever the profiler's code has found so far.
    ProgressIsForgotten,
    /// A timed wait is not ended by time.
    TimersForgotten,
    /// State of one history is carried over to the next.
    StateCarriedOver,
    /// A thread that waits in code of the profiler takes no signals.
    WaitingTakesNoSignals,
    /// The timed waits of a suspended thread run out.
    SuspendedTimersRun,
    /// Of several sleeping threads the one that sleeps longest can wake first.
    LongestSleeperFirst,
    /// A walk does not count as an access to the walked thread.
    WalkWithoutFootprint,
    /// `SuspendRuntime` does not count as an access to the threads.
    SuspensionWithoutFootprint,
    /// A method that asks the runtime does not count as an access to its data.
    QuestionWithoutFootprint,
    /// A signal that finds a thread in a wait for the end of a suspension comes after the wait.
    SignalsAwaitResume,
    /// A thread begins to wait on a condition variable without a switch point.
    WaitIsNoPoint,
    /// A notification wakes the thread that has waited longest.
    OldestWaiterFirst,
    /// A thread that was started is known, and never runs.
    StartedNeverRuns,
}

#[cfg(test)]
thread_local! {
    static PLANTED: core::cell::Cell<Option<Bug>> = const { core::cell::Cell::new(None) };
}

impl Bug {
    /// Returns true if this bug is planted.
    #[cfg(test)]
    pub(super) fn is_planted(self) -> bool {
        PLANTED.get() == Some(self)
    }

    /// Returns false: nothing is planted outside of tests.
    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "tests ask for one of them")]
    pub(super) const fn is_planted(self) -> bool {
        false
    }

    /// Runs `body` with this bug planted.
    #[cfg(test)]
    pub(super) fn within<T>(self, body: impl FnOnce() -> T) -> T {
        PLANTED.set(Some(self));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        PLANTED.set(None);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
