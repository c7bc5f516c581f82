//! Programs that go through the runtime, where they stop, and what is called there, at random.
//!
//! [`world_program`] draws a program with its threads, [`world_case`] also how far they go and a call
//! about one of them. All of it can be built; whether a thread gets as far as a case says, execution
//! shows.

mod calls;
mod draw;
mod guards;
mod keep;
mod simpler;

pub use calls::world_call;
pub use draw::world_program;
pub(super) use simpler::{CaseStep, ProgramStep};

use super::choices::Choices;
use clr_codegen::{FunctionId, Program};
use clr_runtime::MethodKind;
use clr_runtime::generation::Generation;
use clr_walker::profiling::SnapshotFlags;
use clr_world::stubs::Hooks;
use clr_world::{Build, BuildError, Start, StopBy, World, WorldError};
use std::collections::BTreeMap;

/// A program with threads and a runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldProgram {
    /// The runtime.
    pub generation: Generation,
    /// The functions. What they need of the runtime is not in it.
    pub program: Program,
    /// Which methods are no ordinary ones.
    pub methods: BTreeMap<FunctionId, MethodKind>,
    /// The threads.
    pub threads: Vec<Start>,
    /// Which hooks the methods call.
    pub hooks: Hooks,
    /// How threads in managed code are stopped.
    pub stop_by: StopBy,
}

/// A thread executes for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The thread, by its index.
    pub thread: usize,
    /// So many steps.
    pub steps: u32,
}

/// A call of `DoStackSnapshot` about a thread of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorldCall {
    /// Who calls.
    pub by: By,
    /// The target, by its index.
    pub target: usize,
    /// `thread` is 0, which means the caller.
    pub unnamed: bool,
    /// `infoFlags`.
    pub flags: SnapshotFlags,
    /// The seed.
    pub seed: Option<WorldSeed>,
    /// SuspendRuntime is in force.
    pub suspended_by_profiler: bool,
    /// The callback, counted from 0, that wants no more.
    pub stop_at: Option<u32>,
}

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The target itself.
    Target,
    /// A thread that the profiler has made.
    Profiler,
    /// Another thread of the world, by its index.
    Thread(usize),
}

/// A seed with the registers of an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorldSeed {
    /// Which one, from the leaf on; beyond the root it starts anew.
    pub row: u32,
    /// ContextFlags.
    pub flags: u32,
}

/// A program that has been executed so far, and a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldCase {
    /// The program.
    pub program: WorldProgram,
    /// How far its threads have gone, one after the other.
    pub slices: Vec<Slice>,
    /// The call.
    pub call: WorldCall,
}

impl WorldProgram {
    /// Makes code of it.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn build(&self) -> Result<Build, BuildError> {
        Build::with_hooks(&self.program, &self.methods, self.generation, self.hooks)
    }

    /// Its world, from what it was built into.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn world<'b>(&self, build: &'b Build) -> Result<World<'b>, BuildError> {
        let mut world = build.world(&self.threads)?;
        world.stop_threads_by(self.stop_by);
        Ok(world)
    }
}

impl WorldCase {
    /// Executes the program as far as the case says.
    ///
    /// # Errors
    /// [`WorldError`], of the generated code.
    pub fn execute(&self, world: &mut World<'_>) -> Result<(), WorldError> {
        for slice in &self.slices {
            for _ in 0..slice.steps {
                world.step(slice.thread)?;
            }
        }
        Ok(())
    }
}

/// A program that has been executed so far, and a call about one of its threads.
///
/// It depends on nothing but the choices, and is the same on all platforms.
pub fn world_case<C: Choices>(choices: &mut C) -> WorldCase {
    let program = world_program(choices);
    let threads = program.threads.len() as u32;
    let mut slices = Vec::new();
    for _ in 0..choices.between(1, 1 + threads) {
        let thread = choices.below(threads) as usize;
        let most = choices.one([60, 200, 600, 2000]);
        slices.push(Slice { thread, steps: choices.between(1, most) });
    }
    let call = world_call(choices, &program.threads);
    WorldCase { program, slices, call }
}
