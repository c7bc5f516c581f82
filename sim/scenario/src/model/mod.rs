//! The scenario as data: what a text says, without its form and without what comes of it.

mod build;
mod calls;
mod compiled;
mod coverage;
mod expectation;
mod export;
mod from_world;
mod mixed_walk;
mod mixed_words;
mod placed_stack;
mod profiler_method;
mod profiler_script;
mod raised;
mod scenario;
mod snapshot;
mod to_world;

pub(crate) use build::place_of;
pub use calls::{MixedAt, SnapshotAt};
pub use coverage::{CountDemand, Demand, Entrance};
pub use expectation::{Expectation, ExpectedFrame, UnwindErrorKind, WalkEnd};
pub use export::{Buffer, ExpectedContent, Export, ExportArgument};
pub use from_world::stop as world_stop;
pub use mixed_walk::{
    ExpectedMixed, ExpectedMixedFrame, ExpectedMixedItem, MIXED_CAPACITY, MixedWalk,
};
pub use mixed_words::{MixedClaim, MixedFrameKind, ReasonKind};
pub use placed_stack::{
    PlacedItem, PlacedStack, PlacedThread, StackNode, SuspensionState, ThreadMode,
};
pub use profiler_method::ProfilerMethod;
pub(crate) use profiler_method::profiler_methods;
pub use profiler_script::{
    Action, ExpectedEnd, ExpectedHistory, ExpectedWait, Exploration, ProfilerScript, ScriptSeed,
    ScriptThread, ThreadName, WaitKind,
};
pub(crate) use profiler_script::{DEPTH, SCHEDULES, SnapshotOptions};
pub use raised::RaisedBy;
pub use scenario::{Description, Scenario, ScenarioThread, Stop, StopAt};
pub use snapshot::{
    ExpectedFlags, ExpectedFrameReport, ExpectedOutcome, ExpectedSnapshot, LastCallback,
    NestedCall, Provenance, SEED_FLAGS, SEED_RAX, SEED_SIZE, SeedAddress, SeedSource, SnapshotCall,
    SnapshotCaller, SnapshotSeed, SnapshotThread, Stale,
};
