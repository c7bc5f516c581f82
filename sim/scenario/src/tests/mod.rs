//! Tests of the text format.

mod bless;
mod compiled;
mod editor;
mod errors;
mod explained;
mod format;
mod from_synthetic;
mod from_world;
mod grammar;
// Searches need coroutines, which `clr-coroutine` has on few processors.
#[cfg(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64"))]
mod histories;
mod hostile;
mod mixed;
mod mutate;
mod round_trip;
mod run_bare;
mod run_on_runtime;
mod snapshot;
mod synonyms;
mod upgrade;
mod walk;

use crate::text::keywords::{Keyword, REGISTERS, SAVED, SLOTS};
use crate::{
    ContextRules, Expectation, ExpectedFrame, FoundEnd, FoundFrameReport, FoundWalk, LineColumn,
    MixedClaim, MixedDifference, MixedReport, NotReached, Parent, PlacedStack, ProblemKind,
    ProfilerMethod, Results, RunOnError, Scenario, ScenarioError, ScenarioThread,
    ShadowStackDifference, SnapshotDifference, SnapshotReport, SnapshotResult, SourceMap, Stop,
    StopAt, StopReport, StopResult, SyntaxError, UnwindDifference, WalkEnd, WalkReport,
    format_text, upgrade_text,
};
use clr_generate::{Choices, Seeded, Size, program, synthetic_call, world_case};
use clr_runtime::generation::{Generation, Generations};
use clr_runtime::profiling::{CallbackKind, HResult};
use clr_unwind::compat::Rules;
use clr_unwind::{Gpr, Position, Trust, UnwindError};
use std::collections::BTreeSet;

/// A text with all nodes of programs.
const EVERYTHING: &str = include_str!("everything.kdl");

/// A text with all nodes of stacks placed by hand.
const STACK: &str = include_str!("stack.kdl");

/// Parses a text that must be valid.
fn parse(text: &str) -> Scenario {
    Scenario::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the canonical text after checking that it parses to the same scenario.
fn round_trip(scenario: &Scenario) -> String {
    let text = scenario.to_string();
    let again = Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(again, *scenario, "\n{text}");
    assert_eq!(again.to_string(), text);
    text
}

/// The document of the grammar.
const DOCUMENT: &str = include_str!("../text/grammar.md");

/// Returns the example texts of the document.
fn examples() -> impl Iterator<Item = &'static str> {
    DOCUMENT.split("```kdl\n").skip(1).map(|rest| rest.split_once("```").unwrap().0)
}
