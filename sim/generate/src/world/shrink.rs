//! Steps towards smaller programs of worlds, earlier stops and plainer calls.

use super::{By, WorldCall, WorldCase, WorldProgram, WorldSeed, WorldTurn, constrain};
use crate::{Measure, Shrink, steps};
use clr_codegen::FunctionIndex;
use clr_runtime::generation::Generation;
use clr_walker::profiling::SnapshotFlags;
use clr_world::stubs::Hooks;
use clr_world::{StopBy, ThreadStart};

/// A step towards a smaller program.
#[derive(Clone, Copy, Debug)]
pub enum ProgramShrink {
    /// Drops a thread.
    Thread(usize),
    /// Makes a method an ordinary one.
    Method(FunctionIndex),
    /// Uses the first generation.
    Generation,
    /// Removes the hooks.
    Hooks,
    /// Stops threads by redirection.
    StopBy,
    /// Makes the functions smaller.
    Functions(steps::Step),
}

/// A step towards a smaller case.
#[derive(Clone, Copy, Debug)]
pub enum CaseStep {
    /// Drops a turn.
    Slice(usize),
    /// Makes a turn half as long, or one step shorter.
    Shorter(usize, bool),
    /// Resets a part of the call to its default.
    Default(usize),
    /// Makes the program smaller.
    Program(ProgramShrink),
}

const DEFAULTS: &[fn(&mut WorldCall)] = &[
    |call| call.seed = None,
    |call| call.stop_at = None,
    |call| call.suspended_by_profiler = false,
    |call| call.unnamed = false,
    |call| call.flags = SnapshotFlags::REGISTER_CONTEXT,
    |call| call.by = By::Profiler,
    |call| call.by = By::Target,
    |call| call.target = 0,
    |call| call.seed = call.seed.map(|seed| WorldSeed { flags: 0x10_000B, ..seed }),
    |call| call.seed = call.seed.map(|seed| WorldSeed { activation: seed.activation / 2, ..seed }),
];

impl Shrink for WorldProgram {
    type Step = ProgramShrink;

    fn steps(&self) -> Vec<ProgramShrink> {
        let mut all: Vec<_> = (1..self.threads.len()).map(ProgramShrink::Thread).collect();
        all.extend(self.program.steps().into_iter().map(ProgramShrink::Functions));
        all.extend(self.methods.keys().copied().map(ProgramShrink::Method));
        all.extend([ProgramShrink::Generation, ProgramShrink::Hooks, ProgramShrink::StopBy]);
        all
    }

    fn take(&self, step: ProgramShrink) -> Option<Self> {
        let mut simpler = self.clone();
        match step {
            ProgramShrink::Thread(index) => {
                simpler.threads.remove(index);
            }
            ProgramShrink::Method(id) => {
                simpler.methods.remove(&id);
            }
            ProgramShrink::Generation => {
                let first = Generation::ALL.iter().find(|one| one.is_unix() == self.is_unix())?;
                simpler.generation = *first;
            }
            ProgramShrink::Hooks => simpler.hooks = Hooks::None,
            ProgramShrink::StopBy => simpler.stop_by = StopBy::Redirection,
            ProgramShrink::Functions(step) => {
                simpler.program = self.program.take(step)?;
                simpler.follow_names(self);
            }
        }
        constrain::repair(&mut simpler);
        let smaller = Measure::of(&simpler.program) <= Measure::of(&self.program);
        let valid = simpler.program.check().is_ok()
            && simpler.program.convention == self.program.convention
            && matches!(simpler.threads.first(), Some(ThreadStart::Managed(_)));
        (smaller && valid && simpler != *self).then_some(simpler)
    }
}

impl WorldProgram {
    const fn is_unix(&self) -> bool {
        self.generation.is_unix()
    }

    /// Updates the function indices after functions have been removed or moved; names do not
    /// change.
    fn follow_names(&mut self, before: &Self) {
        let functions = &self.program.functions;
        let now = |id: FunctionIndex| {
            let name = before.program.functions.get(id.index()).map(|function| &function.name)?;
            let place = functions.iter().position(|function| function.name == *name)?;
            Some(FunctionIndex(place as u32))
        };
        self.methods =
            before.methods.iter().filter_map(|(id, kind)| Some((now(*id)?, *kind))).collect();
        // A thread whose function has been removed begins with the first function.
        let threads = before.threads.iter().filter_map(|start| match start {
            ThreadStart::Managed(id) => Some(ThreadStart::Managed(now(*id).unwrap_or_default())),
            ThreadStart::Native(id) => now(*id).map(ThreadStart::Native),
            ThreadStart::ByProgram(id) => now(*id).map(ThreadStart::ByProgram),
            ThreadStart::OfPool(id) => now(*id).map(ThreadStart::OfPool),
            ThreadStart::ServerGc | ThreadStart::Finalizer | ThreadStart::Tiering => Some(*start),
        });
        self.threads = threads.collect();
    }
}

impl Shrink for WorldCase {
    type Step = CaseStep;

    fn steps(&self) -> Vec<CaseStep> {
        let turns = 0..self.turns.len();
        let mut all: Vec<_> = turns.clone().map(CaseStep::Slice).collect();
        all.extend((0..DEFAULTS.len()).map(CaseStep::Default));
        all.extend(self.program.steps().into_iter().map(CaseStep::Program));
        all.extend(turns.clone().map(|turn| CaseStep::Shorter(turn, true)));
        all.extend(turns.map(|turn| CaseStep::Shorter(turn, false)));
        all
    }

    fn take(&self, step: CaseStep) -> Option<Self> {
        let mut simpler = self.clone();
        match step {
            CaseStep::Slice(index) => {
                simpler.turns.remove(index);
            }
            CaseStep::Shorter(index, half) => {
                let WorldTurn { steps, .. } = simpler.turns.get_mut(index)?;
                *steps = if half { *steps / 2 } else { steps.checked_sub(1)? };
            }
            CaseStep::Default(part) => DEFAULTS.get(part)?(&mut simpler.call),
            CaseStep::Program(step) => {
                simpler.program = self.program.take(step)?;
                let count = simpler.program.threads.len();
                if count < self.program.threads.len() {
                    // The step has the index of the removed thread; later threads move up.
                    let ProgramShrink::Thread(gone) = step else { return None };
                    let moved = |index: usize| if index > gone { index - 1 } else { index };
                    simpler.turns.retain(|turn| turn.thread != gone);
                    simpler.turns.iter_mut().for_each(|turn| turn.thread = moved(turn.thread));
                    if simpler.call.target == gone || simpler.call.by == By::Thread(gone) {
                        return None;
                    }
                    simpler.call.target = moved(simpler.call.target);
                    if let By::Thread(other) = &mut simpler.call.by {
                        *other = moved(*other);
                    }
                }
            }
        }
        (simpler != *self).then_some(simpler)
    }
}
