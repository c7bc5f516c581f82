//! Scenarios: programs, where to stop them, and what a stack walk has to find there.
//!
//! The text form follows. Its reading starts in [`Scenario::parse`]; [`Scenario`]'s `Display` prints
//! the canonical text, and [`format_text`] lays out text that a person wrote. [`Scenario::run`] holds
//! what walks find against what is expected.
//!
#![doc = include_str!("grammar.md")]

mod bless;
mod bless_histories;
mod bless_mixed;
mod bless_walks;
mod by_model;
mod error;
mod execute;
mod expect;
mod format;
mod found;
mod grammar;
mod histories;
mod layout;
mod mixed;
mod of_world;
mod parse;
mod place;
mod placed;
mod places;
mod problem;
mod restage;
mod run;
mod simpler;
mod site;
mod snapshot;
mod stops;
mod suggest;
mod terms;
mod told;
mod walk;

pub use bless::bless;
pub use bless_histories::bless_histories;
pub use bless_mixed::bless_mixed;
pub use bless_walks::bless_walks;
pub use by_model::Modelled;
pub use error::{Position, Problem, ScenarioError, Span};
pub use execute::{RunOnError, Standing};
pub use expect::{Expectation, ExpectedFrame, UnwindErrorKind, WalkEnd};
pub use found::{ContextRules, FoundNested, FoundShot, FoundSnapshot, SnapshotDifference};
pub use histories::{
    Action, ExpectedEnd, ExpectedHistory, ExpectedWait, Exploration, Explored, Exploring,
    HistoryDifference, Method, ProfilerScript, ScriptSeed, ScriptStep, ScriptThread, WaitKind, Who,
};
pub use layout::format_text;
pub use mixed::{
    Compared, EachMixed, ExpectedMixed, ExpectedMixedFrame, ExpectedMixedItem, FoundMixed,
    FoundMixedFrame, FoundMixedItem, MIXED_ROOM, MixedAt, MixedClaim, MixedDifference,
    MixedFrameKind, MixedReport, MixedWalk, ReasonKind, TrueFrame,
};
pub use of_world::stop as world_stop;
pub use placed::{PlacedItem, PlacedStack, PlacedThread, StackNode, SuspensionState, ThreadMode};
pub use places::{
    SnapshotAt, SnapshotPlaces, StopPlaces, explore_places, mixed_walk_places, snapshot_places,
    stop_places,
};
pub use problem::{ProblemKind, SyntaxError};
pub use run::{INSTRUCTION_LIMIT, NotReached, Reached, RunError, StopReport, WalkReport};
pub use simpler::ScenarioStep;
pub use site::SnapshotReport;
pub use snapshot::{
    ExpectedFlags, ExpectedOutcome, ExpectedShot, ExpectedSnapshot, LastCallback, NestedCall,
    Provenance, SEED_FLAGS, SEED_RAX, SEED_SIZE, SeedAddress, SeedSource, SnapshotCall,
    SnapshotCaller, SnapshotSeed, SnapshotThread, Stale,
};
pub use stops::Stops;
pub use terms::Term;
pub use told::{EachSnapshot, ToldSnapshot};
pub use walk::{Difference, FoundEnd, FoundFrame, FoundWalk, Untrue};

use clr_codegen::{FunctionId, Program};
use clr_runtime::MethodKind;
use clr_runtime::profiling::CallbackKind;
use clr_world::stubs::{Hooks, RuntimeFunction};
use std::collections::BTreeMap;

/// A program, its threads, and the stops at which stacks are walked; or a stack placed by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scenario {
    /// What it is for.
    pub about: About,
    /// The program. One without functions if there is a stack.
    pub program: Program,
    /// What kind its methods are, but for ordinary ones.
    pub methods: BTreeMap<FunctionId, MethodKind>,
    /// The hooks that its methods call.
    pub hooks: Hooks,
    /// What executes it, at least one thread, each with a name of its own. None if there is a stack.
    pub threads: Vec<Thread>,
    /// Where to stop, in the order of the text.
    pub stops: Vec<Stop>,
    /// The profiler under which histories are searched.
    pub profiler: Option<ProfilerScript>,
    /// The searches, in the order of the text.
    pub explore: Vec<Exploration>,
    /// The stack placed by hand, in place of a program.
    pub stack: Option<PlacedStack>,
}

/// What a scenario is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// What it shows, in a sentence.
    pub shows: Option<String>,
    /// Words by which it is found.
    pub tags: Vec<String>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its name.
    pub name: String,
    /// The function that it starts in, called from outside.
    pub start: FunctionId,
    /// It is the thread of a server GC, and starts in none of the functions.
    pub gc: bool,
    /// The process ends with it.
    pub exits: bool,
}

impl Thread {
    /// The name of the thread of a scenario that names none.
    pub const DEFAULT_NAME: &'static str = "main";

    /// The thread of a scenario that names none: it starts in the first function.
    #[must_use]
    pub fn main() -> Self {
        Self { name: Self::DEFAULT_NAME.to_owned(), start: FunctionId(0), gc: false, exits: false }
    }
}

/// A place to stop, and what is expected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Index of the thread.
    pub thread: u32,
    /// Where.
    pub at: StopAt,
    /// What walks of the stack have to find.
    pub expect: Vec<Expectation>,
    /// Where other threads stand meanwhile: those of these that come later are run first.
    pub others: Vec<(u32, StopAt)>,
    /// Calls that are made while the thread is stopped here.
    pub snapshots: Vec<SnapshotCall>,
    /// Walks of its whole stack by the profiler's side.
    pub mixed_walks: Vec<MixedWalk>,
}

/// Where a thread stops: in front of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopAt {
    /// When it has executed so many instructions.
    After(u64),
    /// At an instruction of a function.
    Instruction {
        /// The function.
        function: FunctionId,
        /// Which of its instructions, by address; 0 is the first.
        index: u32,
        /// Which time it is about to be executed; 1 is the first.
        visit: u32,
    },
    /// At an instruction of the runtime's code.
    Runtime {
        /// The function.
        function: RuntimeFunction,
        /// Which of its instructions, by address; 0 is the first.
        index: u32,
        /// Which time it is about to be executed; 1 is the first.
        visit: u32,
    },
    /// In a callback of the profiler.
    Callback {
        /// Which.
        kind: CallbackKind,
        /// Which time it is made on the thread; 1 is the first.
        visit: u32,
    },
    /// In a hook of the profiler that its code calls directly: which time; 1 is the first.
    Hook(u32),
    /// Where its program ends.
    End,
}

impl Scenario {
    /// A scenario of a program alone: one thread, which starts in the first function.
    #[must_use]
    pub fn new(program: Program) -> Self {
        Self { program, threads: vec![Thread::main()], ..Self::default() }
    }

    /// The function of that name.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<FunctionId> {
        let index = self.program.functions.iter().position(|function| function.name == name)?;
        Some(FunctionId(index as u32))
    }

    /// The index of the thread of that name.
    #[must_use]
    pub fn thread(&self, name: &str) -> Option<u32> {
        let index = self.threads.iter().position(|thread| thread.name == name)?;
        Some(index as u32)
    }

    /// A call, by its place among those of a stop; of a stack placed by hand if there is no stop.
    #[must_use]
    pub fn call(&self, stop: Option<usize>, snapshot: usize) -> Option<&SnapshotCall> {
        match stop {
            Some(stop) => self.stops.get(stop)?.snapshots.get(snapshot),
            None => self.stack.as_ref()?.snapshots.get(snapshot),
        }
    }

    /// The callback that a call is made in: its own, or the one that its thread has stopped in.
    #[must_use]
    pub fn callback_of(&self, stop: Option<usize>, call: &SnapshotCall) -> Option<CallbackKind> {
        let stopped_in = || match self.stops.get(stop?)?.at {
            StopAt::Callback { kind, .. } if call.by == SnapshotCaller::Own => Some(kind),
            _ => None,
        };
        call.in_callback.or_else(stopped_in)
    }

    /// What a text calls a function of the runtime.
    #[must_use]
    pub fn runtime_function_name(&self, function: RuntimeFunction) -> String {
        match function {
            RuntimeFunction::Shared(shared) => shared.name().to_owned(),
            RuntimeFunction::Stub(stub, target) => {
                let target = self.function_name(target).unwrap_or_default();
                format!("{}{target}", stub.prefix())
            }
        }
    }

    /// The name of a function, if the program has it.
    #[must_use]
    pub fn function_name(&self, function: FunctionId) -> Option<&str> {
        Some(&self.program.functions.get(function.index())?.name)
    }
}

impl core::str::FromStr for Scenario {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests;
