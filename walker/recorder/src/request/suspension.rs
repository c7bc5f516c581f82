//! Samples that the sampler takes while the thread is suspended.

use super::{Answer, MOST_BYTES, Sample};
use crate::allocations::Watch;
use crate::code::Code;
use crate::os::{self, ThreadHandle};
use crate::recorder::{self, Recorder};
use crate::suspended::Suspended;
use crate::threads::Thread;
use crate::watchdog;
use clr_com::RuntimeInfo;
use clr_walker::mixed::{Policy, Preparation, Stopped, Walker};
use clr_walker::profiling::{ModuleSource as _, TargetThread as _};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The only request.
#[derive(Debug)]
pub(crate) struct Request {
    sample: UnsafeCell<Sample>,
    wants_copies: bool,
    /// True once the asking thread may walk others.
    is_prepared: AtomicBool,
    /// Id of the thread that asked last.
    asking: AtomicI32,
    /// Id of the thread that may be suspended, or 0.
    suspended: AtomicI32,
}

// SAFETY: the sample belongs to the one thread that asks.
unsafe impl Sync for Request {}

impl Request {
    /// Makes the room for samples. `wants_copies`: of stacks, too.
    pub(crate) fn new(wants_copies: bool) -> Self {
        Self {
            sample: UnsafeCell::new(Sample::new(if wants_copies { MOST_BYTES } else { 0 })),
            wants_copies,
            is_prepared: AtomicBool::new(false),
            asking: AtomicI32::new(0),
            suspended: AtomicI32::new(0),
        }
    }

    /// Takes a sample of another thread.
    ///
    /// # Safety
    /// Only one thread calls this, and no answer of an earlier call is in use.
    pub(crate) unsafe fn ask(&self, thread: &Thread, index: usize) -> Answer<'_> {
        // SAFETY: as the caller promises.
        let sample = unsafe { &mut *self.sample.get() };
        let target = recorder::get().zip(Suspended::open(thread));
        self.asking.store(os::own_tid(), Ordering::Relaxed);
        self.suspended.store(thread.tid(), Ordering::Relaxed);
        let taken = target.and_then(|(recorder, target)| {
            // In a process that hangs the runtime may not answer.
            let is_silent = index == watchdog::INDEX;
            self.take(recorder, &target, is_silent, sample)
        });
        self.suspended.store(0, Ordering::Relaxed);
        match taken {
            Some(()) => Answer::Taken(sample),
            None => Answer::Missed,
        }
    }

    /// Returns the id of the thread that asked last.
    pub(crate) fn asking(&self) -> i32 {
        self.asking.load(Ordering::Relaxed)
    }

    /// Lets the suspended thread run, in a process that hangs: it may hold the heap's lock.
    pub(crate) fn let_go(&self) {
        if let Some(thread) = ThreadHandle::open(self.suspended.load(Ordering::Relaxed)) {
            thread.let_go();
        }
    }

    fn take(
        &self,
        recorder: &Recorder,
        target: &Suspended,
        is_silent: bool,
        sample: &mut Sample,
    ) -> Option<()> {
        let policy = if is_silent { Policy::Signal } else { recorder.settings.policy };
        let walker = Walker::new(&recorder.info, &recorder.code, policy);
        // The first call of a thread allocates.
        if !is_silent && !self.is_prepared.load(Ordering::Relaxed) {
            let Ok(prepared) = walker.prepare(target);
            if prepared == Preparation::Again {
                return None;
            }
            self.is_prepared.store(true, Ordering::Relaxed);
        }
        // Leaving the map may wake a thread that changes it, which takes a lock: not while another
        // thread is suspended.
        let _map = recorder.code.code_map();
        self.take_suspended(recorder, &walker, target, is_silent, sample)
    }

    /// Takes the sample. From here until the thread is resumed nothing is allocated, and no lock is
    /// taken: the thread may hold it.
    fn take_suspended(
        &self,
        recorder: &Recorder,
        walker: &Walker<'_, RuntimeInfo, Code>,
        target: &Suspended,
        is_silent: bool,
        sample: &mut Sample,
    ) -> Option<()> {
        let _watch = self.wants_copies.then(Watch::this_thread);
        // The walk's own suspension ends before the stack is copied.
        let stopped = Stopped::suspend(target).ok()?;
        sample.registers = stopped.context().ok()?.registers;
        sample.thread = target.id();
        sample.stack = target.stack();
        let start = os::now();
        let Ok(()) = walker.take(target, &mut sample.buffer);
        sample.nanoseconds = os::now().saturating_sub(start);
        sample.snapshot = None;
        if self.wants_copies {
            // SAFETY: the thread is suspended, and its registers were read.
            unsafe { sample.copy_stack(target.low(), sample.stack) };
        }
        if recorder.settings.snapshots && !is_silent {
            sample.take_snapshot(&recorder.info, target.id(), false);
        }
        stopped.resume().ok()
    }
}
