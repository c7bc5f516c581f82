//! The end of a process.

use super::step::Step;
use super::thread::Executed;
use super::{StepEvent, World};
use clr_runtime::OsThreadId;
use clr_runtime::profiling::CallbackKind;

/// The way in which a process ends: with one of its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProcessEnd {
    /// The process ends when this thread does, regardless of the others, as by `Environment.Exit`.
    Exit(usize),
    /// This thread executes `Main`: once it has returned, it waits for the end of the other foreground
    /// threads, then the process ends (`RunMainPost` of vm/assembly.cpp of CoreCLR 3.1.23). A thread that
    /// came from unmanaged code is a background thread (`SetupThread` of vm/threads.cpp).
    Return(usize),
}

impl ProcessEnd {
    pub(super) const fn thread(self) -> usize {
        match self {
            Self::Exit(thread) | Self::Return(thread) => thread,
        }
    }
}

impl World<'_> {
    /// Makes the process end with a thread. The runtime first marks itself as shutting down, then calls
    /// the profiler back, and reports no thread that ends later (G16).
    pub const fn end_by(&mut self, end: ProcessEnd) {
        self.process_end = Some(end);
    }

    /// Notifies the profiler, on a thread, that the process ends.
    pub fn shut_down(&mut self, thread: usize) {
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.ended = false;
            executed.pending.push_front(Step::Callback(CallbackKind::Shutdown));
        }
    }

    /// Returns true if a thread has returned from the program, and the process ends with it as soon as no other foreground
    /// thread is left.
    pub fn is_returning(&self, thread: usize) -> bool {
        let next = self.threads.get(thread).and_then(|executed| executed.pending.front());
        matches!(next, Some(Step::AwaitForeground)) && !self.is_cooperative(thread)
    }

    /// Returns the foreground threads that have not ended, except for one.
    pub(super) fn foreground_but(&self, os: OsThreadId) -> impl Iterator<Item = &Executed> {
        self.threads.iter().filter(move |other| other.foreground && !other.ended && other.os != os)
    }

    /// Makes the program's first thread wait until no other foreground thread is left.
    pub(super) fn await_foreground(&mut self, thread: usize) -> StepEvent {
        if self.is_cooperative(thread) {
            self.wait(thread, Step::AwaitForeground);
            self.set_cooperative(thread, false);
            return StepEvent::Stepped;
        }
        let os = self.os(thread);
        if os.is_some_and(|os| self.foreground_but(os).next().is_some()) {
            return self.wait(thread, Step::AwaitForeground);
        }
        StepEvent::Stepped
    }
}
