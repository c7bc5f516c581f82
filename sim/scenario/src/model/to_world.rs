//! Texts as the inputs that generators make.

use crate::Scenario;
use clr_generate::{WorldProgram, repaired_world};
use clr_runtime::generation::Generation;

impl Scenario {
    /// Returns one of the runtimes that a text is about: the last one of its first expectation.
    /// Returns `None` if it has no expectation for a runtime.
    #[must_use]
    pub fn expected_generation(&self) -> Option<Generation> {
        let snapshots = self.snapshots().flat_map(|at| &at.call.expect).map(|one| one.on);
        let walks = self.mixed_walks().flat_map(|at| &at.says.expect).map(|one| one.on);
        let searches = self.explore.iter().flat_map(|one| &one.expect).map(|one| one.on);
        snapshots.chain(walks).chain(searches).find_map(|on| on.iter().last())
    }

    /// Converts a text of a program to a program with threads on one generation, without what
    /// generated ones never have. Returns `None` if it is a stack, or if nothing valid is left.
    #[must_use]
    pub fn world_program(&self, generation: Generation) -> Option<WorldProgram> {
        if self.stack.is_some() {
            return None;
        }
        repaired_world(WorldProgram {
            generation,
            program: self.program_on(generation).into_owned(),
            methods: self.methods.clone(),
            threads: self.starts(),
            hooks: self.hooks,
            stop_by: self.stop_by,
        })
    }
}
