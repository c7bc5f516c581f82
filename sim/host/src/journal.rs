//! The events of a session, reported as they happen: a profiler may end the process at any time.

use crate::report::Finding;
use crate::walks::Walk;
use clr_walker::profiling::HResult;

/// An event.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Entry<'e> {
    /// A step of loading or unloading the profiler begins: a call of the profiler's code.
    Begins(&'static str),
    /// A step of loading or unloading has ended.
    Loaded {
        /// The step.
        step: &'static str,
        /// Its result.
        result: HResult,
    },
    /// The library cannot be loaded, for the system's reason.
    Unloadable(&'e str),
    /// The runtime calls the profiler.
    Enters {
        /// The callback.
        callback: &'static str,
        /// The thread in the text; empty for others.
        thread: &'e str,
    },
    /// The profiler has returned from that call.
    Leaves {
        /// The callback.
        callback: &'static str,
        /// Its result, which a CLR ignores except that of `Initialize`.
        result: HResult,
    },
    /// The profiler calls the runtime.
    Calls(&'static str),
    /// A call of the runtime has returned.
    Returns {
        /// The method.
        method: &'static str,
        /// The thread in the text; empty for others.
        thread: &'e str,
        /// Its result.
        result: HResult,
    },
    /// The profiler has called a method that is not simulated.
    NotSimulated(&'static str),
    /// A callback that the program would have raised is not simulated.
    NotRaised(&'static str),
    /// The profiler did something wrong, or the simulated process has ended.
    Found(&'e Finding),
    /// The profiler has asked for the right to walk stacks.
    AskedToWalk,
    /// A stack was walked.
    Walked(&'e Walk),
    /// The runtime has released its last reference to the profiler's object: N of the profiler's own are
    /// left.
    Released(u32),
    /// References that are left, which the end of the process frees.
    Kept(&'e Finding),
    /// The session is over: the process that called it ends now.
    Over,
}

/// A receiver of entries. Those of calls on other threads come from these threads.
pub trait Journal: Send + Sync {
    /// Writes an entry.
    fn write(&self, entry: &Entry<'_>);
}
