//! The executions of leaves: each in the copy that was made for its sample, and remembered.

use super::super::frame::Frame;
use super::{Fork, Forks, Unjudged, leaf};
use crate::settings::Settings;
use clr_sampler::{Sample, lock};
use clr_unwind::Registers;
use clr_walker::mixed::Policy;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// Part of the stack that decides what a leaf does, in bytes: two leaves with the same registers and the same of
/// this are one.
const COMPARED: usize = 1024;
/// Maximum number of leaves that are remembered.
const MOST: usize = 1 << 16;

/// The true caller of a leaf, or the reason why it is not known.
pub(in super::super) type Found = Result<Frame, &'static str>;

/// The executions.
#[derive(Debug)]
pub(in super::super) struct Executions {
    forks: Forks,
    known: Mutex<HashMap<u64, Found>>,
}

impl Executions {
    pub(in super::super) fn new(settings: &Settings) -> Self {
        let are_judged = settings.policy == Policy::Signal && settings.judge;
        let every = if are_judged { settings.execute } else { 0 };
        Self { forks: Forks::new(every), known: Mutex::default() }
    }

    /// Copies the process if it is this request's turn, in the signal handler that has interrupted the calling thread with
    /// these registers.
    pub(in super::super) fn prepare(&self, registers: &Registers) {
        self.forks.make(registers);
    }

    /// Returns the number of copies since the last call that nobody has executed: the walks of their samples were made again
    /// later, when memory had changed.
    pub(in super::super) fn take_unused(&self) -> u64 {
        self.forks.unused.swap(0, Ordering::Relaxed)
    }

    /// Forgets the copy of a request that led to no sample.
    pub(in super::super) fn forget(&self) {
        drop(self.forks.any());
    }

    /// Returns the caller of the sample's leaf, or why it is not known; `None` if no copy was made for the sample. A leaf that
    /// runs long, or that has written its return address, has to return to where the walk says that its frame ends
    /// (`claimed`, the caller's rsp).
    pub(in super::super) fn caller(&self, sample: &Sample, claimed: Option<u64>) -> Option<Found> {
        let fork = self.forks.of(sample)?;
        let mut hasher = DefaultHasher::new();
        let registers = &sample.registers;
        (sample.thread.0, registers.rip, registers.gpr).hash(&mut hasher);
        sample.copy.get(..COMPARED).unwrap_or(&sample.copy).hash(&mut hasher);
        let mut known = lock(&self.known);
        if known.len() >= MOST {
            known.clear();
        }
        Some(*known.entry(hasher.finish()).or_insert_with(|| execute(sample, &fork, claimed)))
    }
}

fn execute(sample: &Sample, fork: &Fork<'_>, claimed: Option<u64>) -> Found {
    let returned = leaf(sample, fork).map_err(Unjudged::name)?;
    if !returned.is_certain && claimed != Some(returned.registers[4]) {
        return Err("elsewhere");
    }
    Ok(Frame { rip: returned.ip, registers: returned.registers })
}
