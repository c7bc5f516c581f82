//! The calling thread's stack.

use clr_sampler::{UsedStack, os};
use clr_unwind::{Memory, Unreadable};
use clr_walker::profiling::StackBounds;

/// The calling thread's stack above the constructor's frame, and the rest of the process's memory.
#[derive(Debug)]
pub(super) struct OwnStack {
    used: UsedStack,
    /// Not `Send`: the bounds belong to this thread.
    _here: std::marker::PhantomData<*const ()>,
}

impl OwnStack {
    /// `bounds`: of the calling thread's stack.
    #[inline(never)]
    pub(super) fn new(bounds: StackBounds) -> Self {
        let used = UsedStack::new(bounds, os::own_registers().rsp());
        Self { used, _here: std::marker::PhantomData }
    }
}

impl Memory for OwnStack {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        // SAFETY: the calling thread is the one that has made this, as it is neither Send nor Sync; its
        // stack from there to the base is mapped. Below, the bytes may be of frames that are gone.
        unsafe { self.used.read(address, buffer) }
    }
}
