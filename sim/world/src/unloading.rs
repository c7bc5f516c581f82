//! Unloading of code, the code manager's writer lock, and GCs made by the thread of a server GC.

use super::step::Step;
use super::{Collection, StepEvent, World};
use crate::stubs::{method_id, method_of};
use clr_codegen::FunctionIndex;
use clr_runtime::profiling::{CallbackKind as Kind, CallbackMode};
use clr_unwind::Gpr;
use clr_walker::profiling::FunctionId as MethodId;

impl World<'_> {
    /// Returns the method that the current thread names in rbx.
    fn named(&self) -> Option<FunctionIndex> {
        method_of(self.runtime.memory.borrow().cpu().get(Gpr::Rbx))
    }

    /// Returns true if a thread executes a function, which keeps the function loaded (H-18).
    fn is_executed(&self, function: FunctionIndex) -> bool {
        (0..self.threads.len()).any(|thread| {
            self.activations(thread).iter().any(|activation| activation.function == Some(function))
        })
    }

    /// Returns true if the method that rbx names cannot be unloaded yet.
    fn must_stay(&self) -> bool {
        self.named().is_some_and(|function| self.is_executed(function))
    }

    /// Unloads an assembly up to the point where all other threads are stopped. The order of the
    /// callbacks was observed, except for the Framework, which reports the end when the code is
    /// gone.
    pub(super) fn unload(&self) -> Vec<Step> {
        if self.must_stay() {
            return vec![Step::Return(0)];
        }
        let generation = self.runtime.generation;
        let mut callbacks = Vec::new();
        if generation.tells_of_assembly_unload_start() {
            callbacks.push(Kind::AssemblyUnloadStarted);
        }
        callbacks.push(Kind::ModuleUnloadStarted);
        callbacks.push(Kind::ClassUnloadStarted);
        if generation.tells_of_unloaded_functions() && self.named().is_some() {
            callbacks.push(Kind::FunctionUnloadStarted);
        }
        callbacks.extend([Kind::ClassUnloadFinished, Kind::ModuleUnloadFinished]);
        if generation.is_core() {
            callbacks.push(Kind::AssemblyUnloadFinished);
        }
        let mut steps: Vec<_> = callbacks.into_iter().map(Step::Callback).collect();
        // Modes recorded on 3.1.3, 8.0.34, 9.0.23, 10.0.15 and 11.0.0.
        steps.extend(self.stopping(CallbackMode::Cooperative));
        steps.push(Step::Return(1));
        steps
    }

    /// Returns the steps after the code has been freed: the threads are resumed.
    pub(super) fn unloaded(&self) -> Vec<Step> {
        let mut steps = self.resuming(CallbackMode::Preemptive);
        if !self.runtime.generation.is_core() {
            steps.push(Step::Callback(Kind::AssemblyUnloadFinished));
        }
        steps.push(Step::Return(0));
        steps
    }

    /// Destroys a dynamic method. Its heap contains other methods too, so that no section is
    /// removed.
    pub(super) fn destroy_method(&self) -> Vec<Step> {
        if self.must_stay() {
            return vec![Step::Return(0)];
        }
        let mut steps = vec![Step::Callback(Kind::DynamicMethodUnloaded)];
        steps.extend(self.free_code());
        steps
    }

    /// Frees the code of the method that rbx names.
    pub(super) fn free_code(&self) -> Vec<Step> {
        let free = self.named().map(Step::Free);
        free.into_iter().chain([Step::Return(0)]).collect()
    }

    /// Performs one step of unloading, writing, or a server GC.
    pub(super) fn unloading_step(&mut self, thread: usize, step: Step) -> StepEvent {
        match step {
            Step::Free(function) => {
                self.forget_compilation(method_id(function));
                self.runtime.code.free(MethodId(method_id(function)));
                StepEvent::Stepped
            }
            Step::Write(begins) => self.write(thread, begins),
            Step::AskForGc => {
                let induced = self.threads.get(thread).is_some_and(|executed| executed.induced);
                let wanted = self.ask_for_gc(induced);
                // The thread waits from its next step on: the server GC's thread can go on now.
                self.wait(thread, Step::AwaitGc(wanted));
                StepEvent::Stepped
            }
            Step::AwaitGc(number) if self.gcs_made < number => self.wait(thread, step),
            Step::ServeGc => self.serve_gc(thread),
            Step::MadeGc(number) => {
                self.gcs_made = number;
                StepEvent::Stepped
            }
            _ => StepEvent::Stepped,
        }
    }

    /// Asks the server GC's thread for a GC. Returns the number of GCs after which it is done.
    pub(super) fn ask_for_gc(&mut self, induced: bool) -> u32 {
        // One GC serves all that wait for it.
        if self.gcs_wanted == self.gcs_made {
            self.made.induced = induced;
        }
        self.gcs_wanted += 1;
        self.gcs_wanted
    }

    /// Takes the code manager's writer lock, or releases it.
    fn write(&mut self, thread: usize, begins: bool) -> StepEvent {
        let Some(os) = self.os(thread) else { return StepEvent::Stepped };
        if begins && self.waits_to_write(os).is_some() {
            return self.wait(thread, Step::Write(begins));
        }
        self.runtime.change_process(|process| {
            process.code_manager_writer = begins.then_some(os);
        });
        StepEvent::Stepped
    }

    /// Performs one turn of the server GC's thread: it collects on request, and ends after all
    /// others.
    fn serve_gc(&mut self, thread: usize) -> StepEvent {
        let wanted = self.gcs_wanted;
        if self.gcs_made < wanted {
            let induced = self.made.induced;
            if let Some(executed) = self.threads.get_mut(thread) {
                executed.collection = induced.then_some(Collection::Full);
            }
            let mut steps = self.collection(thread);
            steps.extend([Step::MadeGc(wanted), Step::ServeGc]);
            if let Some(executed) = self.threads.get_mut(thread) {
                executed.induced = induced;
                executed.pending.extend(steps);
            }
            return StepEvent::Stepped;
        }
        let mut others = self.threads.iter().filter(|other| !other.serves_gc);
        if others.all(|other| other.ended) {
            if let Some(executed) = self.threads.get_mut(thread) {
                executed.ended = true;
            }
            return StepEvent::Ended;
        }
        self.wait(thread, Step::ServeGc)
    }
}
