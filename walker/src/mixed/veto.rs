//! A profiler's veto against asking the runtime in a signal handler.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

/// The conditions under which a handler that walks by
/// [`Policy::SignalSnapshot`](super::Policy::SignalSnapshot) must not ask the runtime.
///
/// Both are needed, and even together they are not known to be complete. In CoreCLR 3.1 and .NET 9 on
/// Linux, of processes whose threads throw 8 of 12 hung, and with a predicate for the runtime's
/// unwinder 0 of 12; of processes whose threads allocate 6 of 6 hung, and with the flag 2 of 8.
#[derive(Clone, Copy)]
pub struct SignalVeto<'s> {
    /// True from `RuntimeSuspendStarted` to `RuntimeResumeFinished`: a thread that waits for the
    /// end of the suspension would wait for it a second time, for ever. The profiler sets it in
    /// these callbacks.
    pub is_suspending: &'s AtomicBool,
    /// Returns true if the runtime must not be asked while a thread's leaf is at this address (VA):
    /// in the native unwinder, in the allocator, in the runtime's code that waits. Called in the
    /// handler, so it takes no lock and allocates nothing.
    pub forbids: &'s (dyn Fn(u64) -> bool + Sync),
}

impl SignalVeto<'static> {
    /// Forbids nothing: for simulated processes, in which a search shall find the hang.
    pub const NONE: Self = {
        static NEVER: AtomicBool = AtomicBool::new(false);
        Self { is_suspending: &NEVER, forbids: &|_| false }
    };
}

impl SignalVeto<'_> {
    /// Returns true if the runtime must not be asked while the leaf is at `rip` (VA).
    pub(super) fn forbids(&self, rip: u64) -> bool {
        self.is_suspending.load(Ordering::SeqCst) || (self.forbids)(rip)
    }
}

impl fmt::Debug for SignalVeto<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_suspending = &self.is_suspending;
        f.debug_struct("SignalVeto").field("is_suspending", is_suspending).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    #[test]
    fn a_suspension_or_the_address_forbids() {
        for (suspending, rip, expected) in
            [(false, 1, false), (false, 2, true), (true, 1, true), (true, 2, true)]
        {
            let is_suspending = AtomicBool::new(suspending);
            let veto = SignalVeto { is_suspending: &is_suspending, forbids: &|rip| rip == 2 };
            assert_eq!(veto.forbids(rip), expected);
            let text = alloc::format!("{veto:?}");
            assert!(
                text.starts_with("SignalVeto") && text.contains(&suspending.to_string()),
                "{text}"
            );
        }
        assert!(!SignalVeto::NONE.forbids(2));
    }
}
