//! Return addresses that the runtime has replaced to stop a thread.

use crate::frames::FrameKind;
use crate::runtime::Runtime;
use clr_unwind::{Gpr, Memory, Registers};
use clr_walker::jitted::contracts::ContractDescriptor;
use clr_walker::mixed::true_return_address;

/// Hijacked threads of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hijacks {
    /// Addresses of the runtime's Thread objects (VA).
    threads: Vec<u64>,
    /// True return addresses of the HijackFrames, of threads that have returned and were stopped.
    returned: Vec<u64>,
}

impl Hijacks {
    /// Reads the Thread objects, and their HijackFrames. What cannot be read is left out.
    pub(crate) fn read<M: Memory + ?Sized>(memory: &M, runtime: &Runtime) -> Self {
        let Ok(list) = runtime.threads(memory) else { return Self::default() };
        let offset = return_address(runtime.descriptor());
        let frames = list.threads.iter().flat_map(|thread| &thread.frames);
        let hijacked = frames.filter(|frame| frame.kind == FrameKind::Named("HijackFrame"));
        let returned = hijacked
            .filter_map(|frame| memory.read_u64(frame.address.wrapping_add(offset?.into())).ok());
        Self {
            returned: returned.collect(),
            threads: list.threads.iter().map(|thread| thread.address).collect(),
        }
    }

    /// Corrects the caller of the runtime's stub that a hijacked method has returned to: `OnHijackTripThread` is entered by a return,
    /// and makes place for the true return address, but its call frame information is that of a function which was called, so that
    /// the word above is taken for the address. `clr-unwind` sees that where the true one is in code that its map has; methods come
    /// there when they are met. `named` are the registers that the information names. Nothing changes unless a HijackFrame has the
    /// address.
    pub(crate) fn correct_stub<M: Memory + ?Sized>(&self, memory: &M, named: &mut Registers) {
        let rsp = named.rsp().wrapping_sub(8);
        let address = memory.read_u64(rsp.wrapping_sub(8));
        if let Some(address) = address.ok().filter(|address| self.returned.contains(address)) {
            named.rip = address;
            named.set(Gpr::Rsp, rsp);
        }
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

/// Returns the offset of the true return address in a HijackFrame, in bytes.
fn return_address(descriptor: &ContractDescriptor) -> Option<u32> {
    descriptor.field("HijackFrame", "ReturnAddress").ok()
}
