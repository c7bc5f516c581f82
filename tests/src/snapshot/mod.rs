//! What holds of a call about any thread that can be set up, whole or damaged.
//!
//! [`check`] makes a call again and again on the same state, with one thing changed each time. All
//! promises hold for all stages, but for those that say what a damaged one is exempt from.

mod journal;
mod model;
mod promises;
mod whole;
mod world;

use clr_generate::SyntheticCall;
use clr_runtime::Outcome;
use clr_world::synthetic::{CodeLocation, SyntheticActivation, SyntheticThread};
use std::fmt;
use thiserror::Error;

/// What was checked of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The stage could not be set up.
    pub rejected: bool,
    /// Callbacks of the call.
    pub callbacks: u64,
    /// Calls that were made.
    pub calls: u64,
    /// What the call came to was known beforehand.
    pub expected: bool,
    /// Nothing is damaged.
    pub whole: bool,
    /// How it ended.
    pub outcome: Option<Outcome>,
}

/// Whether nothing is damaged: nothing but the rows decides what lies on the stack.
#[must_use]
pub fn is_whole(stage: &SyntheticThread) -> bool {
    whole::targets(stage).is_some()
}

/// Whether a stage is whole, and each run of native code that has called managed code was called from where
/// a Frame leads to: without one the runtime passes by what is rootward of it.
#[must_use]
pub fn is_linked(stage: &SyntheticThread) -> bool {
    let Some(targets) = whole::targets(stage) else { return false };
    let native = |row: &SyntheticActivation| row.place == CodeLocation::Native;
    let mut has_managed = false;
    let mut pairs = stage.rows.windows(2).enumerate();
    pairs.all(|(index, pair)| {
        has_managed |= pair.first().is_some_and(|row| !native(row));
        let is_end =
            pair.first().is_some_and(native) && pair.last().is_some_and(|row| !native(row));
        !(is_end && has_managed) || targets.contains(&Some(index + 1))
    })
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{promise}: {detail}")]
pub struct Broken {
    /// What holds.
    pub promise: &'static str,
    /// What was seen.
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

/// The same of two values.
fn same<T: PartialEq + fmt::Debug>(name: &'static str, left: &T, right: &T) -> Result<(), Broken> {
    promise(name, left == right, || format!("{left:#x?}\nand\n{right:#x?}"))
}

/// Checks all that holds of a call.
///
/// # Errors
/// The first promise that does not hold.
pub fn check(case: &SyntheticCall) -> Result<Checked, Broken> {
    let Ok(set) = case.stage.set_up() else {
        return Ok(Checked { rejected: true, ..Checked::default() });
    };
    promises::Promises::new(case, &set).check()
}
