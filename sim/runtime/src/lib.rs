//! The state of a runtime that profiling methods can see: the process, its threads and their Frames,
//! and its code.

pub mod clause;
pub mod code_manager;
mod context;
pub mod exception;
pub mod explain;
pub mod frame;
pub mod generation;
pub mod lock;
pub mod memory;
pub mod native;
mod outcome;
pub mod process;
mod profiler_rules;
pub mod profiling;
pub mod thread;
pub mod wait;
#[cfg(test)]
pub(crate) mod words;

pub use code_manager::{Code, CodeManager, Funclet, Managed, Method, MethodKind};
pub use context::Context;
pub use exception::{ExceptionState, ExceptionTracker, Pass, RunningFunclet};
pub use frame::{FRAME_TOP, FrameIdentities, FrameKind};
pub use lock::{Lock, Locks};
pub use memory::TargetMemory;
pub use native::{NativeCode, NativeFunction};
pub use outcome::{FAIL_FAST, Outcome};
pub use process::{Process, ProfilerStatus, Suspension};
pub use profiler_rules::{Breach, Deed};
pub use thread::{
    CallbackState, ContextSafety, OsThreadId, THREAD_OBJECT_SIZE, Thread, ThreadFields, ThreadLife,
};
pub use wait::Wait;

use crate::explain::{Event, Log};
use crate::generation::Generation;
use clr_machine::Machine;
use clr_walker::profiling::{ProfilerCallback, ThreadId};
use core::cell::{Cell, RefCell};

/// Who is called back by the runtime on its own: the profiler's side of ICorProfilerCallback.
pub trait Profiler<'a, M> {
    /// `callback` is made on `thread`.
    fn call_back(&self, runtime: &Runtime<'a, M>, thread: OsThreadId, callback: ProfilerCallback);

    /// A method that `thread` has called has to wait. Whether it goes on: it looks then whether it has
    /// to wait again. Nobody else is there to end the wait otherwise.
    fn wait(&self, runtime: &Runtime<'a, M>, thread: OsThreadId, wait: Wait) -> bool {
        let _ = (runtime, thread, wait);
        false
    }

    /// A method that `thread` has called is between two steps, with a lock perhaps: others may go on.
    fn between(&self, runtime: &Runtime<'a, M>, thread: OsThreadId) {
        let _ = (runtime, thread);
    }

    /// A method that `thread` has called is in the middle of reading the code manager's tables, without
    /// their lock and while another thread writes to them: others may go on (H-29).
    fn reads_unlocked(&self, runtime: &Runtime<'a, M>, thread: OsThreadId) {
        let _ = (runtime, thread);
    }
}

/// A process with a runtime in it.
///
/// Profiling methods are called through [`on`](Self::on). They change the process behind a shared
/// reference, as they do in reality: one may be called in the middle of another.
pub struct Runtime<'a, M = Machine> {
    /// Which runtime it is.
    pub generation: Generation,
    /// Managed code.
    pub code: CodeManager<'a>,
    /// Native code.
    pub native: NativeCode<'a>,
    /// How kinds of Frames are told.
    pub identities: FrameIdentities,
    /// The process's memory.
    pub memory: RefCell<M>,
    /// The process's state.
    pub process: Cell<Process>,
    /// Its threads.
    pub threads: RefCell<Vec<Thread>>,
    /// Who is called back, unless [`Caller::telling`](crate::profiling::Caller::telling) names
    /// somebody else.
    pub profiler: Option<&'a dyn Profiler<'a, M>>,
    /// What is told of what is done, and why.
    pub log: Log,
    /// The frameInfo of the callback that is being made: its handle, and what it is of.
    pub frame_info: Cell<Option<(u64, clr_walker::profiling::FunctionId)>>,
    pub(crate) next_frame_info: Cell<u64>,
    /// What a profiler did while a thread was suspended, and should not have.
    pub(crate) breach: Cell<Option<Breach>>,
}

impl<M: core::fmt::Debug> core::fmt::Debug for Runtime<'_, M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Runtime")
            .field("generation", &self.generation)
            .field("process", &self.process.get())
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl<M: TargetMemory> Runtime<'_, M> {
    /// A process without threads and code.
    #[must_use]
    pub fn new(generation: Generation, memory: M) -> Self {
        Self {
            generation,
            code: CodeManager::new(),
            native: NativeCode::default(),
            identities: FrameIdentities::of(generation),
            memory: RefCell::new(memory),
            process: Cell::default(),
            threads: RefCell::default(),
            profiler: None,
            log: Log::default(),
            frame_info: Cell::default(),
            next_frame_info: Cell::new(1),
            breach: Cell::default(),
        }
    }

    /// Forgets what calls have left behind, as if there had been none.
    pub fn forget_calls(&self) {
        self.frame_info.set(None);
        self.next_frame_info.set(1);
        self.breach.set(None);
    }

    /// Changes the process's state.
    pub fn change_process(&self, change: impl FnOnce(&mut Process)) {
        let mut process = self.process.get();
        change(&mut process);
        self.process.set(process);
    }

    /// What `look` sees of a thread, if there is such a thread.
    pub fn thread<T>(&self, os: OsThreadId, look: impl FnOnce(&Thread) -> T) -> Option<T> {
        self.threads.borrow().iter().find(|thread| thread.os == os).map(look)
    }

    /// What `look` sees of the thread with this object, if there is one.
    pub fn thread_of<T>(&self, object: ThreadId, look: impl FnOnce(&Thread) -> T) -> Option<T> {
        self.threads.borrow().iter().find(|thread| thread.object == Some(object)).map(look)
    }

    /// Changes a thread, if there is such a thread.
    pub fn change_thread(&self, os: OsThreadId, change: impl FnOnce(&mut Thread)) {
        if let Some(thread) = self.threads.borrow_mut().iter_mut().find(|thread| thread.os == os) {
            change(thread);
        }
    }

    /// The Thread object of a thread, if the runtime knows it.
    #[must_use]
    pub fn object_of(&self, os: OsThreadId) -> Option<ThreadId> {
        self.thread(os, |thread| thread.object).flatten()
    }

    /// Tells of something, if anybody listens.
    #[inline]
    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        self.log.tell(event);
    }
}
