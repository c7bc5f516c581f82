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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunningFunclet {
    /// Caller SP of the funclet (VA).
    pub caller_sp: u64,
    /// Caller SP of the method that the funclet belongs to; `None` if no tracker records it
    /// (C-154).
    pub parent_caller_sp: Option<u64>,
}

/// The exceptions in progress on a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ExceptionState {
    /// Trackers, most recent first.
    pub trackers: Vec<ExceptionTracker>,
    /// The thread is between the end of an exception and the continuation after its catch (C-050).
    pub inconsistent: bool,
}

impl ExceptionState {
    /// Returns true if the current exception's second pass has begun and its EH clause has not
    /// entered managed code: native code is active that no unseeded walk may start above (C-048).
    pub fn is_unwinding_natively(&self) -> bool {
        let current = self.trackers.first();
        current.is_some_and(|tracker| tracker.pass == Pass::Second && !tracker.entered_managed_code)
    }

    /// Returns true if the current exception has already unwound the stack at `sp` (VA). Older
    /// exceptions hide nothing from profilers, only from the GC (C-086).
    pub fn is_unwound(&self, sp: u64) -> bool {
        let current = self.trackers.first().filter(|tracker| tracker.pass == Pass::Second);
        let unwound = current.and_then(|tracker| tracker.unwound);
        unwound.is_some_and(|(lower, upper)| lower < sp && sp <= upper)
    }

    /// Returns the handler funclet with this caller SP (VA).
    pub fn running_funclet(&self, caller_sp: u64) -> Option<RunningFunclet> {
        let mut funclets = self.trackers.iter().filter_map(|tracker| tracker.funclet);
        funclets.find(|funclet| funclet.caller_sp == caller_sp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(trackers: &[ExceptionTracker]) -> ExceptionState {
        ExceptionState { trackers: trackers.to_vec(), inconsistent: false }
    }

    /// Tests C-048.
    #[test]
    fn only_a_second_pass_that_has_not_entered_managed_code_is_native() {
        for (pass, entered_managed_code, expected) in [
            (Pass::First, false, false),
            (Pass::First, true, false),
            (Pass::Second, false, true),
            (Pass::Second, true, false),
        ] {
            let current =
                ExceptionTracker { pass, entered_managed_code, ..ExceptionTracker::default() };
            let native = ExceptionTracker { pass: Pass::Second, ..ExceptionTracker::default() };
            for older in [&[][..], &[native]] {
                let state = state(&[&[current], older].concat());
                assert_eq!(state.is_unwinding_natively(), expected, "{state:?}");
            }
        }
        assert!(!ExceptionState::default().is_unwinding_natively());
    }

    /// Tests C-086.
    #[test]
    fn the_current_exception_hides_the_stack_that_it_has_unwound() {
        let unwinds = |pass| ExceptionTracker {
            pass,
            unwound: Some((0x1000, 0x2000)),
            ..ExceptionTracker::default()
        };
        let second = state(&[unwinds(Pass::Second)]);
        for (sp, expected) in
            [(0xFF8, false), (0x1000, false), (0x1008, true), (0x2000, true), (0x2008, false)]
        {
            assert_eq!(second.is_unwound(sp), expected, "{sp:#x}");
            assert!(!state(&[unwinds(Pass::First)]).is_unwound(sp));
            let nested = state(&[ExceptionTracker::default(), unwinds(Pass::Second)]);
            assert!(!nested.is_unwound(sp), "an older exception hides nothing");
        }
    }

    #[test]
    fn a_funclet_is_found_by_its_caller_sp() {
        let funclet = |caller_sp, parent_caller_sp| ExceptionTracker {
            funclet: Some(RunningFunclet { caller_sp, parent_caller_sp }),
            ..ExceptionTracker::default()
        };
        let trackers =
            [funclet(0x10, Some(0x90)), ExceptionTracker::default(), funclet(0x20, None)];
        let state = state(&trackers);
        for tracker in trackers {
            if let Some(expected) = tracker.funclet {
                assert_eq!(state.running_funclet(expected.caller_sp), Some(expected));
            }
        }
        assert_eq!(state.running_funclet(0x90), None);
    }
}
