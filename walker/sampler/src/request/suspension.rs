//! Samples that the sampler takes while the thread is suspended.

use super::{Answer, MOST_BYTES, Missed, Sample, Walks};
use crate::allocations::Watch;
use crate::code::Code;
use crate::os::{self, ThreadHandle};
use crate::process::Process;
use crate::suspended::Suspended;
use crate::threads::{self, Thread};
use clr_com::RuntimeInfo;
use clr_walker::mixed::{Policy, Preparation, Stopped, Walker};
use clr_walker::profiling::{ModuleSource as _, TargetThread as _};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The only request.
#[derive(Debug)]
pub struct Request {
    sample: UnsafeCell<Sample>,
    walks: Walks,
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
    /// Makes the room for samples of such walks.
    pub fn new(walks: Walks) -> Self {
        Self {
            sample: UnsafeCell::new(Sample::new(if walks.copies { MOST_BYTES } else { 0 })),
            walks,
            is_prepared: AtomicBool::new(false),
            asking: AtomicI32::new(0),
            suspended: AtomicI32::new(0),
        }
    }

    /// Takes a sample of another thread.
    ///
    /// # Safety
    /// Only one thread calls this, and no answer of an earlier call is in use.
    pub unsafe fn ask(&self, process: &Process, thread: &Thread, index: usize) -> Answer<'_> {
        // SAFETY: as the caller promises.
        let sample = unsafe { &mut *self.sample.get() };
        let target = Suspended::open(thread);
        self.asking.store(os::own_tid(), Ordering::Relaxed);
        self.suspended.store(thread.tid(), Ordering::Relaxed);
        let taken = target.and_then(|target| {
            // In a process that hangs the runtime may not answer.
            let is_silent = index == threads::WATCHDOG;
            self.take(process, &target, is_silent, sample)
        });
        self.suspended.store(0, Ordering::Relaxed);
        match taken {
            Some(()) => Answer::Taken(sample),
            None => Answer::Missed(Missed::NoAnswer),
        }
    }

    /// Returns the id of the thread that asked last.
    pub fn asking(&self) -> i32 {
        self.asking.load(Ordering::Relaxed)
    }

    /// Lets the suspended thread run, in a process that hangs: it may hold the heap's lock.
    pub fn let_go(&self) {
        if let Some(thread) = ThreadHandle::open(self.suspended.load(Ordering::Relaxed)) {
            thread.let_go();
        }
    }

    fn take(
        &self,
        process: &Process,
        target: &Suspended,
        is_silent: bool,
        sample: &mut Sample,
    ) -> Option<()> {
        let policy = if is_silent { Policy::Signal } else { self.walks.policy };
        let walker = Walker::new(&process.info, &process.code, policy);
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
        let _map = process.code.code_map();
        self.take_suspended(process, &walker, target, is_silent, sample)
    }

    /// Takes the sample. From here until the thread is resumed nothing is allocated, and no lock is
    /// taken: the thread may hold it.
    fn take_suspended(
        &self,
        #[cfg_attr(not(feature = "snapshots"), expect(unused, reason = "only snapshots ask"))]
        process: &Process,
        walker: &Walker<'_, RuntimeInfo, Code>,
        target: &Suspended,
        #[cfg_attr(not(feature = "snapshots"), expect(unused, reason = "only snapshots ask"))]
        is_silent: bool,
        sample: &mut Sample,
    ) -> Option<()> {
        let _watch = self.walks.copies.then(Watch::this_thread);
        // The walk's own suspension ends before the stack is copied.
        let stopped = Stopped::suspend(target).ok()?;
        sample.registers = stopped.context().ok()?.registers;
        sample.thread = target.id();
        sample.stack = target.stack();
        sample.taken_at = os::now();
        let Ok(()) = walker.take(target, &mut sample.buffer);
        sample.nanoseconds = os::now().saturating_sub(sample.taken_at);
        if self.walks.copies {
            // SAFETY: the thread is suspended, and its registers were read.
            unsafe { sample.copy_stack(target.low(), sample.stack) };
        }
        #[cfg(feature = "snapshots")]
        {
            sample.snapshot = None;
            if self.walks.snapshots && !is_silent {
                sample.take_snapshot(&process.info, target.id(), false);
            }
        }
        stopped.resume().ok()
    }
}
