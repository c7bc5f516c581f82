//! The part of the profiling interface that stack walks need, with the names that a profiler sees.
//!
//! [`ProfilerInfo`] is so thin that implementing it over a real `ICorProfilerInfo` pointer is
//! mechanical; `clr-sim` implements it over a simulated runtime, whose clauses (C-001 …) describe
//! the behaviour of the methods. [`TargetThread`] and [`ModuleSource`] stand for the operating
//! system.

mod hresult;
mod info;
mod methods;
mod target;
#[cfg(test)]
mod tests;

pub use hresult::HResult;
pub use info::{
    CallError, CodeRange, EventMask, FrameInfo, FunctionId, FunctionInfo, ReJitId,
    SnapshotCallback, SnapshotFlags, SnapshotFrame, SnapshotRequest, ThreadId,
};
pub use methods::{Accepts, Called, Effect, ForwardInfo, InfoMethod, ProfilerInfo};
pub use target::{ModuleSource, StackBounds, StackRoot, TargetThread, ThreadContext};
