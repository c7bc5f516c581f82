//! Exceptions in progress on a thread, as far as a walk sees them (contract §3.9).

/// A pass over the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pass {
    /// A handler is searched.
    #[default]
    First,
    /// The stack is unwound down to it.
    Second,
}

/// What is known of one exception in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExceptionTracker {
    /// How far it is.
    pub pass: Pass,
    /// Whether the clause that it is at has entered managed code.
    pub entered_managed_code: bool,
    /// Stack that the second pass has left: what lies above the first address and not above the
    /// second (VA) is hidden (C-086).
    pub unwound: Option<(u64, u64)>,
    /// The handler funclet that runs.
    pub funclet: Option<RunningFunclet>,
}

/// A handler funclet that exception handling has called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningFunclet {
    /// Its caller SP (VA).
    pub caller_sp: u64,
    /// The caller SP of the method that it belongs to; `None` if no tracker knows (C-154).
    pub parent_caller_sp: Option<u64>,
}

/// The exceptions in progress on a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExceptionState {
    /// The most recent one first.
    pub trackers: Vec<ExceptionTracker>,
    /// Between the end of an exception and going on behind its catch (C-050).
    pub inconsistent: bool,
}

impl ExceptionState {
    /// Whether the current exception's second pass has begun, and its clause has not entered managed
    /// code: native code is at work that no unseeded walk may start above (C-048).
    #[must_use]
    pub fn is_unwinding_natively(&self) -> bool {
        let current = self.trackers.first();
        current.is_some_and(|tracker| tracker.pass == Pass::Second && !tracker.entered_managed_code)
    }

    /// Whether stack at `sp` (VA) has been unwound already (C-086).
    #[must_use]
    pub fn is_unwound(&self, sp: u64) -> bool {
        let unwound = self.trackers.iter().filter(|tracker| tracker.pass == Pass::Second);
        unwound
            .filter_map(|tracker| tracker.unwound)
            .any(|(lower, upper)| lower < sp && sp <= upper)
    }

    /// The handler funclet with this caller SP (VA).
    #[must_use]
    pub fn running_funclet(&self, caller_sp: u64) -> Option<RunningFunclet> {
        let mut funclets = self.trackers.iter().filter_map(|tracker| tracker.funclet);
        funclets.find(|funclet| funclet.caller_sp == caller_sp)
    }
}
