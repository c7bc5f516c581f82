//! One sample at a time: asked for by the sampler, taken by the signal handler of a thread.

use crate::os;
use crate::recorder::Recorder;
use crate::target::Interrupted;
use crate::threads::Thread;
use crate::watchdog;
use clr_com::RuntimeInfo;
use clr_walker::mixed::{SignalVeto, WalkBuffer, Walker};
use clr_walker::profiling::{
    CallError, FunctionId, HResult, ModuleSource as _, ProfilerInfo as _, SnapshotFlags,
    SnapshotFrame, StackBounds, StackRoot, ThreadId,
};
use clr_walker::registers::Registers;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Maximum number of frames of a sample.
const MOST_FRAMES: usize = 1024;
/// Maximum number of bytes of a stack that are copied for second opinions.
const MOST_BYTES: usize = 512 << 10;
/// A handler needs this much of the interrupted stack, in bytes: the kernel's frame with the vector
/// registers, and the walk.
const ROOM: u64 = 16 << 10;
/// DoStackSnapshot needs this much, in bytes.
const ROOM_FOR_SNAPSHOT: u64 = 64 << 10;
/// Size of the largest CONTEXT that a runtime reads, in bytes.
const SIZE_OF_SEED: usize = 0xCA0;
/// A thread that does not run within this time, or blocks signals, gives no sample.
const PATIENCE: Duration = Duration::from_millis(100);

/// The result of a handler.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) thread: ThreadId,
    pub(crate) stack: StackBounds,
    /// The interrupted registers.
    pub(crate) registers: Registers,
    pub(crate) buffer: WalkBuffer,
    /// Duration of the walk.
    pub(crate) nanoseconds: u64,
    /// The stack from `copy_from` (VA) to its base, if copies are wanted and it is not too large.
    pub(crate) copy: Vec<u8>,
    pub(crate) copy_from: u64,
    /// Result of DoStackSnapshot on the same stack, if it was asked.
    pub(crate) snapshot: Option<HResult>,
    pub(crate) reports: Vec<Report>,
}

/// A managed frame as DoStackSnapshot reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) function: FunctionId,
    pub(crate) ip: u64,
    pub(crate) sp: u64,
}

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

/// An answer to a request.
#[derive(Debug)]
pub(crate) enum Answer<'r> {
    /// The sample was taken.
    Taken(&'r mut Sample),
    /// The thread did not run, has ended, or has no room on its stack.
    Missed,
}

impl Request {
    /// Makes the room for samples. `wants_copies`: of stacks, too.
    pub(crate) fn new(wants_copies: bool) -> Self {
        let nowhere = StackBounds { limit: 0, base: 0, root: StackRoot::Undefined };
        Self {
            word: AtomicU32::new(phase::IDLE),
            sample: UnsafeCell::new(Sample {
                thread: ThreadId(0),
                stack: nowhere,
                registers: Registers::default(),
                buffer: WalkBuffer::new(MOST_FRAMES),
                nanoseconds: 0,
                copy: Vec::with_capacity(if wants_copies { MOST_BYTES } else { 0 }),
                copy_from: 0,
                snapshot: None,
                reports: Vec::with_capacity(if wants_copies { MOST_FRAMES } else { 0 }),
            }),
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
            let policy = recorder.settings.policy;
            let walker = Walker::new(&recorder.info, &recorder.code, policy).with_veto(veto);
            let start = os::now();
            let Ok(()) = walker.take(&target, &mut sample.buffer);
            sample.nanoseconds = os::now().saturating_sub(start);
            if self.wants_copies {
                sample.copy_stack(&target, stack);
            }
            sample.snapshot = None;
            // In a method no lock of the runtime is held, so it may be asked.
            if recorder.settings.snapshots
                && !recorder.is_suspending.load(Ordering::SeqCst)
                && sp - stack.limit > ROOM_FOR_SNAPSHOT
                && !forbids(registers.rip)
            {
                sample.take_snapshot(&recorder.info);
            }
        }
        self.word.store(word(phase::IDLE), Ordering::Release);
        os::wake(&self.word);
    }
}

impl Sample {
    /// Copies the stack, if there is room: the vector has its capacity, so nothing is allocated.
    fn copy_stack(&mut self, target: &Interrupted<'_>, stack: StackBounds) {
        self.copy.clear();
        self.copy_from = target.low();
        let len = usize::try_from(stack.base - target.low()).unwrap_or(usize::MAX);
        if len <= self.copy.capacity() {
            self.copy.resize(len, 0);
            // SAFETY: from the lowest byte in use to the base.
            unsafe { os::copy_own_stack(self.copy_from, &mut self.copy) };
        }
    }

    /// Asks the runtime about the interrupted thread, which is the calling one.
    #[inline(never)]
    fn take_snapshot(&mut self, info: &RuntimeInfo) {
        #[repr(align(16))]
        struct Context([u8; SIZE_OF_SEED]);
        let mut context = Context([0; SIZE_OF_SEED]);
        self.reports.clear();
        if self.registers.write_context(&mut context.0).is_err() {
            return;
        }
        let reports = &mut self.reports;
        let mut callback = |frame: &mut SnapshotFrame<'_>| {
            if let (Some(function), Ok(registers)) =
                (frame.function, Registers::from_context(frame.context))
                && reports.len() < reports.capacity()
            {
                reports.push(Report { function, ip: frame.ip, sp: registers.rsp() });
            }
            HResult::OK
        };
        let (flags, size) = (SnapshotFlags::REGISTER_CONTEXT, SIZE_OF_SEED as u32);
        let seed = Some(&context.0[..]);
        let result = info.do_stack_snapshot(ThreadId(0), Some(&mut callback), flags, 0, seed, size);
        self.snapshot = Some(match result {
            Ok(()) => HResult::OK,
            Err(CallError::Failed(result)) => result,
        });
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
