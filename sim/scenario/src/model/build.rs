//! The program of a scenario, built for a generation, with its threads.

use super::scenario::{Scenario, ScenarioThread, StopAt};
use clr_codegen::{CodeKind, FunctionIndex, LinkedProgram, Program};
use clr_runtime::MethodKind;
use clr_runtime::generation::{Generation, Generations};
use clr_world::stubs::{Expanded, Hooks, with_refusable};
use clr_world::{Build, BuildError, ProcessEnd, ThreadStart, World};
use std::borrow::Cow;
use std::collections::BTreeSet;

impl Scenario {
    /// Builds the program for a generation.
    ///
    /// # Errors
    /// Returns [`BuildError`] if the program cannot be linked.
    pub fn build_on(&self, generation: Generation) -> Result<Build, BuildError> {
        self.build_with(generation, self.hooks)
    }

    /// Links the program with the runtime's code and these hooks.
    pub(crate) fn build_with(
        &self,
        generation: Generation,
        hooks: Hooks,
    ) -> Result<Build, BuildError> {
        let program = with_refusable(self.program_on(generation), &self.inlines);
        let build = Build::with_hooks(&program, &self.methods, generation, hooks)?;
        let build = build.with_modules(&self.modules).inlining(&self.inlines);
        let entry_point = self.methods.iter().find(|(_, kind)| **kind == MethodKind::EntryPoint);
        Ok(match entry_point {
            Some((function, _)) => build.beginning_with(*function),
            None => build,
        })
    }

    /// Returns the program as a generation has it: functions that it lacks are part of their callers.
    pub(crate) fn program_on(&self, generation: Generation) -> Cow<'_, Program> {
        let lacks = |(_, on): &(&FunctionIndex, &Generations)| !on.contains(generation);
        let lacking: BTreeSet<_> = self.only_on.iter().filter(lacks).map(|(id, _)| *id).collect();
        if lacking.is_empty() {
            return Cow::Borrowed(&self.program);
        }
        let mut program = self.program.clone();
        for optional in self.optional.intersection(&lacking) {
            if let Some(function) = program.functions.get_mut(optional.index()) {
                function.body.clear();
            }
        }
        Cow::Owned(program.with_inlined(&lacking))
    }

    /// Creates a world of the text's threads, each before its first instruction.
    ///
    /// # Errors
    /// Returns [`BuildError`] if the code cannot be loaded.
    pub fn world<'b>(&self, build: &'b Build) -> Result<World<'b>, BuildError> {
        let mut world = build.world(&self.starts())?;
        world.report_entries(self.entries());
        if let Some(thread) = self.exits_with() {
            world.end_by(ProcessEnd::Exit(thread));
        }
        Ok(world)
    }

    /// Returns the start of each thread of the program.
    pub(crate) fn starts(&self) -> Vec<ThreadStart> {
        let start = |thread: &ScenarioThread| {
            let function = self.program.functions.get(thread.start.index());
            match function.map(|function| function.kind) {
                _ if thread.gc => ThreadStart::ServerGc,
                _ if thread.finalizer => ThreadStart::Finalizer,
                _ if thread.tiering => ThreadStart::Tiering,
                _ if thread.pool => ThreadStart::OfPool(thread.start),
                _ if thread.by_program => ThreadStart::ByProgram(thread.start),
                Some(CodeKind::Native) => ThreadStart::Native(thread.start),
                _ => ThreadStart::Managed(thread.start),
            }
        };
        self.threads.iter().map(start).collect()
    }

    /// Returns the end of the text's process: with the thread that `exits`, or else with the return of the
    /// first thread that starts in a managed function, and of the other threads of the program.
    #[must_use]
    pub fn process_end(&self) -> ProcessEnd {
        let is_managed = |start: &ThreadStart| matches!(start, ThreadStart::Managed(_));
        let first = || self.starts().iter().position(is_managed).unwrap_or_default();
        self.exits_with().map_or_else(|| ProcessEnd::Return(first()), ProcessEnd::Exit)
    }

    /// Returns the thread with which the process ends, if there is one.
    pub(crate) fn exits_with(&self) -> Option<usize> {
        self.threads.iter().position(|thread| thread.exits)
    }
}

/// Returns the address of a position at an instruction (VA), if the generation has the function.
///
/// # Errors
/// Returns the number of the function's instructions, if it has fewer.
pub(crate) fn place_of(
    at: StopAt,
    expanded: &Expanded,
    linked: &LinkedProgram,
) -> Result<Option<u64>, u32> {
    let (function, index) = match at {
        StopAt::Instruction { function, index, .. } => {
            (expanded.placed.get(function.index()).copied(), index)
        }
        StopAt::Runtime { function, index, .. } => (expanded.find(function), index),
        StopAt::After(_)
        | StopAt::Wait { .. }
        | StopAt::Callback { .. }
        | StopAt::Hook(_)
        | StopAt::End => (None, 0),
    };
    let Some(function) = function else { return Ok(None) };
    let own = || linked.instructions.iter().filter(|placed| placed.function == Some(function));
    let address = linked.instruction_of(function, index);
    address.map(Some).ok_or_else(|| own().count() as u32)
}
