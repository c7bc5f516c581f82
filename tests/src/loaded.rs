//! Programs that are loaded once and executed several times.

use clr_generate::WorldProgram;
use clr_reference::ProgramFacts;
use clr_world::{Build, BuildError, World, WorldState};

/// A program in memory, whose state before its first instruction comes back: loading it again, and
/// decoding its instructions again, would take longer than most executions.
#[derive(Debug)]
pub struct Loaded<'b> {
    world: World<'b>,
    start: WorldState,
    /// The facts about the program that the model uses.
    facts: ProgramFacts,
}

impl<'b> Loaded<'b> {
    /// Loads a program.
    ///
    /// # Errors
    /// Returns [`BuildError`] if the program cannot be loaded.
    pub fn new(program: &WorldProgram, build: &'b Build) -> Result<Self, BuildError> {
        let mut world = program.world(build)?;
        let start = world.save();
        let facts = ProgramFacts::new(build.expanded(), build.linked());
        Ok(Self { world, start, facts })
    }

    /// Returns the program before its first instruction, and the facts about it.
    ///
    /// # Panics
    /// If the start cannot be restored: nobody else has an earlier save point.
    pub fn from_start(&mut self) -> (&mut World<'b>, &ProgramFacts) {
        assert!(self.world.restore(&self.start), "the first save point stays valid");
        (&mut self.world, &self.facts)
    }
}
