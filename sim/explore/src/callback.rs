//! The callback that a thread is in, with its arguments.

use clr_runtime::profiling::{CallbackKind, ProfilerCallback};
use clr_walker::profiling::ThreadId;
use clr_world::{CallbackArguments, World};

/// A callback of the profiler, with the arguments that the simulated runtime knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Callback {
    /// The method of `ICorProfilerCallback`.
    pub kind: CallbackKind,
    /// The thread that the callback is about: the thread that it is made on, unless it is about
    /// another one. 0 is a thread that the runtime does not know.
    pub thread: ThreadId,
    /// The arguments that the program decides.
    pub arguments: CallbackArguments,
}

impl Callback {
    /// Returns a callback that the runtime makes in the middle of a call of the profiler.
    pub(super) fn in_call(callback: ProfilerCallback, world: &World<'_>) -> Self {
        let thread = callback.thread().unwrap_or_default();
        Self { kind: callback.into(), thread, arguments: world.arguments_in_call(callback) }
    }
}
