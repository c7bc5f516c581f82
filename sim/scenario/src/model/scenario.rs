//! A scenario: a program with its threads and stops, or a stack placed by hand.

use super::coverage::Demand;
use super::expectation::Expectation;
use super::export::{Buffer, Export};
use super::mixed_walk::MixedWalk;
use super::placed_stack::PlacedStack;
use super::profiler_script::{Exploration, ProfilerScript};
use super::snapshot::{SnapshotCall, SnapshotCaller, SnapshotThread};
use clr_codegen::{FunctionIndex, Program};
use clr_runtime::MethodKind;
use clr_runtime::generation::Generations;
use clr_runtime::metadata::ModuleNames;
use clr_runtime::profiling::CallbackKind;
use clr_world::StopBy;
use clr_world::WaitPlace;
use clr_world::stubs::{Hooks, RuntimeFunction};
use std::collections::{BTreeMap, BTreeSet};

/// A program, its threads, and the stops at which stacks are walked; or a stack placed by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scenario {
    /// Description of the scenario.
    pub about: Description,
    /// Modules with names of their own, and their types.
    pub modules: Vec<ModuleNames>,
    /// The program; without functions if there is a stack.
    pub program: Program,
    /// Kinds of the methods that are not ordinary.
    pub methods: BTreeMap<FunctionIndex, MethodKind>,
    /// The generations that have a function, for those that some lack: there its callers contain its body.
    pub only_on: BTreeMap<FunctionIndex, Generations>,
    /// Functions of `only_on` that the other generations lack together with their calls.
    pub optional: BTreeSet<FunctionIndex>,
    /// The methods that the JIT inlines into a method when it compiles it.
    pub inlines: BTreeMap<FunctionIndex, Vec<FunctionIndex>>,
    /// Functions of unmanaged code that stand for exports of a profiler's library.
    pub exports: BTreeMap<FunctionIndex, Export>,
    /// Functions of unmanaged code that stand for requests to attach the profiler, with their client data.
    pub attaches: BTreeMap<FunctionIndex, String>,
    /// Memory that exports of the library get pointers to, with unique names.
    pub buffers: Vec<Buffer>,
    /// Hooks that the methods call.
    pub hooks: Hooks,
    /// The mechanism that stops threads in managed code, in searches.
    pub stop_by: StopBy,
    /// Threads that execute the program, at least one, with unique names. Empty if there is a
    /// stack.
    pub threads: Vec<ScenarioThread>,
    /// Stops, in the order of the text.
    pub stops: Vec<Stop>,
    /// Profiler under which interleavings are searched.
    pub profiler: Option<ProfilerScript>,
    /// Demands on the coverage of searches and sessions.
    pub coverage: Vec<Demand>,
    /// Searches of interleavings, in the order of the text.
    pub explore: Vec<Exploration>,
    /// Stack placed by hand, instead of a program.
    pub stack: Option<PlacedStack>,
}

/// The description of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Sentence that describes what the scenario shows.
    pub shows: Option<String>,
    /// Words for searching.
    pub tags: Vec<String>,
}

/// A thread of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are properties of its node")]
pub struct ScenarioThread {
    /// Name of the thread.
    pub name: String,
    /// Function that the thread starts in, called from outside.
    pub start: FunctionIndex,
    /// The program starts the thread.
    pub by_program: bool,
    /// The thread is one of the runtime's pool, which the program causes to start.
    pub pool: bool,
    /// The thread is the finalizer's, and starts in none of the functions.
    pub finalizer: bool,
    /// The thread is one of tiered compilation, and starts in none of the functions.
    pub tiering: bool,
    /// The thread is that of a server GC, and starts in none of the functions.
    pub gc: bool,
    /// The process ends with this thread.
    pub exits: bool,
}

impl ScenarioThread {
    /// Name of the only thread of a text without `thread` nodes.
    pub const DEFAULT_NAME: &'static str = "main";

    /// Returns true if the thread starts in a function of the text.
    #[must_use]
    pub const fn starts_in_function(&self) -> bool {
        !self.gc && !self.finalizer && !self.tiering
    }

    /// Creates the only thread of a text without `thread` nodes, which starts in the first
    /// function.
    #[must_use]
    pub fn main() -> Self {
        Self {
            name: Self::DEFAULT_NAME.to_owned(),
            start: FunctionIndex(0),
            by_program: false,
            pool: false,
            finalizer: false,
            tiering: false,
            gc: false,
            exits: false,
        }
    }
}

/// A position to stop at, and the expected results there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Index of the thread.
    pub thread: u32,
    /// Position to stop at.
    pub at: StopAt,
    /// Expected results of bare unwinder walks.
    pub expect: Vec<Expectation>,
    /// Positions of other threads at that time. Their threads are run first, in this order.
    pub others: Vec<(u32, StopAt)>,
    /// Calls that are made while the thread is stopped here.
    pub snapshots: Vec<SnapshotCall>,
    /// Mixed walks of the stopped thread by the profiler's side.
    pub mixed_walks: Vec<MixedWalk>,
}

/// The position at which a thread stops: before an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopAt {
    /// After the thread has executed a number of instructions.
    After(u64),
    /// At an instruction of a function.
    Instruction {
        /// Function of the program.
        function: FunctionIndex,
        /// Index of the instruction by address; 0 is the first.
        index: u32,
        /// Number of the visit; 1 is the first time that the instruction is about to be executed.
        visit: u32,
    },
    /// At an instruction of the runtime's code.
    Runtime {
        /// Function of the runtime.
        function: RuntimeFunction,
        /// Index of the instruction by address; 0 is the first.
        index: u32,
        /// Number of the visit; 1 is the first time that the instruction is about to be executed.
        visit: u32,
    },
    /// In a wait of the thread.
    Wait {
        /// Kind of the wait.
        place: WaitPlace,
        /// Number of the wait among those of its kind on the thread; 1 is the first.
        visit: u32,
    },
    /// In a callback of the profiler.
    Callback {
        /// Kind of the callback.
        kind: CallbackKind,
        /// Number of the call on the thread; 1 is the first.
        visit: u32,
    },
    /// In a profiler hook that the thread's code calls directly, by the number of the call; 1 is
    /// the first.
    Hook(u32),
    /// At the end of the program.
    End,
}

impl Stop {
    /// Returns the index of the thread that a call at the stop walks, as far as the text says it.
    #[must_use]
    pub fn walks(&self, call: &SnapshotCall) -> Option<u32> {
        match (call.thread, call.by) {
            (SnapshotThread::Own, _) | (SnapshotThread::Null, SnapshotCaller::Own) => {
                Some(self.thread)
            }
            (SnapshotThread::Thread(thread), _)
            | (SnapshotThread::Null, SnapshotCaller::Thread(thread)) => Some(thread),
            (SnapshotThread::Null | SnapshotThread::Value(_), _) => None,
        }
    }

    /// Returns the position to which a thread is brought; `None` if it stays where it is.
    #[must_use]
    pub fn place_of(&self, thread: u32) -> Option<StopAt> {
        let other = || self.others.iter().rev().find(|(other, _)| *other == thread);
        if thread == self.thread { Some(self.at) } else { other().map(|(_, at)| *at) }
    }
}

impl Scenario {
    /// Returns the functions whose entry is more than their code: they stand for exports of the profiler's library, or
    /// for requests to attach the profiler.
    pub fn entries(&self) -> impl Iterator<Item = FunctionIndex> {
        self.exports.keys().chain(self.attaches.keys()).copied()
    }

    /// Creates a scenario of a program alone, with one thread that starts in the first function.
    #[must_use]
    pub fn new(program: Program) -> Self {
        Self { program, threads: vec![ScenarioThread::main()], ..Self::default() }
    }

    /// Returns the function with the given name.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<FunctionIndex> {
        let index = self.program.functions.iter().position(|function| function.name == name)?;
        Some(FunctionIndex(index as u32))
    }

    /// Returns the index of the thread with the given name.
    #[must_use]
    pub fn thread(&self, name: &str) -> Option<u32> {
        let index = self.threads.iter().position(|thread| thread.name == name)?;
        Some(index as u32)
    }

    /// Returns a call by its index among those of a stop, or of a stack placed by hand if there is
    /// no stop.
    #[must_use]
    pub fn call(&self, stop: Option<usize>, snapshot: usize) -> Option<&SnapshotCall> {
        match stop {
            Some(stop) => self.stops.get(stop)?.snapshots.get(snapshot),
            None => self.stack.as_ref()?.snapshots.get(snapshot),
        }
    }

    /// Returns the callback that a call is made in: its own, or the one that the calling thread has
    /// stopped in.
    #[must_use]
    pub fn callback_of(&self, stop: Option<usize>, call: &SnapshotCall) -> Option<CallbackKind> {
        let stopped_in = || {
            let stop = self.stops.get(stop?)?;
            let at = match call.by {
                SnapshotCaller::Own => Some(stop.at),
                SnapshotCaller::Thread(caller) => stop.place_of(caller),
                SnapshotCaller::NativeWalker | SnapshotCaller::ManagedWalker => None,
            };
            match at? {
                StopAt::Callback { kind, .. } => Some(kind),
                _ => None,
            }
        };
        call.in_callback.or_else(stopped_in)
    }

    /// Returns the name of a runtime function in a text.
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

    /// Returns the name of a function, if the program has it.
    #[must_use]
    pub fn function_name(&self, function: FunctionIndex) -> Option<&str> {
        Some(&self.program.functions.get(function.index())?.name)
    }
}
