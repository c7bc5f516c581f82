//! Threads of the runtime that end in the system: native ones that it has met.
//!
//! Recorded on .NET Core 3.1.23, .NET 8.0.34, 9.0.23, 10.0.15 and 11.0.0 for Linux, with a thread of a profiler that had called
//! `ForceGC`; read in src/vm/threads.cpp of .NET 5.0.2 for the others (`Thread::DetachThread`, `Thread::CleanupDetachedThreads`): the
//! thread is no longer listed as soon as it has ended. The finalizer's thread removes it, before it runs finalizers: it holds the lock
//! of the list of threads, and reports ThreadDestroyed meanwhile.

use super::World;
use super::arrangement::Awaited;
use super::step::{About, Step};
use clr_runtime::profiling::CallbackKind as Kind;
use clr_runtime::{Lock, OsThreadId, ThreadLife};

impl World<'_> {
    /// Notes that a native thread has ended in the system. If the runtime knows the thread, its handle is invalid from now on, and the
    /// finalizer's thread is asked to remove it.
    pub fn detach_thread(&mut self, os: OsThreadId) {
        let Some(object) = self.runtime.object_of(os) else { return };
        self.runtime.change_thread(os, |thread| {
            thread.life = ThreadLife::Dead;
            thread.handle = 0;
        });
        if self.has_finalizer() {
            self.made.arranged.changes += 1;
            self.made.arranged.detached.push_back(object);
        }
    }

    /// Notes the end of a thread of the program, if that is a native one.
    pub(super) fn detach_if_native(&mut self, thread: usize) {
        let native = self.threads.get(thread).filter(|executed| {
            let is_program = executed.foreground || executed.by_program;
            !is_program && !executed.is_finalizer && !executed.serves_tiers
        });
        if let Some(os) = native.map(|executed| executed.os) {
            self.detach_thread(os);
        }
    }

    /// Lets the finalizer's thread remove a thread that has ended, and look for more to do.
    pub(super) fn remove_detached(&mut self, thread: usize) {
        let arranged = &mut self.made.arranged;
        let Some(object) = arranged.detached.pop_front() else { return };
        arranged.changes += 1;
        arranged.is_finalizing = true;
        let about = About { thread: object, ..About::default() };
        let steps = [
            Step::Acquire(Lock::ThreadStore),
            Step::CallbackAbout(Kind::ThreadDestroyed, about),
            Step::Release(Lock::ThreadStore),
            Step::Removed,
            Step::AwaitProgram(Awaited::Finalizable),
            Step::TakeFinalizer,
        ];
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.pending.extend(steps);
        }
    }

    /// Returns true if the runtime has a finalizer's thread.
    pub(super) fn has_finalizer(&self) -> bool {
        self.threads.iter().any(|thread| thread.is_finalizer)
    }
}
