//! The profiling interface as the runtimes implement it: `DoStackSnapshot` and its companion
//! methods.

mod callbacks;
mod callers;
mod entry;
mod faults;
mod filter;
mod force_gc;
mod info;
mod iterator;
mod policy;
mod rejit;
mod report;
mod suspend;
mod target;
#[cfg(test)]
mod tests;

pub use callbacks::{CallbackKind, CallbackMode, ProfilerCallback, SuspensionReason};
pub use callers::callers_of;
pub use clr_walker::profiling::{Accepts, Effect, HResult, InfoMethod, SnapshotRequest};
pub use faults::{CallFault, CallFaults, TYPE_LOAD};
pub use force_gc::GcRequest;
pub use policy::{Policy, PolicyWalker};
pub use target::{SimulatedThread, ThreadError};

use crate::explain::Event;
use crate::generation::WalkFault;
use crate::outcome::Outcome;
use crate::profiler_rules::ProfilerAction;
use crate::thread::ThreadObject;
use crate::{Lock, OsThreadId, Profiler, Runtime, TargetMemory, Wait, context};
use clr_unwind::Unreadable;
use clr_walker::profiling::SnapshotCallback;
use core::fmt;

/// A thread that calls profiling methods: its `ICorProfilerInfo`.
pub struct Caller<'r, 'a, M> {
    pub(super) runtime: &'r Runtime<'a, M>,
    pub(super) os: OsThreadId,
    /// Receiver of the callbacks.
    profiler: Option<&'r dyn Profiler<'a, M>>,
}

impl<M> fmt::Debug for Caller<'_, '_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("os", &self.os).finish_non_exhaustive()
    }
}

impl<M> Clone for Caller<'_, '_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Caller<'_, '_, M> {}

impl<'a, M: TargetMemory> Runtime<'a, M> {
    /// Returns the profiling methods, as called on a thread.
    pub const fn on(&self, os: OsThreadId) -> Caller<'_, 'a, M> {
        Caller { runtime: self, os, profiler: self.profiler }
    }

    /// Returns the outcome of a fault within the walk (C-111).
    fn fault_in_walk(&self, unreadable: Unreadable) -> Outcome {
        let at = unreadable.address;
        self.record(|| Event::Fault { at });
        match self.generation.walk_fault() {
            WalkFault::Unexpected => HResult::UNEXPECTED.into(),
            WalkFault::Kills => Outcome::AccessViolation { at },
        }
    }

    /// Returns the outcome of a fault before the walk, where no guard handles it.
    fn fault(&self, unreadable: Unreadable) -> Outcome {
        let at = unreadable.address;
        self.record(|| Event::Fault { at });
        Outcome::AccessViolation { at }
    }
}

impl<'r, 'a, M: TargetMemory> Caller<'r, 'a, M> {
    /// Returns the same thread, calling on behalf of this profiler: it receives the callbacks and
    /// decides about waits.
    #[must_use]
    pub const fn with_profiler(self, profiler: &'r dyn Profiler<'a, M>) -> Self {
        Self { profiler: Some(profiler), ..self }
    }

    /// Makes a callback on the thread, with the callback-state bits set.
    fn call_back(&self, callback: ProfilerCallback) {
        self.runtime.record(|| Event::CalledBack(callback));
        let Some(profiler) = self.profiler else { return };
        self.in_callback(callback.into(), |caller| {
            profiler.call_back(caller.runtime, caller.os, callback);
        });
    }

    /// Waits if there is a profiler to decide about it. Returns true if the method may continue.
    fn wait(&self, wait: Wait) -> bool {
        self.profiler.is_some_and(|profiler| profiler.wait(self.runtime, self.os, wait))
    }

    /// Takes a lock as soon as it is free. Without a profiler no other thread runs, so the call
    /// continues without the lock. A thread waits preemptively for the lock of the thread list, whatever its mode is
    /// (`ThreadSuspend::LockThreadStore` of src/vm/threadsuspend.cpp of CoreCLR 3.1.23): no suspension waits for it.
    fn acquire(&self, lock: Lock) -> Result<(), Outcome> {
        let mut was_cooperative = false;
        self.wait_while(|| {
            let mut process = self.runtime.process.get();
            let taken = process.try_acquire(lock, self.os) || self.profiler.is_none();
            self.runtime.process.set(process);
            if !taken && lock == Lock::ThreadStore {
                was_cooperative |= self.set_cooperative(false)?;
            }
            Ok((!taken).then_some(Wait::Lock(lock)))
        })?;
        if was_cooperative {
            self.set_cooperative(true)?;
        }
        self.between();
        Ok(())
    }

    /// Sets the mode of the calling thread, if the runtime knows it. Returns true if it was cooperative.
    fn set_cooperative(&self, cooperative: bool) -> Result<bool, Outcome> {
        let Some(id) = self.runtime.object_of(self.os) else { return Ok(false) };
        self.change(|memory| {
            let was = ThreadObject(id).is_cooperative(memory)?;
            ThreadObject(id).set_cooperative(memory, cooperative)?;
            Ok(was)
        })
    }

    /// Releases a lock.
    fn release(&self, lock: Lock) {
        self.runtime.change_process(|process| {
            process.release(lock, self.os);
        });
        self.between();
    }

    /// Takes locks one after the other, and releases them.
    fn go_through(&self, locks: &[Lock]) -> Result<(), Outcome> {
        for (taken, lock) in locks.iter().enumerate() {
            if let Err(blocked) = self.acquire(*lock) {
                for lock in locks.iter().take(taken) {
                    self.release(*lock);
                }
                return Err(blocked);
            }
        }
        for lock in locks.iter().rev() {
            self.release(*lock);
        }
        Ok(())
    }

    /// Lets other threads run here.
    fn between(&self) {
        if let Some(profiler) = self.profiler {
            profiler.between(self.runtime, self.os);
        }
    }

    /// Creates the state that a thread needs at its first call: it allocates from the process's
    /// heap, and creates a stress log if the log is on (H-03).
    fn initialize(&self) -> Result<(), Outcome> {
        if self.runtime.thread(self.os, |thread| thread.initialized) != Some(false) {
            return Ok(());
        }
        self.runtime.did(ProfilerAction::FirstCall);
        self.go_through(&[Lock::ThreadInit, Lock::ProcessHeap])?;
        if self.runtime.process.get().stress_log {
            self.go_through(&[Lock::StressLog, Lock::ProcessHeap])?;
        }
        self.runtime.change_thread(self.os, |thread| thread.initialized = true);
        Ok(())
    }

    /// Waits while `wait` returns a condition to wait for.
    fn wait_while(
        &self,
        mut wait: impl FnMut() -> Result<Option<Wait>, Outcome>,
    ) -> Result<(), Outcome> {
        while let Some(wait) = wait()? {
            if !self.wait(wait) {
                return Err(Outcome::Blocked);
            }
        }
        Ok(())
    }

    /// Walks the stack of a thread: `DoStackSnapshot`.
    #[expect(clippy::must_use_candidate, reason = "the callbacks may be all that is wanted")]
    pub fn do_stack_snapshot(
        &self,
        call: &SnapshotRequest<'_>,
        callback: Option<&mut SnapshotCallback<'_>>,
    ) -> Outcome {
        self.runtime.record(|| Event::Called {
            thread: call.thread,
            flags: call.flags,
            seed: call.seed.and_then(context::rip_of),
        });
        let outcome = self.enter(call, callback);
        self.runtime.record(|| Event::Ended(outcome));
        outcome
    }
}
