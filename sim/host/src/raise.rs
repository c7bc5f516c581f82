//! The program's execution, with callbacks into the profiler.

use crate::callbacks::Raised;
use crate::inner::Inner;
use crate::journal::Entry;
use crate::process::Process;
use crate::session::{Session, SessionError};
use clr_codegen::FunctionIndex;
use clr_runtime::profiling::CallbackKind as Kind;
use clr_scenario::RunOnError;
use clr_walker::profiling::HResult;
use clr_world::{StepEvent, Waiting};

/// Maximum number of steps of a program.
const STEPS: u64 = 1_000_000;

impl Inner {
    /// Calls the export that a function of the program stands for, if the library is loaded.
    pub(crate) fn call_export(&self, function: FunctionIndex) {
        let call = self.exports.borrow().of(function);
        let Some((call, buffers)) = call else { return };
        self.enter(call.name, || {
            call.make(&buffers);
            HResult::OK
        });
        for mistake in call.mistakes(&buffers) {
            self.shared.find(mistake);
        }
    }
}

impl Session {
    /// Executes the text's program from where it is to its end, and makes the callbacks that the
    /// profiler has asked for. The profiler was loaded by [`initialize`](Self::initialize).
    ///
    /// # Errors
    /// Returns [`SessionError::Run`] if a thread cannot go on, or none can.
    pub fn run(&self) -> Result<(), SessionError> {
        self.run_entering(&|_| ())
    }

    /// The same. `enter` does what functions of the program stand for that the program enters, but calls of exports.
    pub(crate) fn run_entering(&self, enter: &dyn Fn(FunctionIndex)) -> Result<(), SessionError> {
        let inner = self.inner();
        let Some(stage) = inner.stage() else { return Ok(()) };
        let Some(world) = stage.world() else { return Ok(()) };
        if stage.is_new() {
            self.report_first_handles(stage.native());
            // The program begins with the start of the runtime, if somebody hears of it.
            if inner.profiler.borrow().is_some() {
                world.borrow_mut().begin_with_start();
            }
        }
        let threads = world.borrow().thread_count();
        let mut waiting = vec![Waiting::default(); threads];
        let (mut steps, mut others_went_on) = (0, true);
        loop {
            let (mut went_on, mut ended) = (false, 0);
            for thread in 0..threads {
                loop {
                    // The process ends with its main thread: the others have all the turns that they need before.
                    if others_went_on && world.borrow().is_returning(thread) {
                        break;
                    }
                    steps += 1;
                    if steps > STEPS || inner.has_ended() {
                        return self.stuck(thread, steps);
                    }
                    let event = world.borrow_mut().step(thread);
                    let event = event.map_err(|error| RunOnError::World { stop: 0, error })?;
                    let waits = waiting.get_mut(thread).is_some_and(|one| one.is_for_others(event));
                    match event {
                        StepEvent::Stepped => went_on = true,
                        StepEvent::Entered(function) => {
                            went_on = true;
                            enter(function);
                            self.call_export_on(&stage, function, thread);
                            inner.detach_if_asked();
                        }
                        StepEvent::Hook | StepEvent::Callback(_) => {
                            went_on = true;
                            self.raise(&stage, event, thread);
                            inner.detach_if_asked();
                        }
                        StepEvent::Waits if !waits => went_on = true,
                        StepEvent::Waits => {}
                        StepEvent::Ended => ended += 1,
                    }
                    if matches!(event, StepEvent::Waits | StepEvent::Ended) {
                        break;
                    }
                }
            }
            if ended == threads || world.borrow().has_exited() {
                return Ok(());
            }
            let first = core::mem::replace(&mut others_went_on, went_on);
            if !went_on && !first {
                return self.stuck(0, steps);
            }
        }
    }

    /// Lets the process end with the return of its main thread, as a CLR does. Without it the process is shut down when all
    /// threads have ended.
    pub(crate) fn end_with_program(&self) {
        let inner = self.inner();
        if let Some(world) = inner.stage().as_ref().and_then(|stage| stage.world()) {
            world.borrow_mut().end_by(inner.scenario.process_end());
        }
    }

    fn stuck(&self, thread: usize, steps: u64) -> Result<(), SessionError> {
        if self.inner().has_ended() {
            return Ok(());
        }
        Err(RunOnError::NotReached { stop: 0, thread: thread as u32, steps }.into())
    }

    /// Calls the export that a function of the program stands for, whether a profiler is loaded or not.
    fn call_export_on(&self, stage: &Process, function: FunctionIndex, thread: usize) {
        let Some(world) = stage.world() else { return };
        world.borrow_mut().sync();
        let os = world.borrow().os(thread).unwrap_or_default();
        self.inner().acting_as(os, || self.inner().call_export(function));
    }

    /// Makes a callback or calls a hook of the program. The profiler acts as the program's thread.
    fn raise(&self, stage: &Process, event: StepEvent, thread: usize) {
        let inner = self.inner();
        if inner.is_detaching() {
            return;
        }
        let Some(target) = inner.profiler.borrow().clone() else { return };
        let Some(world) = stage.world() else { return };
        let (os, object, arguments) = {
            let mut world = world.borrow_mut();
            world.sync();
            let os = world.os(thread).unwrap_or_default();
            let arguments = world.callback_arguments(thread);
            let own = || world.object(thread).unwrap_or_default();
            let about = if arguments.thread.0 == 0 { own() } else { arguments.thread };
            (os, about, arguments)
        };
        let raised = inner.acting_as(os, || match event {
            StepEvent::Callback(kind) if kind != Kind::EnterLeaveSlow => {
                target.raise(inner, &Raised { kind, thread: object, os, arguments: &arguments })
            }
            _ => {
                inner.call_hook(stage, thread);
                true
            }
        });
        if let StepEvent::Callback(kind) = event
            && !raised
        {
            inner.shared.with(|report| report.not_raised(kind.name()));
            inner.shared.write(&Entry::NotRaised(kind.name()));
        }
        if let StepEvent::Callback(kind) = event {
            inner.end_after(kind);
        }
    }
}
