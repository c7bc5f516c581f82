//! Properties of calls for any thread that can be set up, whole or damaged.
//!
//! [`check`] repeats a call on the same state, with one change each time. All promises hold for all
//! stages, except where a promise names an exemption for damaged ones.

mod journal;
mod mistake;
mod model;
mod properties;
mod whole;
mod world;

pub use mistake::Mistake;

use clr_generate::SyntheticCall;
use clr_runtime::Outcome;
use clr_runtime::frame::FrameShape;
use clr_world::synthetic::{CodeLocation, SyntheticActivation, SyntheticThread};
use std::fmt;
use thiserror::Error;

/// The result of checking a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// True if the stage could not be set up.
    pub rejected: bool,
    /// Number of callbacks of the call.
    pub callbacks: u64,
    /// Number of calls made.
    pub calls: u64,
    /// True if the model has an expectation for the call.
    pub expected: bool,
    /// True if nothing is damaged.
    pub whole: bool,
    /// Outcome of the call.
    pub outcome: Option<Outcome>,
}

/// Returns true if nothing is damaged: only the rows determine the content of the stack.
#[must_use]
pub fn is_whole(target: &SyntheticThread) -> bool {
    whole::targets(target).is_some()
}

/// Returns true if a stage is whole, and each run of native code that has called managed code was
/// called from a row that a Frame leads to. Without such a Frame, the runtime skips the rows
/// rootward of the run.
#[must_use]
pub fn is_linked(target: &SyntheticThread) -> bool {
    let Some(targets) = whole::targets(target) else { return false };
    let native = |activation: &SyntheticActivation| activation.place == CodeLocation::Native;
    let mut has_managed = false;
    let mut pairs = target.activations.windows(2).enumerate();
    pairs.all(|(index, pair)| {
        has_managed |= pair.first().is_some_and(|activation| !native(activation));
        let is_end = pair.first().is_some_and(native)
            && pair.last().is_some_and(|activation| !native(activation));
        !(is_end && has_managed) || targets.contains(&Some(index + 1))
    })
}

/// Returns true if an active call returns to native code: a walk that comes to its Frame never ends
/// (C-079).
#[must_use]
pub fn leads_active_calls_astray(synthetic: &SyntheticThread) -> bool {
    let native = |name: &String| {
        let mut rows = synthetic.activations.iter();
        rows.any(|row| row.function == *name && row.place == CodeLocation::Native)
    };
    let mut calls =
        synthetic.frames.iter().filter(|frame| frame.kind.shape() == FrameShape::InlinedCall);
    calls.any(|frame| frame.leads_to.as_ref().is_some_and(native))
}

/// Returns a call whose target returns to native code from its topmost InlinedCallFrame, if it has
/// one. No compiler makes such a Frame; stubs without a known method do (C-079).
#[must_use]
pub fn with_stray_call(mut case: SyntheticCall) -> SyntheticCall {
    let target = &mut case.target;
    let root = target.activations.last().map(|root| root.function.clone());
    let mut frames = target.frames.iter_mut();
    if let Some(frame) = frames.find(|frame| frame.kind.shape() == FrameShape::InlinedCall) {
        frame.leads_to = root;
    }
    case
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{promise}: {detail}")]
pub struct Broken {
    /// The promise.
    pub promise: &'static str,
    /// The observation that breaks it.
    pub detail: String,
}

/// Fails if a promise does not hold.
fn promise(
    promise: &'static str,
    holds: bool,
    detail: impl FnOnce() -> String,
) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken { promise, detail: detail() }) }
}

/// Fails if two values differ.
fn same<T: PartialEq + fmt::Debug>(name: &'static str, left: &T, right: &T) -> Result<(), Broken> {
    promise(name, left == right, || format!("{left:#x?}\nand\n{right:#x?}"))
}

/// Checks all promises for a call.
///
/// # Errors
/// The first promise that does not hold.
pub fn check(case: &SyntheticCall) -> Result<Checked, Broken> {
    check_with(case, None)
}

/// Checks all promises for a call, against a model with a planted mistake.
///
/// # Errors
/// The first promise that does not hold.
pub fn check_with(case: &SyntheticCall, mistake: Option<Mistake>) -> Result<Checked, Broken> {
    let Ok(set) = case.target.build() else {
        return Ok(Checked { rejected: true, ..Checked::default() });
    };
    properties::Properties::new(case, &set).check(mistake)
}
