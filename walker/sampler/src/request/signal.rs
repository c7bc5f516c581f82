//! Samples that threads take themselves, in a signal handler.

use super::{Answer, MOST_BYTES, MOST_BYTES_OF_LATE, Missed, Sample, Slot, Walks};
use crate::allocations::Watch;
use crate::os;
use crate::process::Process;
use crate::target::Interrupted;
use crate::threads::Thread;
use clr_unwind::Registers;
use clr_walker::mixed::{Policy, Walker};
#[cfg(feature = "snapshots")]
use clr_walker::profiling::ModuleSource as _;
use clr_walker::profiling::ThreadId;

/// A handler needs this much of the interrupted stack, in bytes: the kernel's frame with the vector
/// registers, and the walk.
const ROOM: u64 = 16 << 10;
/// DoStackSnapshot needs this much, in bytes.
#[cfg(feature = "snapshots")]
const ROOM_FOR_SNAPSHOT: u64 = 64 << 10;

/// The only request.
#[derive(Debug)]
pub struct Request {
    sample: Slot<Sample>,
    walks: Walks,
}

impl Request {
    /// Makes the room for samples of such walks.
    pub fn new(walks: Walks) -> Self {
        let room = if walks.copies { MOST_BYTES } else { MOST_BYTES_OF_LATE };
        Self { sample: Slot::new(Sample::new(room)), walks }
    }

    /// Asks a thread for a sample, and waits for it.
    ///
    /// # Safety
    /// As of [`Slot::ask`].
    pub unsafe fn ask(&self, _process: &Process, thread: &Thread, index: usize) -> Answer<'_> {
        // SAFETY: as the caller promises.
        match unsafe { self.sample.ask(thread.tid(), index, |_| ()) } {
            Some(sample) if sample.thread.0 != 0 => Answer::Taken(sample),
            Some(_) => Answer::Missed(Missed::NoRoom),
            None => Answer::Missed(Missed::NoAnswer),
        }
    }

    /// Takes the sample that was asked for, in the signal handler.
    pub(crate) fn take(
        &self,
        process: &Process,
        number: u32,
        thread: &Thread,
        registers: &Registers,
    ) {
        self.sample.fill(number, |sample| self.take_into(sample, process, thread, registers));
    }

    fn take_into(
        &self,
        sample: &mut Sample,
        process: &Process,
        thread: &Thread,
        registers: &Registers,
    ) {
        let _watch = self.walks.copies.then(Watch::this_thread);
        // SAFETY: this is the handler, and the sampler asks threads of its list, each of which has added itself. Another
        // thread's stack is left alone below.
        let target = unsafe { Interrupted::new(thread.id(), thread.stack(), registers) };
        sample.thread = ThreadId(0);
        let stack = thread.stack();
        let sp = registers.rsp();
        if thread.tid() == os::own_tid() && !(stack.limit..stack.limit + ROOM).contains(&sp) {
            sample.thread = thread.id();
            sample.stack = stack;
            sample.registers = *registers;
            sample.thread_pointer = os::own_thread_pointer();
            let policy = match self.walks.policy {
                // Its walks are the sampler's. This one comes with the copy for a second opinion.
                Policy::RuntimeSuspended => Policy::Signal,
                policy => policy,
            };
            let walker = Walker::new(&process.info, &process.code, policy);
            sample.taken_at = os::now();
            let Ok(()) = walker.take(&target, &mut sample.buffer);
            sample.nanoseconds = os::now().saturating_sub(sample.taken_at);
            sample.nanoseconds_again = self.walks.twice.then(|| {
                let start = os::now();
                let Ok(()) = walker.take(&target, &mut sample.buffer);
                os::now().saturating_sub(start)
            });
            sample.copy.clear();
            if self.walks.copies || sample.buffer.lacks_code() {
                // SAFETY: this thread's own stack, below which the handler runs.
                unsafe { sample.copy_stack(target.low(), stack) };
            }
            #[cfg(feature = "snapshots")]
            self.take_snapshot(sample, process);
        }
    }

    /// Asks the runtime, too: in a method none of its locks is held.
    #[cfg(feature = "snapshots")]
    fn take_snapshot(&self, sample: &mut Sample, process: &Process) {
        sample.snapshot = None;
        let room = sample.registers.rsp() - sample.stack.limit;
        let is_in_method = || process.code.code_map().find_function(sample.registers.rip).is_some();
        if self.walks.snapshots
            && !process.is_suspending()
            && room > ROOM_FOR_SNAPSHOT
            && is_in_method()
        {
            sample.take_snapshot(&process.info, ThreadId(0), true);
        }
    }
}
