//! Random programs that go through the runtime, with the state they are executed to, and a call
//! there.
//!
//! [`world_program`] draws a program with its threads, [`world_case`] also the turns of the threads
//! and a call about one of them. Every drawn program can be built; only execution shows whether a
//! thread gets as far as the case describes.

mod calls;
pub(super) mod constrain;
mod generate;
mod guards;
mod shrink;

pub use calls::world_call;
pub use generate::world_program;

use super::choices::Choices;
use clr_codegen::{FunctionIndex, Program};
use clr_runtime::MethodKind;
use clr_runtime::generation::Generation;
use clr_walker::profiling::SnapshotFlags;
use clr_world::stubs::Hooks;
use clr_world::{Build, BuildError, StopBy, ThreadStart, World, WorldError};
use std::collections::BTreeMap;

/// A program with threads and a runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldProgram {
    /// Generation of the runtime.
    pub generation: Generation,
    /// Functions of the program, without the runtime's code.
    pub program: Program,
    /// Kinds of the methods that are not ordinary.
    pub methods: BTreeMap<FunctionIndex, MethodKind>,
    /// Threads of the program.
    pub threads: Vec<ThreadStart>,
    /// Hooks that the methods call.
    pub hooks: Hooks,
    /// Mechanism that stops threads in managed code.
    pub stop_by: StopBy,
}

/// A turn: a thread executes a number of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorldTurn {
    /// Index of the thread.
    pub thread: usize,
    /// Number of steps.
    pub steps: u32,
}

/// A call of `DoStackSnapshot` about a thread of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorldCall {
    /// The calling thread.
    pub by: By,
    /// Index of the target thread.
    pub target: usize,
    /// `thread` is 0, which stands for the caller.
    pub unnamed: bool,
    /// `infoFlags`.
    pub flags: SnapshotFlags,
    /// The seed.
    pub seed: Option<WorldSeed>,
    /// SuspendRuntime is in force.
    pub suspended_by_profiler: bool,
    /// Index of the callback that stops the walk, counted from 0.
    pub stop_at: Option<u32>,
}

/// The calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The target itself.
    Target,
    /// A thread that the profiler has created.
    Profiler,
    /// Another thread of the world, by its index.
    Thread(usize),
}

/// A seed with the registers of an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorldSeed {
    /// Index of the activation, from the leaf; counting wraps around at the root.
    pub activation: u32,
    /// ContextFlags.
    pub flags: u32,
}

/// A program, the state that it is executed to, and a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldCase {
    /// The program.
    pub program: WorldProgram,
    /// Turns of the threads, in order.
    pub turns: Vec<WorldTurn>,
    /// The call.
    pub call: WorldCall,
}

impl WorldProgram {
    /// Builds the program.
    ///
    /// # Errors
    /// Returns [`BuildError`] if the program cannot be built.
    pub fn build(&self) -> Result<Build, BuildError> {
        Build::with_hooks(&self.program, &self.methods, self.generation, self.hooks)
    }

    /// Creates the world of the program from its build.
    ///
    /// # Errors
    /// Returns [`BuildError`] if the world cannot be created.
    pub fn world<'b>(&self, build: &'b Build) -> Result<World<'b>, BuildError> {
        let mut world = build.world(&self.threads)?;
        world.stop_threads_by(self.stop_by);
        Ok(world)
    }
}

impl WorldCase {
    /// Executes all turns of the case.
    ///
    /// # Errors
    /// Returns [`WorldError`] if the generated code cannot go on.
    pub fn execute(&self, world: &mut World<'_>) -> Result<(), WorldError> {
        for turn in &self.turns {
            for _ in 0..turn.steps {
                world.step(turn.thread)?;
            }
        }
        Ok(())
    }
}

/// Draws a program, the state that it is executed to, and a call about one of its threads.
///
/// The case depends only on the choices, and is the same on all platforms.
pub fn world_case<C: Choices>(choices: &mut C) -> WorldCase {
    let program = world_program(choices);
    let threads = program.threads.len() as u32;
    let mut turns = Vec::new();
    for _ in 0..choices.between(1, 1 + threads) {
        let thread = choices.below(threads) as usize;
        let most = choices.one([60, 200, 600, 2000]);
        turns.push(WorldTurn { thread, steps: choices.between(1, most) });
    }
    let call = world_call(choices, &program.threads);
    WorldCase { program, turns, call }
}
