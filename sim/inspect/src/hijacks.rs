//! Return addresses that the runtime has replaced to stop a thread.

use crate::runtime::Runtime;
use clr_unwind::{Memory, Registers};
use clr_walker::mixed::true_return_address;

/// Threads of a process, of which some may be hijacked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hijacks {
    /// Addresses of the runtime's Thread objects (VA).
    threads: Vec<u64>,
}

impl Hijacks {
    /// Reads the Thread objects. What cannot be read is left out.
    pub(crate) fn read<M: Memory + ?Sized>(memory: &M, runtime: &Runtime) -> Self {
        let Ok(list) = runtime.threads(memory) else { return Self::default() };
        Self { threads: list.threads.iter().map(|thread| thread.address).collect() }
    }

    /// Corrects the caller of a method that has not returned yet, if its return address is the runtime's and a Thread object has
    /// the true one.
    pub(crate) fn correct_return<M: Memory + ?Sized>(&self, memory: &M, caller: &mut Registers) {
        let slot = caller.rsp().wrapping_sub(8);
        let mut threads = self.threads.iter();
        let found = threads.find_map(|thread| true_return_address(memory, *thread, slot));
        if let Some(address) = found {
            caller.rip = address;
        }
    }
}
