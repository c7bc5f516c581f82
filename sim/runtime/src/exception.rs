//! Exceptions in progress on a thread, as far as a walk depends on them (contract §3.9).

/// A pass over the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pass {
    /// Search for a handler.
    #[default]
    First,
    /// Unwinding of the stack down to the handler.
    Second,
}

/// State of one exception in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExceptionTracker {
    /// Current pass.
    pub pass: Pass,
    /// The current EH clause has entered managed code.
    pub entered_managed_code: bool,
    /// Stack that the second pass has left: addresses above the first and up to the second (VA) are
    /// hidden while this exception is the current one (C-086).
    pub unwound: Option<(u64, u64)>,
    /// Handler funclet that is running.
    pub funclet: Option<RunningFunclet>,
}

/// A handler funclet that exception handling has called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningFunclet {
    /// Caller SP of the funclet (VA).
    pub caller_sp: u64,
    /// Caller SP of the method that the funclet belongs to; `None` if no tracker records it
    /// (C-154).
    pub parent_caller_sp: Option<u64>,
}

/// The exceptions in progress on a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExceptionState {
    /// Trackers, most recent first.
    pub trackers: Vec<ExceptionTracker>,
    /// The thread is between the end of an exception and the continuation after its catch (C-050).
    pub inconsistent: bool,
}

impl ExceptionState {
    /// Returns true if the current exception's second pass has begun and its EH clause has not
    /// entered managed code: native code is active that no unseeded walk may start above (C-048).
    #[must_use]
    pub fn is_unwinding_natively(&self) -> bool {
        let current = self.trackers.first();
        current.is_some_and(|tracker| tracker.pass == Pass::Second && !tracker.entered_managed_code)
    }

    /// Returns true if the current exception has already unwound the stack at `sp` (VA). Older
    /// exceptions hide nothing from profilers, only from the GC (C-086).
    #[must_use]
    pub fn is_unwound(&self, sp: u64) -> bool {
        let current = self.trackers.first().filter(|tracker| tracker.pass == Pass::Second);
        let unwound = current.and_then(|tracker| tracker.unwound);
        unwound.is_some_and(|(lower, upper)| lower < sp && sp <= upper)
    }

    /// Returns the handler funclet with this caller SP (VA).
    #[must_use]
    pub fn running_funclet(&self, caller_sp: u64) -> Option<RunningFunclet> {
        let mut funclets = self.trackers.iter().filter_map(|tracker| tracker.funclet);
        funclets.find(|funclet| funclet.caller_sp == caller_sp)
    }
}
