//! The callbacks of the runtime's start, before the program's first method.
//!
//! Recorded on .NET Core 3.1.23, .NET 8.0.34, 9.0.23, 10.0.15 and 11.0.0 for Linux, by a profiler that logs from `Initialize` on; assumed on
//! the other runtimes. The first thread is created, then the finalizer's; the first thread loads the core library, creates two
//! domains, the runtime's own and the program's, and loads the program. Until the domains are there, `DoStackSnapshot`
//! returns UNSAFE.

use super::World;
use super::step::{About, Step};
use crate::stubs::method_id;
use clr_runtime::metadata::{APP_DOMAIN, SYSTEM_DOMAIN};
use clr_runtime::profiling::{CallbackKind as Kind, CallbackMode};
use clr_walker::profiling::FunctionId;

/// The subject of a callback of the runtime's start, by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartSubject {
    /// A domain, by `AppDomainID`.
    Domain(u64),
    /// A module and its assembly, by `ModuleID`.
    Module(u64),
}

/// A part of the runtime's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartStep {
    /// A callback.
    Callback(Kind, StartSubject),
    /// The runtime counts as started.
    Started,
}

/// The callbacks about the load of an assembly of one module.
pub(super) const ASSEMBLY_LOAD: [Kind; 5] = [
    Kind::AssemblyLoadStarted,
    Kind::ModuleLoadStarted,
    Kind::ModuleLoadFinished,
    Kind::ModuleAttachedToAssembly,
    Kind::AssemblyLoadFinished,
];

/// Returns the parts of the runtime's start on its first thread, given the `ModuleID`s of the core library and of the modules that
/// are loaded after it.
pub fn start_steps(modules: impl IntoIterator<Item = u64>) -> Vec<StartStep> {
    let mut modules = modules.into_iter().map(StartSubject::Module);
    let load = |module| ASSEMBLY_LOAD.map(|kind| StartStep::Callback(kind, module));
    let domain = |id| {
        [Kind::AppDomainCreationStarted, Kind::AppDomainCreationFinished]
            .map(|kind| StartStep::Callback(kind, StartSubject::Domain(id)))
    };
    let mut steps: Vec<_> = modules.next().into_iter().flat_map(load).collect();
    steps.extend([SYSTEM_DOMAIN, APP_DOMAIN].into_iter().flat_map(domain));
    steps.push(StartStep::Started);
    steps.extend(modules.flat_map(load));
    steps
}

impl World<'_> {
    /// Lets the first thread begin with the start of the runtime, which loads the core library and the program, and the finalizer's
    /// thread with its creation. Without this, worlds begin in a runtime that has started.
    pub fn begin_with_start(&mut self) {
        self.made.starts = true;
        self.runtime.change_process(|process| process.started = false);
        let created = [
            Step::Callback(Kind::ThreadCreated),
            Step::CallbackIn(Kind::ThreadAssignedToOSThread, CallbackMode::Cooperative),
        ];
        for executed in self.threads.iter_mut().filter(|executed| executed.is_finalizer) {
            let work = core::mem::take(&mut executed.pending);
            executed.pending.extend(created.into_iter().chain(work));
        }
    }

    /// Returns the steps of the start, if a thread begins with it.
    pub(super) fn start(&mut self, thread: usize) -> Vec<Step> {
        if thread != 0 || !core::mem::take(&mut self.made.starts) {
            return Vec::new();
        }
        let program = self.threads.first().and_then(|first| {
            let placed = self.expanded.placed.get(first.start.index())?;
            Some(self.module_of(FunctionId(method_id(*placed)))).filter(|module| *module != 0)
        });
        let core_library = self.runtime.metadata.modules().last().map(|module| module.id);
        let steps = start_steps(core_library.into_iter().chain(program));
        let step = |step| match step {
            StartStep::Callback(kind, StartSubject::Module(module)) => {
                Step::CallbackAbout(kind, About { module, ..About::default() })
            }
            StartStep::Callback(kind, StartSubject::Domain(_)) => Step::Callback(kind),
            StartStep::Started => Step::Started,
        };
        // The finalizer's thread is created meanwhile.
        [Step::Wait(1)].into_iter().chain(steps.into_iter().map(step)).collect()
    }
}
