//! Scenarios: programs, the positions at which they stop, and the expected results of stack walks
//! there.
//!
//! ```
//! use clr_runtime::generation::Generation;
//! use clr_scenario::Scenario;
//!
//! let scenario: Scenario = r#"
//! function "App.Main" kind="jit" { body { new; }; }
//! stop at="AllocateObject" instruction=1 {
//!     snapshot by="native-walker" {
//!         expect on="windows" { result "CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX"; }
//!     }
//! }
//! "#.parse()?;
//! let reports = scenario.run_on(Generation::Net10Windows)?;
//! assert!(reports.len() == 1 && reports[0].is_right());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The text form is described below. [`Scenario::parse`] reads it, the `Display` of [`Scenario`]
//! prints the canonical text, and [`format_text`] formats text that a person wrote.
//! [`Scenario::run`] compares the results of walks with the expected ones.
//!
//! | module | content |
//! |---|---|
//! | `model` | the scenario as data: program, threads, stops, calls, placed stacks, profilers, expectations |
//! | `text` | the text form: codec of each node, reader, printer, layout, errors, mutation |
//! | `synonyms` | words of the field, and what texts have for them |
//! | `run` | execution on a runtime, and comparison with what is expected |
//!
//! `text` knows `model`, and `run` knows both.
//!
#![doc = include_str!("text/grammar.md")]

mod model;
mod run;
mod synonyms;
mod text;

pub use model::{
    Action, Buffer, CountDemand, Demand, Description, Entrance, Expectation, ExpectedContent,
    ExpectedEnd, ExpectedFlags, ExpectedFrame, ExpectedFrameReport, ExpectedHistory, ExpectedMixed,
    ExpectedMixedFrame, ExpectedMixedItem, ExpectedOutcome, ExpectedSnapshot, ExpectedWait,
    Exploration, Export, ExportArgument, LastCallback, MIXED_CAPACITY, MixedAt, MixedClaim,
    MixedFrameKind, MixedWalk, NestedCall, PlacedItem, PlacedStack, PlacedThread, ProfilerMethod,
    ProfilerScript, Provenance, RaisedBy, ReasonKind, SEED_FLAGS, SEED_RAX, SEED_SIZE, Scenario,
    ScenarioThread, ScriptSeed, ScriptThread, SeedAddress, SeedSource, SnapshotAt, SnapshotCall,
    SnapshotCaller, SnapshotSeed, SnapshotThread, StackNode, Stale, Stop, StopAt, SuspensionState,
    ThreadMode, ThreadName, UnwindErrorKind, WaitKind, WalkEnd, world_stop,
};
pub use run::{
    Compared, ContextRules, CoverableCall, DecidingClauses, Demands, EachMixed, EachSnapshot,
    ExplainedSnapshot, Explored, Exploring, FoundEnd, FoundFrame, FoundFrameReport, FoundMixed,
    FoundMixedFrame, FoundMixedItem, FoundNested, FoundWalk, HistoryDifference, INSTRUCTION_LIMIT,
    MixedDifference, MixedReport, NamedError, NotReached, ObservedActivation, ObservedFrame,
    ObservedStack, PlacedObservation, Results, RunError, RunOnError, ShadowFrame,
    ShadowStackDifference, SnapshotDifference, SnapshotReport, SnapshotResult, StopReport,
    StopResult, Stops, ThreadAtStop, Unmet, UnwindDifference, WalkReport, bless,
};
#[cfg(feature = "recording")]
pub use run::{RecordingDifference, RecordingRefusal, SequenceRun, SequenceRunError};
pub use synonyms::{Meaning, SYNONYMS, Synonym, interface_names, meaning};
pub use text::{
    Correction, Keyword, Kind, Level, LineColumn, MAX_TEXT, NameKind, NameUse, NodePlaces,
    NodeRule, OutlineNode, Parent, Problem, ProblemKind, PropertyRule, RenameError, RenamedWord,
    ScenarioError, ScenarioStep, SourceMap, Span, SyntaxError, TextDigest, TextDigestError,
    comment_count, format_text, hresult, names_of, nearest, outline_of, rename, upgrade_text,
};

#[cfg(test)]
mod tests;
