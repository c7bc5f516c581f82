//! A turn of a thread of the program: execution up to an effect that other threads can observe.

use super::ending::Limits;
use super::footprint::Footprint;
use super::history::TurnEvent;
use super::ids::{LockName, ThreadIndex};
use super::kernel::Kernel;
use super::setup::Setup;
use super::verdict::Verdict;
use clr_codegen::FunctionIndex;
use clr_runtime::profiling::CallbackKind;
use clr_runtime::{Outcome, Process};
use clr_world::{CommonState, StepEvent, World, WorldError};
use core::cell::RefMut;

/// Reason why a turn of a thread of the program ends.
pub(super) enum TurnOutcome {
    /// Other threads can observe what it has done, or it waits.
    Point,
    Callback(CallbackKind),
    Hook,
    /// The thread has entered a function that is an export of the profiler.
    Entered(FunctionIndex),
    /// The thread's exception was not caught.
    Crash,
}

/// A turn of a thread of the program, in execution.
pub(super) struct Executor<'x, 'b> {
    kernel: &'x Kernel<'b>,
    world: RefMut<'x, World<'b>>,
    limits: Limits,
    thread: ThreadIndex,
    /// Number of instructions that are not recorded yet.
    instructions: u32,
    /// The process before the turn, and as it is now.
    before: Process,
    now: Process,
    /// The present state of all that a service can change for other threads.
    common: CommonState,
    /// The thread executes a service of the runtime.
    serving: bool,
    /// The mode at the beginning, and as it is now.
    was_cooperative: bool,
    cooperative: bool,
}

impl<'x, 'b> Executor<'x, 'b> {
    /// Begins a turn of a thread.
    pub(super) fn new(kernel: &'x Kernel<'b>, limits: Limits, thread: ThreadIndex) -> Self {
        let mut world = kernel.world.borrow_mut();
        let index = thread.index();
        let before = kernel.runtime.process.get();
        // The mode is asked for after each instruction.
        world.remember_mode(index);
        let cooperative = world.is_cooperative(index);
        let (serving, common) = (world.is_serving(index), world.common(index));
        // A suspension of the runtime lets a thread stop after each instruction.
        kernel.touch(Footprint::SUSPENSION.read());
        if let Some(starter) = kernel.state.borrow().starter {
            // No thread of the program runs before it has ended.
            kernel.touch(Footprint::thread(starter).read());
        }
        let (now, instructions, was_cooperative) = (before, 0, cooperative);
        Self {
            kernel,
            world,
            limits,
            thread,
            instructions,
            before,
            now,
            common,
            serving,
            was_cooperative,
            cooperative,
        }
    }

    /// Executes the thread up to an effect that other threads can observe.
    pub(super) fn run(mut self, setup: &Setup<'_>) -> TurnOutcome {
        let outcome = self.turn(setup);
        self.world.clear_below(self.thread.index());
        self.world.sync();
        outcome
    }

    fn turn(&mut self, setup: &Setup<'_>) -> TurnOutcome {
        let mut may_wait = true;
        loop {
            if may_wait && self.waits() {
                return TurnOutcome::Point;
            }
            let was_serving = self.serving;
            let event = self.step();
            // Ordinary instructions never wait.
            may_wait = self.serving || !matches!(event, Ok(StepEvent::Stepped));
            let has_ended = matches!(event, Ok(StepEvent::Ended));
            let mut outcome = self.outcome(event, setup);
            if self.report_changes(was_serving, has_ended) {
                outcome = outcome.or(Some(TurnOutcome::Point));
            }
            if has_ended && self.has_crashed() {
                outcome = Some(TurnOutcome::Crash);
            }
            if let Some(outcome) = outcome.or_else(|| self.is_point().then_some(TurnOutcome::Point))
            {
                self.record_instructions();
                return outcome;
            }
        }
    }

    /// Returns true if the thread has to wait.
    fn waits(&mut self) -> bool {
        let Some(wait) = self.world.waits_for(self.thread.index()) else { return false };
        self.kernel.touch(self.kernel.decides(wait));
        self.record_instructions();
        self.kernel.record(self.thread, TurnEvent::Waits);
        true
    }

    /// Executes an instruction, and notes what it accesses.
    fn step(&mut self) -> Result<StepEvent, WorldError> {
        let (index, was_serving) = (self.thread.index(), self.serving);
        let looks = was_serving && self.world.looks_at_others(index);
        let event = self.world.step(index);
        self.instructions += 1;
        self.serving = self.world.is_serving(index);
        self.cooperative = self.world.is_cooperative(index);
        if was_serving || self.serving {
            self.now = self.kernel.runtime.process.get();
            self.kernel.touch(Footprint::RUNTIME.read());
            let after = self.world.common(index);
            self.kernel.touch(changes(&core::mem::replace(&mut self.common, after), &after));
            // The suspending thread looks at the others, and changes where they continue.
            if looks || !was_serving && self.world.looked_at_others(index) {
                self.kernel.touch(self.kernel.program() | Footprint::CODE);
            }
        }
        // Instructions of the program do not change the process.
        debug_assert!(self.now == self.kernel.runtime.process.get());
        event
    }

    /// Returns the outcome if the profiler handles the event, or the thread cannot go on.
    fn outcome(
        &self,
        event: Result<StepEvent, WorldError>,
        setup: &Setup<'_>,
    ) -> Option<TurnOutcome> {
        match event {
            Ok(StepEvent::Callback(kind)) if setup.handler(kind).is_some() => {
                self.kernel.touch(Footprint::OBJECTS.read());
                Some(TurnOutcome::Callback(kind))
            }
            Ok(StepEvent::Hook) if setup.hook.is_some() => Some(TurnOutcome::Hook),
            Ok(StepEvent::Entered(function)) if setup.export.is_some() => {
                Some(TurnOutcome::Entered(function))
            }
            Ok(
                StepEvent::Stepped
                | StepEvent::Entered(_)
                | StepEvent::Waits
                | StepEvent::Callback(_)
                | StepEvent::Hook,
            ) => None,
            Ok(StepEvent::Ended) => Some(TurnOutcome::Point),
            Err(error) => {
                self.kernel.end(fault(self.thread, error));
                Some(TurnOutcome::Point)
            }
        }
    }

    /// Records what the last instruction has changed for other threads. Returns true if it has changed something.
    fn report_changes(&mut self, was_serving: bool, has_ended: bool) -> bool {
        let changes = (was_serving || self.serving) && self.now != self.before;
        let switched = self.cooperative != self.was_cooperative;
        let is_seen = changes || switched || was_serving != self.serving || has_ended;
        if is_seen {
            self.record_instructions();
        }
        if changes {
            self.kernel.changed(self.thread, &self.before, &self.now);
        }
        if switched {
            let cooperative = self.cooperative;
            self.kernel.record(self.thread, TurnEvent::Mode { cooperative });
        }
        is_seen
    }

    /// Ends the thread, unless its exception was not caught: then returns true.
    fn has_crashed(&self) -> bool {
        let crashes = self.world.is_unhandled(self.thread.index());
        if !crashes {
            self.kernel.ended(self.thread);
        }
        crashes
    }

    /// Returns true if other threads may have the next turn.
    fn is_point(&self) -> bool {
        let stoppable = self.cooperative
            // The suspending thread itself goes on.
            && self.now.suspension.by().is_some_and(|by| self.world.os(self.thread.index()) != Some(by));
        let Limits { every_instruction, instructions, .. } = self.limits;
        let is_visible = stoppable || self.instructions >= instructions;
        if every_instruction && !is_visible {
            self.kernel.turn.ends_within();
        }
        is_visible || every_instruction
    }

    fn record_instructions(&mut self) {
        let instructions = core::mem::take(&mut self.instructions);
        if instructions > 0 {
            self.kernel.record(self.thread, TurnEvent::Executed(instructions));
        }
    }
}

/// Returns what a service has changed for other threads.
fn changes(before: &CommonState, after: &CommonState) -> Footprint {
    let mut changed = Footprint::default();
    for (has_changed, what) in [
        (before.runtime != after.runtime, Footprint::RUNTIME),
        (before.listed != after.listed, Footprint::THREADS),
        (before.made != after.made, Footprint::OBJECTS),
    ] {
        if has_changed {
            changed |= what;
        }
    }
    changed
}

fn fault(by: ThreadIndex, error: WorldError) -> Verdict {
    match error {
        WorldError::Unloaded(_) => Verdict::UnloadedCode { by },
        WorldError::Fault(clr_machine::StopReason::Fault { .. }) => {
            let at = 0;
            Verdict::ProcessKilled { by, outcome: Outcome::AccessViolation { at } }
        }
        other => Verdict::Failed { by, words: other.to_string() },
    }
}

impl Kernel<'_> {
    fn ended(&self, thread: ThreadIndex) {
        if let Some(known) = self.state.borrow_mut().threads.get_mut(thread.index()) {
            known.ended = true;
        }
        self.record(thread, TurnEvent::Ends);
    }

    /// Records the changes of the process that a step of the world has made.
    fn changed(&self, thread: ThreadIndex, before: &Process, now: &Process) {
        for lock in clr_runtime::Lock::ALL {
            let (was, is) = (before.owner(lock), now.owner(lock));
            if was != is {
                let name = LockName::Runtime(lock);
                self.touch(Footprint::lock(name));
                if lock == clr_runtime::Lock::CodeManager {
                    self.touch(Footprint::CODE | Footprint::READERS.read());
                }
                let event = if is.is_some() {
                    TurnEvent::Acquired(name)
                } else {
                    TurnEvent::Released(name)
                };
                self.record(thread, event);
            }
        }
        if before.suspension != now.suspension {
            self.touch(Footprint::SUSPENSION);
        }
    }
}
