//! Samples that threads take themselves, in a signal handler.

use super::{Answer, Sample};
use crate::allocations::Watch;
use crate::os;
use crate::recorder::Recorder;
use crate::target::Interrupted;
use crate::threads::Thread;
use crate::watchdog;
use clr_walker::mixed::{Policy, SignalVeto, Walker};
use clr_walker::profiling::{ModuleSource as _, ThreadId};
use clr_walker::registers::Registers;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A handler needs this much of the interrupted stack, in bytes: the kernel's frame with the vector
/// registers, and the walk.
const ROOM: u64 = 16 << 10;
/// DoStackSnapshot needs this much, in bytes.
const ROOM_FOR_SNAPSHOT: u64 = 64 << 10;
/// A thread that does not run within this time, or blocks signals, gives no sample.
const PATIENCE: Duration = Duration::from_millis(100);

/// The states of a request, in the low bits of its word; the others number the requests.
mod phase {
    /// The sample is the sampler's.
    pub(super) const IDLE: u32 = 0;
    /// The sample is nobody's, and a handler may take it.
    pub(super) const ASKED: u32 = 1;
    /// The sample is a handler's.
    pub(super) const TAKING: u32 = 2;
    pub(super) const BITS: u32 = 2;
}

/// The only request.
#[derive(Debug)]
pub(crate) struct Request {
    /// Number of the request and its phase.
    word: AtomicU32,
    sample: UnsafeCell<Sample>,
    wants_copies: bool,
}

// SAFETY: the word says whose the sample is: that of the one thread that asks, or the
// handler's that has changed it from ASKED to TAKING.
unsafe impl Sync for Request {}

impl Request {
    /// Makes the room for samples. `wants_copies`: of stacks, too.
    pub(crate) fn new(wants_copies: bool) -> Self {
        Self {
            word: AtomicU32::new(phase::IDLE),
            sample: UnsafeCell::new(Sample::new(wants_copies)),
            wants_copies,
        }
    }

    /// Asks a thread for a sample, and waits for it.
    ///
    /// # Safety
    /// Only one thread calls this, and no answer of an earlier call is in use.
    pub(crate) unsafe fn ask(&self, thread: &Thread, index: usize) -> Answer<'_> {
        let number = self.word.load(Ordering::Relaxed) >> phase::BITS;
        let number = number.wrapping_add(1) & (u32::MAX >> phase::BITS);
        let word = |phase| number << phase::BITS | phase;
        self.word.store(word(phase::ASKED), Ordering::Release);
        let asked_at = os::now();
        let value = index << 32 | number as usize;
        if !os::interrupt(thread.tid(), value) {
            self.word.store(word(phase::IDLE), Ordering::Relaxed);
            return Answer::Missed;
        }
        loop {
            let now = self.word.load(Ordering::Acquire);
            if now == word(phase::IDLE) {
                // SAFETY: the handler has given the sample back.
                let sample = unsafe { &mut *self.sample.get() };
                return if sample.thread.0 == 0 { Answer::Missed } else { Answer::Taken(sample) };
            }
            let waited = Duration::from_nanos(os::now().saturating_sub(asked_at));
            if waited > PATIENCE && now == word(phase::ASKED) {
                // The handler comes too late: it will find another word.
                let (old, new) = (now, word(phase::IDLE));
                let order = (Ordering::Acquire, Ordering::Relaxed);
                if self.word.compare_exchange(old, new, order.0, order.1).is_ok() {
                    return Answer::Missed;
                }
            }
            // A handler that has begun ends: else the watchdog sees it.
            os::wait(&self.word, now, PATIENCE);
        }
    }

    /// Takes the sample that was asked for, in the signal handler.
    fn take(&self, recorder: &Recorder, number: u32, thread: &Thread, registers: &Registers) {
        let word = |phase| number << phase::BITS | phase;
        let (old, new) = (word(phase::ASKED), word(phase::TAKING));
        let order = (Ordering::Acquire, Ordering::Relaxed);
        if self.word.compare_exchange(old, new, order.0, order.1).is_err() {
            return;
        }
        // SAFETY: the sample is this handler's until the word changes.
        let sample = unsafe { &mut *self.sample.get() };
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
            if self.wants_copies {
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
        self.word.store(word(phase::IDLE), Ordering::Release);
        os::wake(&self.word);
    }
}

/// Handles the signal: the function that `os::install` gets.
pub(crate) fn on_signal(value: usize, registers: &Registers) {
    let Some(recorder) = crate::recorder::get() else { return };
    if value >> 32 == watchdog::INDEX {
        let watchdog = &recorder.watchdog;
        watchdog.request.take(recorder, value as u32, &watchdog.thread, registers);
    } else if let Some(thread) = recorder.threads.get(value >> 32) {
        recorder.request.take(recorder, value as u32, thread, registers);
    }
}
