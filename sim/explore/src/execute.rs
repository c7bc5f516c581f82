//! A turn of a thread of the program: execution up to an effect that other threads can observe.

use super::footprint::Footprint;
use super::history::{ThreadIndex, TurnEvent};
use super::kernel::Kernel;
use super::lock::LockName;
use super::run::Run;
use super::verdict::Verdict;
use clr_codegen::FunctionIndex;
use clr_runtime::Outcome;
use clr_runtime::profiling::CallbackKind;
use clr_world::{CommonState, StepEvent, WorldError};

/// Reason why a thread of the program returns control.
pub(super) enum Came {
    Point,
    Callback(CallbackKind),
    Hook,
    /// The thread has entered a function that is an export of the profiler.
    Entered(FunctionIndex),
    /// The thread's exception was not caught.
    Crash,
}

impl Run<'_, '_, '_, '_, '_> {
    /// Executes a thread of the program up to an effect that other threads can observe.
    pub(super) fn execute(&self, thread: ThreadIndex) -> Came {
        let kernel = self.data.kernel;
        let limits = self.data.limits;
        let mut world = kernel.world.borrow_mut();
        let index = thread.index();
        let mut instructions = 0;
        let before = kernel.runtime.process.get();
        let mut now = before;
        // The mode is asked for after each instruction.
        world.remember_mode(index);
        let mode = world.is_cooperative(index);
        let mut serving = world.is_serving(index);
        let mut common = world.common(index);
        // A suspension of the runtime lets a thread stop after each instruction.
        kernel.touch(Footprint::SUSPENSION.read());
        if let Some(starter) = kernel.state.borrow().starter {
            // No thread of the program runs before it has ended.
            kernel.touch(Footprint::thread(starter).read());
        }
        // Ordinary instructions never wait.
        let mut asks = true;
        let came = loop {
            if asks && let Some(wait) = world.waits_for(index) {
                kernel.touch(kernel.decides(wait));
                kernel.executed(thread, instructions);
                kernel.record(thread, TurnEvent::Waits);
                break Came::Point;
            }
            let looks = serving && world.looks_at_others(index);
            let event = world.step(index);
            instructions += 1;
            let was_serving = core::mem::replace(&mut serving, world.is_serving(index));
            let has_ended = matches!(event, Ok(StepEvent::Ended));
            asks = serving || !matches!(event, Ok(StepEvent::Stepped));
            let cooperative = world.is_cooperative(index);
            // Instructions of the program do not change the process.
            debug_assert!(was_serving || serving || now == kernel.runtime.process.get());
            if was_serving || serving {
                now = kernel.runtime.process.get();
                kernel.touch(Footprint::RUNTIME.read());
                let after = world.common(index);
                kernel.touch(changes(&core::mem::replace(&mut common, after), &after));
                // The suspending thread looks at the others, and changes where they continue.
                if looks || !was_serving && world.looked_at_others(index) {
                    kernel.touch(kernel.program() | Footprint::CODE);
                }
            }
            let mut came = match event {
                Ok(StepEvent::Callback(kind)) if self.setup.handler(kind).is_some() => {
                    kernel.touch(Footprint::OBJECTS.read());
                    Some(Came::Callback(kind))
                }
                Ok(StepEvent::Hook) if self.setup.hook.is_some() => Some(Came::Hook),
                Ok(StepEvent::Entered(function)) if self.setup.export.is_some() => {
                    Some(Came::Entered(function))
                }
                Ok(
                    StepEvent::Stepped
                    | StepEvent::Entered(_)
                    | StepEvent::Waits
                    | StepEvent::Callback(_)
                    | StepEvent::Hook,
                ) => None,
                Ok(StepEvent::Ended) => Some(Came::Point),
                Err(error) => {
                    kernel.end(fault(thread, error));
                    Some(Came::Point)
                }
            };
            let changes = (was_serving || serving) && now != before;
            let is_other = cooperative != mode;
            if changes || is_other || was_serving != serving || has_ended {
                kernel.executed(thread, instructions);
                came = came.or(Some(Came::Point));
                instructions = 0;
            }
            if changes {
                kernel.changed(thread, &before, &now);
            }
            if cooperative != mode {
                kernel.record(thread, TurnEvent::Mode { cooperative });
            }
            if has_ended {
                if world.is_unhandled(index) {
                    came = Some(Came::Crash);
                } else {
                    kernel.ended(thread);
                }
            }
            let stoppable = cooperative
                // The suspending thread itself goes on.
                && now.suspension.by().is_some_and(|by| world.os(index) != Some(by));
            let is_point =
                stoppable || limits.every_instruction || instructions >= limits.instructions;
            if let Some(came) = came.or(is_point.then_some(Came::Point)) {
                kernel.executed(thread, instructions);
                break came;
            }
        };
        world.clear_below(index);
        world.sync();
        came
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
    /// Returns the access set of the threads of the program.
    pub(super) fn program(&self) -> Footprint {
        Footprint::threads(self.apps)
    }

    /// Returns the access set of the runtime and the process, with the threads of the program, and without the threads and
    /// objects of the profiler.
    pub(super) fn of_runtime(&self) -> Footprint {
        Footprint::OF_RUNTIME | self.program()
    }

    /// Records that a thread of the program has executed this number of instructions.
    fn executed(&self, thread: ThreadIndex, instructions: u32) {
        if instructions > 0 {
            self.record(thread, TurnEvent::Executed(instructions));
        }
    }

    fn ended(&self, thread: ThreadIndex) {
        if let Some(known) = self.state.borrow_mut().threads.get_mut(thread.index()) {
            known.ended = true;
        }
        self.record(thread, TurnEvent::Ends);
    }

    /// Ends the process with all its threads.
    pub(super) fn all_ended(&self) {
        for thread in &mut self.state.borrow_mut().threads {
            thread.ended = true;
        }
        self.touch(Footprint::ALL);
    }

    /// Records the changes of the process that a step of the world has made.
    fn changed(
        &self,
        thread: ThreadIndex,
        before: &clr_runtime::Process,
        now: &clr_runtime::Process,
    ) {
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
