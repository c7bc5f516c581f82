//! Locks, and threads that wait: for others, or for a while.

use super::step::Step;
use super::thread::Executed;
use super::{StepEvent, World};
use clr_runtime::{Lock, OsThreadId, Wait};

impl World<'_> {
    /// Takes a lock as soon as it is free.
    pub(super) fn acquire(&mut self, thread: usize, lock: Lock) -> StepEvent {
        let Some(os) = self.os(thread) else { return StepEvent::Stepped };
        let mut process = self.runtime.process.get();
        if !process.try_acquire(lock, os) {
            return self.wait(thread, Step::Acquire(lock));
        }
        self.runtime.process.set(process);
        StepEvent::Stepped
    }

    /// Releases a lock.
    pub(super) fn release(&self, thread: usize, lock: Lock) -> StepEvent {
        if let Some(os) = self.os(thread) {
            self.runtime.change_process(|process| {
                process.release(lock, os);
            });
        }
        StepEvent::Stepped
    }

    /// Returns the steps by which a throw finds its managed frame: on Unix the native frames before
    /// it are unwound by libunwind (`Thread::VirtualUnwindToFirstManagedCallFrame` in
    /// vm/stackwalk.cpp of CoreCLR 3.1.23), whose cache has a lock.
    pub(super) fn unwinding_natively(&self) -> Vec<Step> {
        if !self.runtime.generation.is_unix() {
            return Vec::new();
        }
        vec![Step::Acquire(Lock::NativeUnwinder), Step::Release(Lock::NativeUnwinder)]
    }

    /// Returns the wait that keeps a thread from writing to the code manager's tables.
    pub(super) fn waits_to_write(&self, os: OsThreadId) -> Option<Wait> {
        if self.runtime.process.get().code_manager_writer.is_some() {
            return Some(Wait::Lock(Lock::CodeManager));
        }
        let is_read = !self.runtime.code_manager_readers(os).is_empty();
        is_read.then_some(Wait::CodeManagerReaders)
    }

    /// Returns the wait of a thread's next step; `None` if the thread can go on. A wait that ends
    /// without another thread, such as Sleep, does not count, nor does a suspension of the thread
    /// by the operating system.
    pub fn waits_for(&self, thread: usize) -> Option<Wait> {
        let goes_on = |executed: &&Executed| !executed.ended && executed.signalled.is_none();
        let executed = self.threads.get(thread).filter(goes_on)?;
        if let Some(by) = self.waits_to_come_back(thread) {
            return Some(Wait::RuntimeRunning(by));
        }
        let wait = match *executed.pending.front()? {
            Step::Acquire(lock) => Wait::Lock(lock),
            Step::Write(true) => return self.waits_to_write(executed.os),
            // The thread becomes preemptive first.
            Step::AwaitResume | Step::AwaitForeground if self.is_cooperative(thread) => {
                return None;
            }
            Step::AwaitResume => Wait::RuntimeRunning(self.waits_for_runtime(thread)?),
            Step::StopOthers => Wait::ThreadsToStop,
            Step::AwaitGc(number) => Wait::Gc(number),
            Step::ServeGc => Wait::GcWanted,
            Step::AwaitForeground => Wait::ForegroundThreads,
            Step::AwaitProgram(_) => Wait::Program,
            step @ (Step::Callback(_) | Step::CallbackIn(..) | Step::CallbackAbout(..)) => {
                Wait::RuntimeRunning(self.waits_to_call_back(thread, step)?)
            }
            _ => return None,
        };
        (!self.has_ended(executed.os, wait)).then_some(wait)
    }

    /// Returns true if a thread that waits, in the world or in a profiling method, can go on.
    pub fn has_ended(&self, os: OsThreadId, wait: Wait) -> bool {
        match wait {
            Wait::Lock(_) | Wait::RuntimeRunning(_) | Wait::CodeManagerReaders => {
                self.runtime.has_ended(os, wait)
            }
            Wait::ThreadsToStop => {
                let mut running = self.cooperative_but(os).peekable();
                running.peek().is_none() || running.any(|thread| self.can_be_stopped(thread))
            }
            Wait::WakeUpOfInterrupted => false,
            Wait::Gc(number) => self.gcs_made >= number,
            Wait::ForegroundThreads => self.foreground_but(os).next().is_none(),
            Wait::Program => !self.awaits_program(os),
            Wait::GcWanted => {
                let mut others = self.threads.iter().filter(|other| !other.serves_gc);
                self.gcs_made < self.gcs_wanted || others.all(|other| other.ended)
            }
        }
    }

    /// Returns the threads that a thread's next step would wait for.
    pub fn others(&self, thread: usize) -> Vec<OsThreadId> {
        let wait = self.os(thread).zip(self.waits_for(thread));
        wait.map_or_else(Vec::new, |(os, wait)| self.waited_for(os, wait))
    }

    /// Returns the threads that can end a wait of a thread, in the world or in a profiling method.
    /// All of them have to act; for [`Wait::GcWanted`] one is enough.
    pub fn waited_for(&self, os: OsThreadId, wait: Wait) -> Vec<OsThreadId> {
        match wait {
            Wait::Lock(lock) => {
                self.runtime.process.get().in_the_way(lock, os).into_iter().collect()
            }
            Wait::RuntimeRunning(by) => vec![by],
            // Its interrupted code would have to go on, which waits for the handler.
            Wait::WakeUpOfInterrupted => vec![os],
            Wait::CodeManagerReaders => self.runtime.code_manager_readers(os),
            Wait::ThreadsToStop => {
                self.cooperative_but(os).filter_map(|thread| self.os(thread)).collect()
            }
            Wait::ForegroundThreads => self.foreground_but(os).map(|thread| thread.os).collect(),
            Wait::Program => {
                let others = self.threads.iter().filter(|other| !other.ended && other.os != os);
                others.map(|other| other.os).collect()
            }
            Wait::Gc(_) | Wait::GcWanted => {
                let serves = matches!(wait, Wait::Gc(_));
                let who = self.threads.iter().filter(|thread| thread.serves_gc == serves);
                who.filter(|thread| !thread.ended).map(|thread| thread.os).collect()
            }
        }
    }

    /// Returns true if the next step of a thread waits for others of the program.
    fn awaits_program(&self, os: OsThreadId) -> bool {
        let thread = self.threads.iter().position(|thread| thread.os == os);
        let next = |thread: usize| self.threads.get(thread)?.pending.front().copied();
        thread.is_some_and(|thread| match next(thread) {
            Some(Step::AwaitProgram(awaited)) => self.awaits(thread, awaited),
            _ => false,
        })
    }

    /// Returns the threads that still have to stop, except for one.
    fn cooperative_but(&self, os: OsThreadId) -> impl Iterator<Item = usize> {
        let others = (0..self.threads.len()).filter(move |thread| self.os(*thread) != Some(os));
        others.filter(|thread| self.is_to_stop(*thread))
    }
}

/// A detector of threads that wait for others, fed with each step: a wait that ends without another
/// thread, such as Sleep, takes one step only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The last step was a wait.
    once: bool,
}

impl Waiting {
    /// Records a step of the thread. Returns true if the thread waits for others.
    pub fn is_for_others(&mut self, event: StepEvent) -> bool {
        let waits = event == StepEvent::Waits;
        core::mem::replace(&mut self.once, waits) && waits
    }
}

#[test]
fn a_thread_that_waits_twice_waits_for_others() {
    use StepEvent::{Ended, Stepped, Waits};
    let mut waiting = Waiting::default();
    let events = [Stepped, Waits, Stepped, Waits, Waits, Waits, Ended, Waits];
    let are_for_others = events.map(|event| waiting.is_for_others(event));
    assert_eq!(are_for_others, [false, false, false, false, true, true, false, false]);
}
