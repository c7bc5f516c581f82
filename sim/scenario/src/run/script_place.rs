//! Places in scripts, by which searches recognise states.

use clr_runtime::profiling::CallbackKind;
use clr_world::content::ContentHasher;

/// The reason why actions are executed.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) enum Start {
    Thread,
    Callback(CallbackKind),
    Hook,
    Signal,
    Crash,
    Snapshot,
}

/// A place in a script, as a hash of the numbers of the actions around it: what the code does next depends on nothing
/// else but the script's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(u64);

impl Place {
    /// Returns the hash.
    pub(crate) const fn hash(self) -> u64 {
        self.0
    }

    /// Returns the place before the first action of a script.
    pub(crate) fn of(start: Start) -> Self {
        Self(ContentHasher::of(&start))
    }

    /// Returns the place of an action in this one, or of a repetition.
    pub(crate) fn with(self, number: u64) -> Self {
        Self(ContentHasher::of(&(self.0, number)))
    }
}
