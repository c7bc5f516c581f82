//! The callbacks of the runtime's start, before the program's first method.
//!
//! Recorded on .NET Core 3.1.23, .NET 8.0.34, 9.0.23, 10.0.15 and 11.0.0 for Linux, by a profiler that logs from `Initialize` on; assumed on
//! the other runtimes. The first thread is created, then the finalizer's; the first thread loads the core library, creates two
//! domains, the runtime's own and the program's, and loads the program. Until the domains are there, `DoStackSnapshot`
//! returns UNSAFE.

use super::World;
use super::arrangement::Awaited;
use super::step::{ASSEMBLY_LOAD, About, Step};
use clr_runtime::metadata::{APP_DOMAIN, SYSTEM_DOMAIN};
use clr_runtime::profiling::{CallbackKind as Kind, CallbackMode};

/// Returns the steps of the runtime's start on its first thread, given the `ModuleID`s of the core library and of the modules that
/// are loaded after it.
fn start_steps(modules: impl IntoIterator<Item = u64>) -> Vec<Step> {
    let mut modules = modules.into_iter().map(|module| About { module, ..About::default() });
    let load = |about| ASSEMBLY_LOAD.map(|kind| Step::CallbackAbout(kind, about));
    let domain = |domain| {
        [Kind::AppDomainCreationStarted, Kind::AppDomainCreationFinished]
            .map(|kind| Step::CallbackAbout(kind, About { domain, ..About::default() }))
    };
    let mut steps: Vec<_> = modules.next().into_iter().flat_map(load).collect();
    steps.extend([SYSTEM_DOMAIN, APP_DOMAIN].into_iter().flat_map(domain));
    steps.push(Step::Started);
    steps.extend(modules.flat_map(load));
    steps
}

impl World<'_> {
    /// Lets the first thread begin with the start of the runtime, which loads the core library and the program's modules, and the
    /// finalizer's thread with its creation. Without this, worlds begin in a runtime that has started.
    ///
    /// The first thread is the first one that begins with a method. A program without one has no start.
    pub fn begin_with_start(&mut self) {
        let Some(first) = self.first_managed() else { return };
        self.made.is_starting = true;
        let modules = self.runtime.metadata.modules().iter().map(|module| module.id);
        self.runtime.unfinished.borrow_mut().begin(modules);
        self.runtime.change_process(|process| process.started = false);
        let created = [
            Step::Callback(Kind::ThreadCreated),
            Step::CallbackIn(Kind::ThreadAssignedToOSThread, CallbackMode::Cooperative),
        ];
        for executed in self.threads.iter_mut().filter(|executed| executed.is_finalizer) {
            let work = core::mem::take(&mut executed.pending);
            executed.pending.extend(created.into_iter().chain(work));
        }
        // The program's other threads begin after it.
        for index in 0..self.threads.len() {
            let waits = index != first && !self.serves(index);
            if let Some(executed) = self.threads.get_mut(index).filter(|_| waits) {
                executed.pending.push_front(Step::AwaitProgram(Awaited::Runtime));
            }
        }
    }

    /// The same, but the start loads no module besides the core library and the one that the program begins in: a statement does, or
    /// the JIT.
    pub fn begin_with_start_of_program(&mut self) {
        let kept =
            [self.runtime.metadata.modules().last().map(|core| core.id), self.first_module()];
        let all = self.runtime.metadata.modules().iter().map(|module| module.id);
        self.late = all.filter(|module| !kept.contains(&Some(*module))).collect();
        self.begin_with_start();
    }

    /// Returns the steps of the start, if a thread begins with it.
    pub(super) fn start(&self, thread: usize) -> Vec<Step> {
        if !self.made.is_starting || Some(thread) != self.first_managed() {
            return Vec::new();
        }
        // The core library is the last one, and is loaded first.
        let all = self.runtime.metadata.modules().iter().rev().map(|module| module.id);
        let modules: Vec<_> = all.filter(|module| !self.late.contains(module)).collect();
        // The finalizer's thread is created meanwhile.
        [Step::Wait(1)].into_iter().chain(start_steps(modules)).chain([Step::StartEnds]).collect()
    }
}
