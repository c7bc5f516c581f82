//! Code that goes away, who writes to the code manager's tables meanwhile, and collections that one
//! thread makes for all.

use super::services::Step;
use super::{Event, World};
use crate::stubs::{method_id, method_of};
use clr_codegen::FunctionId;
use clr_runtime::profiling::CallbackKind as Kind;
use clr_walker::profiling::FunctionId as MethodId;
use clr_walker::registers::Gpr;

impl World<'_> {
    /// The method that the current thread names in rbx.
    fn named(&self) -> Option<FunctionId> {
        method_of(self.runtime.memory.borrow().cpu().get(Gpr::Rbx))
    }

    /// Whether a thread executes a function: that keeps it loaded (H-18).
    fn is_executed(&self, function: FunctionId) -> bool {
        (0..self.threads.len()).any(|thread| {
            self.activations(thread).iter().any(|activation| activation.function == Some(function))
        })
    }

    /// Whether the method that rbx names cannot go yet.
    fn must_stay(&self) -> bool {
        self.named().is_some_and(|function| self.is_executed(function))
    }

    /// Unloads an assembly up to the point where all other threads are stopped. What is told in which
    /// order was observed, but for the Framework, which tells of the end when the code is gone.
    pub(super) fn unload(&self) -> Vec<Step> {
        if self.must_stay() {
            return vec![Step::Return(0)];
        }
        let generation = self.runtime.generation;
        let mut told = Vec::new();
        if generation.tells_of_assembly_unload_start() {
            told.push(Kind::AssemblyUnloadStarted);
        }
        told.push(Kind::ModuleUnloadStarted);
        told.push(Kind::ClassUnloadStarted);
        if generation.tells_of_unloaded_functions() && self.named().is_some() {
            told.push(Kind::FunctionUnloadStarted);
        }
        told.extend([Kind::ClassUnloadFinished, Kind::ModuleUnloadFinished]);
        if generation.is_core() {
            told.push(Kind::AssemblyUnloadFinished);
        }
        let mut steps: Vec<_> = told.into_iter().map(Step::Callback).collect();
        steps.extend(self.stopping());
        steps.push(Step::Return(1));
        steps
    }

    /// The rest of it.
    pub(super) fn unloaded(&self) -> Vec<Step> {
        let mut steps = self.resuming();
        if !self.runtime.generation.is_core() {
            steps.push(Step::Callback(Kind::AssemblyUnloadFinished));
        }
        steps.push(Step::Return(0));
        steps
    }

    /// Destroys a dynamic method: its heap has others too, so that no section goes.
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

    /// Does a part of what is said here.
    pub(super) fn unloading_step(&mut self, thread: usize, step: Step) -> Event {
        match step {
            Step::Free(function) => {
                self.runtime.code.free(MethodId(method_id(function)));
                Event::Stepped
            }
            Step::Write(begins) => self.write(thread, begins),
            Step::AskForGc => {
                self.gcs_wanted += 1;
                // It waits from its next step on: the server GC's thread can go on now.
                self.wait(thread, Step::AwaitGc(self.gcs_wanted));
                Event::Stepped
            }
            Step::AwaitGc(number) if self.gcs_made < number => self.wait(thread, step),
            Step::ServeGc => self.serve_gc(thread),
            Step::MadeGc(number) => {
                self.gcs_made = number;
                Event::Stepped
            }
            _ => Event::Stepped,
        }
    }

    /// Takes the code manager's writer lock, or gives it back.
    fn write(&mut self, thread: usize, begins: bool) -> Event {
        let Some(os) = self.os(thread) else { return Event::Stepped };
        if begins && self.waits_to_write(os).is_some() {
            return self.wait(thread, Step::Write(begins));
        }
        self.runtime.change_process(|process| {
            process.code_manager_writer = begins.then_some(os);
        });
        Event::Stepped
    }

    /// What the server GC's thread does whenever it has nothing else to do.
    fn serve_gc(&mut self, thread: usize) -> Event {
        let wanted = self.gcs_wanted;
        if self.gcs_made < wanted {
            let mut steps = self.collection();
            steps.extend([Step::MadeGc(wanted), Step::ServeGc]);
            if let Some(executed) = self.threads.get_mut(thread) {
                executed.pending.extend(steps);
            }
            return Event::Stepped;
        }
        let mut others = self.threads.iter().filter(|other| !other.serves_gc);
        if others.all(|other| other.ended) {
            if let Some(executed) = self.threads.get_mut(thread) {
                executed.ended = true;
            }
            return Event::Ended;
        }
        self.wait(thread, Step::ServeGc)
    }
}
