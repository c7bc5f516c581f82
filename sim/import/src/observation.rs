//! A thread's stack as a scenario.

use crate::error::ImportError;
use crate::note::Note;
use clr_runtime::Suspension;
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::{
    Description, ExpectedSnapshot, ObservedStack, PlacedObservation, PlacedStack, PlacedThread,
    Scenario, SnapshotCall, SuspensionState,
};
use std::fmt::Write as _;

/// Space above the last frame, in bytes.
const ROOT_ROOM: u64 = 0x1000;
/// Size of a stack in bytes.
const STACK_SIZE: u64 = 8 << 20;

/// End of the addresses that a process can have (VA).
const USER_END: u64 = 1 << 47;

/// The stack of a thread as a source shows it.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The thread, as the source names it.
    pub thread: String,
    /// The stack, at the addresses of the process.
    pub stack: ObservedStack,
    /// True if the thread is in cooperative mode.
    pub is_cooperative: bool,
    /// How far another thread has come with a suspension of the runtime, if there is one.
    pub suspension: Option<SuspensionState>,
    /// Lower and upper bound of the stack (VA).
    pub bounds: Option<(u64, u64)>,
    /// The runtimes that the source can be of.
    pub on: Generations,
    /// What the source does not have.
    pub notes: Vec<Note>,
}

impl Observation {
    /// Returns a scenario with the stack and these calls, each with what the runtimes of the observation give.
    ///
    /// # Errors
    /// [`ImportError`] if the stack cannot be placed.
    pub fn scenario(&self, calls: Vec<SnapshotCall>) -> Result<Scenario, ImportError> {
        let first = self.on.iter().next().ok_or(ImportError::NoGeneration)?;
        self.check(first)?;
        let mut placed = self.placed(first);
        placed.thread.cooperative = self.is_cooperative;
        // The caller of a call can have suspended the runtime only if no other thread has.
        let is_free = calls.iter().all(|call| !call.suspended);
        if let Some(state) = self.suspension.filter(|_| is_free) {
            let other = PlacedThread::Other.os();
            placed.thread.process.suspension = match state {
                SuspensionState::Suspending => Suspension::Suspending(other),
                SuspensionState::Suspended => Suspension::Suspended(other),
            };
        }
        let mut stack = PlacedStack::of(&placed.thread).ok_or(ImportError::State)?;
        stack.snapshots = calls;
        let about = Description {
            shows: Some(format!("The stack of {} of a real process.", self.thread)),
            tags: vec!["imported".to_owned()],
        };
        let mut scenario = Scenario { about, stack: Some(stack), ..Scenario::default() };
        self.expect(&mut scenario)?;
        Ok(scenario)
    }

    /// Returns the text of such a scenario, with what the source does not have in a comment. `source` says how it was made.
    ///
    /// # Errors
    /// As of [`scenario`](Self::scenario).
    pub fn text(&self, source: &str, calls: Vec<SnapshotCall>) -> Result<String, ImportError> {
        let scenario = self.scenario(calls)?;
        let mut text = format!("// {source}\n");
        for note in self.small_notes() {
            let _ = writeln!(text, "// Not in the source: {note}.");
        }
        Ok(text + &scenario.to_string())
    }

    /// Returns the notes with the addresses of the scenario.
    pub fn small_notes(&self) -> Vec<Note> {
        let Some(first) = self.on.iter().next() else { return self.notes.clone() };
        let placed = self.placed(first);
        self.notes.iter().map(|note| note.at(|address| placed.small(address))).collect()
    }

    /// Returns an address of the process as it is in the scenario (VA).
    pub fn small(&self, address: u64) -> Option<u64> {
        Some(self.placed(self.on.iter().next()?).small(address))
    }

    fn placed(&self, on: Generation) -> PlacedObservation {
        PlacedObservation::new(&self.stack, on, self.bounds, &[])
    }

    /// Checks that the stack can be placed.
    fn check(&self, on: Generation) -> Result<(), ImportError> {
        if self.stack.activations.is_empty() {
            return Err(ImportError::NoFrames);
        }
        if let Some(frame) = self.stack.frames.iter().find(|frame| !frame.kind.exists_in(on)) {
            return Err(ImportError::NoSuchFrames { address: frame.at, kind: frame.kind, on });
        }
        let all = self.stack.activations.iter().map(|it| it.sp);
        let mut all = all.chain(self.stack.frames.iter().map(|it| it.at));
        if let Some(sp) = all.find(|at| *at >= USER_END) {
            return Err(ImportError::Descends { sp });
        }
        self.stack.descent().map_or(Ok(()), |sp| Err(ImportError::Descends { sp }))
    }

    /// Sets the expectations of all calls: runtimes with the same result share one.
    fn expect(&self, scenario: &mut Scenario) -> Result<(), ImportError> {
        let mut expected: Vec<Vec<ExpectedSnapshot>> = Vec::new();
        for generation in self.on.iter() {
            let reports = scenario.run_on(generation).map_err(ImportError::SetUp)?;
            expected.resize_with(reports.len(), Vec::new);
            for (report, expected) in reports.iter().zip(&mut expected) {
                let new = ExpectedSnapshot::of(Generations::of(&[generation]), &report.found);
                let same = |old: &&mut ExpectedSnapshot| {
                    let on = old.on;
                    ExpectedSnapshot { on, ..new.clone() } == **old
                };
                match expected.iter_mut().find(same) {
                    Some(old) => old.on = old.on.with(new.on),
                    None => expected.push(new),
                }
            }
        }
        for (call, expect) in scenario.calls_mut().zip(expected) {
            call.expect = expect;
        }
        Ok(())
    }
}

/// Returns bounds of a stack (VA) that has these frames.
pub(crate) fn bounds_of(stack: &ObservedStack) -> Option<(u64, u64)> {
    let addresses = || {
        let activations = stack.activations.iter().map(|it| it.sp);
        activations.chain(stack.frames.iter().map(|it| it.at))
    };
    let base = addresses().max()?.checked_add(ROOT_ROOM)?.checked_next_multiple_of(ROOT_ROOM)?;
    let limit = base.saturating_sub(STACK_SIZE).min(addresses().min()? & !(ROOT_ROOM - 1));
    Some((limit, base))
}
