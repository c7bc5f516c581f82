//! What the world does for the runtime's code.

use super::World;
use crate::profiling::CallbackKind;
use crate::stubs::{Service, method_id};
use clr_walker::registers::Gpr;

/// A part of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The profiler is called back.
    Callback(CallbackKind),
    /// It returns, with this value in rax.
    Return(u64),
}

impl World<'_> {
    /// The parts of a service that a thread has come to.
    pub(super) fn serve(&mut self, thread: usize, service: Service) -> Vec<Step> {
        match service {
            Service::ThreadStart => vec![
                Step::Callback(CallbackKind::ThreadCreated),
                Step::Callback(CallbackKind::ThreadAssignedToOSThread),
                Step::Return(self.start_address(thread)),
            ],
            Service::ThreadEnd => {
                vec![Step::Callback(CallbackKind::ThreadDestroyed), Step::Return(0)]
            }
            Service::RareDisable => vec![Step::Return(0)],
            Service::Compile => vec![
                Step::Callback(CallbackKind::JITCompilationStarted),
                Step::Callback(CallbackKind::JITCompilationFinished),
                Step::Return(0),
            ],
            Service::FindCode => {
                let method = self.runtime.memory.get_mut().cpu().get(Gpr::R10);
                vec![Step::Return(self.code_of(method))]
            }
            Service::Allocated => {
                vec![Step::Callback(CallbackKind::ObjectAllocated), Step::Return(0)]
            }
            Service::ManagedToUnmanagedCall | Service::ManagedToUnmanagedReturn => {
                vec![Step::Callback(CallbackKind::ManagedToUnmanagedTransition), Step::Return(0)]
            }
            Service::UnmanagedToManagedCall | Service::UnmanagedToManagedReturn => {
                vec![Step::Callback(CallbackKind::UnmanagedToManagedTransition), Step::Return(0)]
            }
        }
    }

    /// What a thread's first function is, once the runtime has set it up (VA).
    fn start_address(&self, thread: usize) -> u64 {
        let start = self.threads.get(thread).map_or_else(Default::default, |t| t.start);
        let placed = self.expanded.placed.get(start.index()).copied().unwrap_or_default();
        self.linked.entries.get(placed.index()).copied().unwrap_or_default()
    }

    /// Where the code of a method is (VA).
    fn code_of(&self, method: u64) -> u64 {
        let entries = self.linked.entries.iter().zip(0..);
        let found = entries
            .into_iter()
            .find(|(_, index)| method_id(crate::code::FunctionId(*index)) == method);
        found.map_or(0, |(entry, _)| *entry)
    }
}
