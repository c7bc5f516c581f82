//! Walks of a session: calls of `DoStackSnapshot`, explained.

use crate::process::Process;
use clr_runtime::Outcome;
use clr_runtime::explain::{Names, StoryLine};
use clr_walker::profiling::{FunctionId, ThreadId};

/// A call of `DoStackSnapshot`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Walk {
    /// The callback in which it was made.
    pub within: Option<&'static str>,
    /// The thread that was to be walked; 0 is the caller.
    pub thread: ThreadId,
    /// infoFlags.
    pub flags: u32,
    /// True if there was a seed.
    pub seeded: bool,
    /// Outcome of the call.
    pub outcome: Outcome,
    /// The frames that the profiler's callback got: methods by name, markers by their place.
    pub frames: Vec<WalkedFrame>,
    /// The decisions of the runtime, with those of walks within this one.
    pub story: Vec<StoryLine>,
}

/// A frame that a profiler got.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WalkedFrame {
    /// The name of the method, or of the place that a marker has.
    pub name: String,
    /// True for a marker, which stands for a run of unmanaged frames.
    pub marker: bool,
    /// The ip (VA).
    pub ip: u64,
}

impl WalkedFrame {
    /// Returns a frame with the names of a process.
    pub(crate) fn new(stage: &Process, function: FunctionId, ip: u64) -> Self {
        let runtime = stage.runtime();
        let marker = function.0 == 0;
        let name = if marker { None } else { runtime.function(function) };
        Self { name: name.unwrap_or_else(|| runtime.place(ip).to_string()), marker, ip }
    }
}
