//! Samples that threads take themselves, in a signal handler.

use super::{Answer, MOST_BYTES, MOST_BYTES_OF_LATE, Sample, Slot};
use crate::allocations::Watch;
use crate::recorder::Recorder;
use crate::target::Interrupted;
use crate::threads::Thread;
use crate::{os, watchdog};
use clr_unwind::Registers;
use clr_walker::mixed::{Policy, SignalVeto, Walker};
use clr_walker::profiling::{ModuleSource as _, ThreadId};
use std::sync::atomic::Ordering;

/// A handler needs this much of the interrupted stack, in bytes: the kernel's frame with the vector
/// registers, and the walk.
const ROOM: u64 = 16 << 10;
/// DoStackSnapshot needs this much, in bytes.
const ROOM_FOR_SNAPSHOT: u64 = 64 << 10;
/// The only request.
#[derive(Debug)]
pub(crate) struct Request {
    sample: Slot<Sample>,
    wants_copies: bool,
}

impl Request {
    /// Makes the room for samples. `wants_copies`: of stacks, too.
    pub(crate) fn new(wants_copies: bool) -> Self {
        let room = if wants_copies { MOST_BYTES } else { MOST_BYTES_OF_LATE };
        Self { sample: Slot::new(Sample::new(room)), wants_copies }
    }

    /// Asks a thread for a sample, and waits for it.
    ///
    /// # Safety
    /// As of [`Slot::ask`].
    pub(crate) unsafe fn ask(&self, thread: &Thread, index: usize) -> Answer<'_> {
        // SAFETY: as the caller promises.
        match unsafe { self.sample.ask(thread.tid(), index, |_| ()) } {
            Some(sample) if sample.thread.0 != 0 => Answer::Taken(sample),
            _ => Answer::Missed,
        }
    }

    /// Takes the sample that was asked for, in the signal handler.
    fn take(&self, recorder: &Recorder, number: u32, thread: &Thread, registers: &Registers) {
        self.sample.fill(number, |sample| self.take_into(sample, recorder, thread, registers));
    }

    fn take_into(
        &self,
        sample: &mut Sample,
        recorder: &Recorder,
        thread: &Thread,
        registers: &Registers,
    ) {
        let _watch = self.wants_copies.then(Watch::this_thread);
        let target = Interrupted::new(thread, registers);
        sample.thread = ThreadId(0);
        let stack = thread.stack();
        let sp = registers.rsp();
        if thread.tid() == os::own_tid() && !(stack.limit..stack.limit + ROOM).contains(&sp) {
            sample.thread = thread.id();
            sample.stack = stack;
            sample.registers = *registers;
            let forbids = |ip| recorder.code.code_map().find_function(ip).is_none();
            let veto = SignalVeto { is_suspending: &recorder.is_suspending, forbids: &forbids };
            let policy = match recorder.settings.policy {
                // Its walks are the sampler's. This one comes with the copy for a second opinion.
                Policy::RuntimeSuspended => Policy::Signal,
                policy => policy,
            };
            let walker = Walker::new(&recorder.info, &recorder.code, policy).with_veto(veto);
            let start = os::now();
            let Ok(()) = walker.take(&target, &mut sample.buffer);
            sample.nanoseconds = os::now().saturating_sub(start);
            sample.nanoseconds_again = recorder.settings.twice.then(|| {
                let start = os::now();
                let Ok(()) = walker.take(&target, &mut sample.buffer);
                os::now().saturating_sub(start)
            });
            sample.copy.clear();
            if self.wants_copies || sample.buffer.lacks_code() {
                // SAFETY: this thread's own stack, below which the handler runs.
                unsafe { sample.copy_stack(target.low(), stack) };
            }
            sample.snapshot = None;
            // In a method no lock of the runtime is held, so it may be asked.
            if recorder.settings.snapshots
                && !recorder.is_suspending.load(Ordering::SeqCst)
                && sp - stack.limit > ROOM_FOR_SNAPSHOT
                && !forbids(registers.rip)
            {
                sample.take_snapshot(&recorder.info, ThreadId(0), true);
            }
        }
    }
}

/// Handles the signal: the function that `os::install` gets.
pub(crate) fn on_signal(value: usize, registers: &Registers) {
    let Some(recorder) = crate::recorder::get() else { return };
    if value >> 32 == watchdog::INDEX {
        let watchdog = &recorder.watchdog;
        watchdog.request.take(recorder, value as u32, &watchdog.thread, registers);
    } else if let Some(thread) = recorder.threads.get(value >> 32) {
        if let Some(record) = &recorder.record {
            return record.in_signal(recorder, value as u32, thread, registers);
        }
        recorder.request.take(recorder, value as u32, thread, registers);
    }
}
