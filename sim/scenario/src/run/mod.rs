//! Execution of scenarios on a runtime, and comparison of the results with the expected ones.

mod bare;
pub(crate) mod bless;
mod coverage;
mod error;
mod explained;
mod exploration;
#[cfg(feature = "recording")]
mod from_recording;
mod from_synthetic;
mod hint;
mod minimize;
mod mixed;
mod named;
mod observed;
mod on_runtime;
mod placed_stack;
mod program;
mod script;
mod script_call;
mod script_place;
#[cfg(feature = "recording")]
mod sequence;
mod shadow_frame;
mod snapshot_result;
mod stopped_thread;
mod stops;
pub(crate) mod walk;

pub use bare::{INSTRUCTION_LIMIT, NotReached, RunError, StopReport, StopResult, WalkReport};
pub use bless::{Results, bless};
pub use coverage::{CoverableCall, Demands, Unmet};
pub use error::RunOnError;
pub use explained::{EachSnapshot, ExplainedSnapshot};
pub use exploration::{Explored, Exploring, HistoryDifference};
#[cfg(feature = "recording")]
pub use from_recording::{RecordingDifference, RecordingRefusal};
pub use mixed::{
    Compared, EachMixed, FoundMixed, FoundMixedFrame, FoundMixedItem, MixedDifference, MixedReport,
    ShadowFrame,
};
pub use named::NamedError;
pub use observed::{ObservedActivation, ObservedFrame, ObservedStack, PlacedObservation};
pub use on_runtime::ThreadAtStop;
#[cfg(feature = "recording")]
pub use sequence::{SequenceRun, SequenceRunError};
pub use snapshot_result::{
    ContextRules, DecidingClauses, FoundFrameReport, FoundNested, SnapshotDifference,
    SnapshotResult,
};
pub use stopped_thread::SnapshotReport;
pub use stops::Stops;
pub use walk::{FoundEnd, FoundFrame, FoundWalk, ShadowStackDifference, UnwindDifference};
