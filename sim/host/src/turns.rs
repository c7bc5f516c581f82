//! Threads of interleavings. A guest's threads run under a scheduler that this crate does not know: it [installs](install) its [`Turns`].

use clr_explore::CurrentThread;
use clr_walker::profiling::HResult;
use std::sync::OnceLock;

/// The threads of the system that belong to threads of an interleaving.
pub trait Turns: Send + Sync {
    /// Returns true if this thread of the system is a thread of an interleaving.
    fn is_in_history(&self) -> bool;

    /// Calls `what` with the thread of the interleaving that this thread of the system is, in a call of `method`. Other
    /// threads may run before.
    fn ask(&self, method: &'static str, what: &mut dyn FnMut(&CurrentThread<'_, '_>));

    /// Calls the guest on the thread of the system that belongs to a thread of the interleaving.
    fn execute(&self, me: &CurrentThread<'_, '_>, call: &mut dyn FnMut());
}

static TURNS: OnceLock<&'static dyn Turns> = OnceLock::new();

/// Sets who has the turns of interleavings. The first one stays.
pub fn install(turns: &'static dyn Turns) {
    TURNS.get_or_init(|| turns);
}

/// Returns who has the turns, on a thread of an interleaving.
pub(crate) fn of_this_thread() -> Option<&'static dyn Turns> {
    TURNS.get().copied().filter(|turns| turns.is_in_history())
}

/// Calls the guest for a thread of an interleaving.
pub(crate) fn execute(me: &CurrentThread<'_, '_>, call: impl FnOnce() -> HResult) -> HResult {
    let (mut result, mut call) = (HResult::UNEXPECTED, Some(call));
    if let Some(turns) = TURNS.get() {
        turns.execute(me, &mut || {
            if let Some(call) = call.take() {
                result = call();
            }
        });
    }
    result
}
