//! The state of a world that all its threads have in common, apart from their own.

use super::World;
use super::step::Step;
use clr_codegen::Service;
use clr_runtime::lock::Locks;
use clr_runtime::{Process, Suspension, ThreadLife};
use clr_walker::profiling::ThreadId;

/// State of the runtime that its services change for all threads. Owners of locks, the suspension of the runtime, and code are no
/// part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonState {
    /// The runtime's data about the process.
    pub runtime: CommonRuntime,
    /// The entry of the served thread in the list of threads.
    pub listed: Listed,
    /// Numbers of objects and handles that were made, of handles that are left, and of what was arranged.
    pub made: [u64; 4],
}

/// The runtime's data about the process, and the numbers of its GCs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommonRuntime {
    process: Process,
    gcs: [u32; 3],
    induced: bool,
    /// Number of changes of what is being loaded and compiled.
    unfinished: u64,
}

/// The entry of a thread in the list of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    object: Option<ThreadId>,
    life: ThreadLife,
    reported_dead: bool,
    id_is_over: bool,
}

impl World<'_> {
    /// Returns the state that a thread's next step may change for other threads.
    pub fn common(&self, thread: usize) -> CommonState {
        let process = Process {
            locks: Locks::default(),
            code_manager_writer: None,
            suspension: Suspension::None,
            ..self.runtime.process.get()
        };
        let known = self.runtime.threads.borrow();
        // The runtime has the threads in the same order.
        let listed = known.get(thread).map(|known| Listed {
            object: known.object,
            life: known.life,
            reported_dead: known.reported_dead,
            id_is_over: known.id_is_over,
        });
        let gcs = [self.collections, self.gcs_wanted, self.gcs_made];
        CommonState {
            runtime: CommonRuntime {
                process,
                gcs,
                induced: self.made.induced,
                unfinished: self.runtime.unfinished.borrow().changes(),
            },
            listed: listed.unwrap_or_default(),
            made: self.made.numbers(self.runtime.code.il_versions.borrow().changes()),
        }
    }

    /// Returns true if a thread's next step depends on what other threads execute at that moment: it stops them, waits for
    /// their end, or frees code.
    pub fn looks_at_others(&self, thread: usize) -> bool {
        let executed = self.threads.get(thread);
        matches!(
            executed.and_then(|executed| executed.pending.front()),
            Some(
                Step::StopOthers
                    | Step::AwaitForeground
                    | Step::AwaitProgram(_)
                    | Step::ServeGc
                    | Step::Free(_)
            )
        )
    }

    /// Returns true if the service that a thread has called last begins with a look at what other threads execute: code
    /// stays loaded while it is executed (H-18).
    pub fn looked_at_others(&self, thread: usize) -> bool {
        let served = self.threads.get(thread).and_then(|executed| executed.served);
        matches!(served, Some(Service::Unload | Service::DestroyMethod))
    }
}
