//! The state of a runtime that profiling methods can see: the process, its threads and their Frames,
//! and its code.
//!
//! ```
//! use clr_machine::Machine;
//! use clr_runtime::clause::Clause;
//! use clr_runtime::generation::Generation;
//! use clr_runtime::profiling::{SnapshotRequest, HResult};
//! use clr_runtime::{Outcome, OsThreadId, Runtime};
//!
//! // A native thread asks for its own stack in a process without managed threads.
//! let runtime = Runtime::new(Generation::CoreClr31Windows, Machine::new());
//! let outcome = runtime.on(OsThreadId(1)).do_stack_snapshot(&SnapshotRequest::default(), None);
//! assert_eq!(outcome, Outcome::Returned(HResult::OK));
//!
//! let rule = Clause::new(10).entry().expect("there is a C-010").rule;
//! assert!(rule.ends_with("the answer is S_OK without a single callback."));
//! ```
//!
//! - [`generation`] has the simulated runtimes and the questions whose answers differ between them.
//! - [`clause`] has the rules by number.
//! - [`profiling`] implements `DoStackSnapshot` and the methods that a stack profiler calls with it.
//! - [`explain`] turns the decisions of a call into sentences.

pub mod clause;
pub mod code_manager;
mod context;
pub mod exception;
pub mod explain;
pub mod frame;
pub mod generation;
pub mod lock;
pub mod memory;
pub mod metadata;
pub mod native;
mod objects;
mod outcome;
pub mod process;
mod profiler_rules;
pub mod profiling;
pub mod thread;
mod unfinished;
pub mod wait;
#[cfg(test)]
pub(crate) mod words;

pub use code_manager::{CodeManager, CodeVersion, Funclet, Managed, Method, MethodKind};
pub use context::Context;
pub use exception::{ExceptionState, ExceptionTracker, Pass, RunningFunclet};
pub use frame::{FRAME_TOP, FrameIdentities, FrameKind};
pub use lock::{Lock, Locks};
pub use memory::TargetMemory;
pub use metadata::Metadata;
pub use native::{NativeCode, NativeFunction};
pub use objects::{HeapKind, Object, Objects};
pub use outcome::{FAIL_FAST, Outcome};
pub use process::{HighEvents, Process, ProfilerStatus, Suspension};
pub use profiler_rules::{ProfilerAction, RuleViolation};
pub use thread::{
    CallbackState, ContextSafety, OsThreadId, THREAD_OBJECT_SIZE, Thread, ThreadFields, ThreadLife,
};
pub use unfinished::Unfinished;
pub use wait::Wait;

use crate::explain::{Event, Log};
use crate::generation::Generation;
use crate::metadata::{MethodCalls, ModuleNames};
use crate::profiling::{CallFault, CallFaults, GcRequest, ProfilerCallback};
use clr_machine::Machine;
use clr_walker::profiling::ThreadId;
use core::cell::{Cell, RefCell};
use std::sync::Arc;

/// The profiler's side of ICorProfilerCallback: receives the callbacks that the runtime makes on
/// its own.
pub trait Profiler<'a, M> {
    /// Handles `callback`, which is made on `thread`.
    fn call_back(&self, runtime: &Runtime<'a, M>, thread: OsThreadId, callback: ProfilerCallback);

    /// Handles a wait in a method that `thread` has called. Returns true if the method continues;
    /// it then checks again if it has to wait. Returns false if no other thread can end the wait.
    fn wait(&self, runtime: &Runtime<'a, M>, thread: OsThreadId, wait: Wait) -> bool {
        let _ = (runtime, thread, wait);
        false
    }

    /// Lets other threads run between two steps of a method that `thread` has called, possibly with
    /// a lock held.
    fn between(&self, runtime: &Runtime<'a, M>, thread: OsThreadId) {
        let _ = (runtime, thread);
    }

    /// Gives `thread` a Thread object: the runtime meets it for the first time.
    fn attach(&self, runtime: &Runtime<'a, M>, thread: OsThreadId) {
        let _ = (runtime, thread);
    }

    /// Begins a GC that a thread of the profiler forces. Returns the thread that performs it.
    fn request_gc(&self, runtime: &Runtime<'a, M>) -> GcRequest {
        let _ = runtime;
        GcRequest::Caller { moves: true }
    }

    /// Lets other threads run between the steps by which `thread` suspends another one (contract
    /// §2.4).
    fn suspends(&self, runtime: &Runtime<'a, M>, thread: OsThreadId) {
        let _ = (runtime, thread);
    }

    /// Lets other threads run while a method that `thread` has called reads the code manager's
    /// tables without their lock and another thread writes to them (H-29).
    fn reads_unlocked(&self, runtime: &Runtime<'a, M>, thread: OsThreadId) {
        let _ = (runtime, thread);
    }

    /// Chooses if the method that `thread` has called fails, of the ways that are possible.
    fn fails(
        &self,
        runtime: &Runtime<'a, M>,
        thread: OsThreadId,
        possible: CallFaults,
    ) -> Option<CallFault> {
        let _ = (runtime, thread, possible);
        None
    }
}

/// A process with a runtime in it.
///
/// Profiling methods are called through [`on`](Self::on). They change the process through a shared
/// reference, because calls nest: one method may be called in the middle of another.
pub struct Runtime<'a, M = Machine> {
    /// Runtime version and operating system.
    pub generation: Generation,
    /// Managed code.
    pub code: CodeManager<'a>,
    /// Names of the methods, types, modules and assemblies.
    pub metadata: Metadata,
    /// Native code.
    pub native: NativeCode<'a>,
    /// First words of Frames, by which the runtime recognizes their kinds.
    pub identities: FrameIdentities,
    /// Memory of the process.
    pub memory: RefCell<M>,
    /// State of the process.
    pub process: Cell<Process>,
    /// Threads of the process.
    pub threads: RefCell<Vec<Thread>>,
    /// Receiver of the callbacks, unless [`Caller::with_profiler`](crate::profiling::Caller::with_profiler)
    /// names another one.
    pub profiler: Option<&'a dyn Profiler<'a, M>>,
    /// Loads and compilations in progress.
    pub unfinished: RefCell<Unfinished>,
    /// The objects of the program.
    pub objects: RefCell<Objects>,
    /// Log of events and decisions, with their reasons.
    pub log: Log,
    /// The frameInfo of the callback that is being made: its handle and the function it is for.
    pub frame_info: Cell<Option<(u64, clr_walker::profiling::FunctionId)>>,
    pub(crate) next_frame_info: Cell<u64>,
    /// Rule that a profiler broke while a thread was suspended.
    pub(crate) violation: Cell<Option<RuleViolation>>,
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
    /// Creates a process without threads and code.
    pub fn new(generation: Generation, memory: M) -> Self {
        Self {
            generation,
            code: CodeManager::new(),
            metadata: Metadata::default(),
            native: NativeCode::default(),
            identities: FrameIdentities::of(generation),
            memory: RefCell::new(memory),
            process: Cell::default(),
            threads: RefCell::default(),
            profiler: None,
            unfinished: RefCell::default(),
            objects: RefCell::default(),
            log: Log::default(),
            frame_info: Cell::default(),
            next_frame_info: Cell::new(1),
            violation: Cell::default(),
        }
    }

    /// Names the managed code: with these modules, and defaults for the rest. `calls` says which methods call which.
    pub fn name_code(&mut self, modules: &[ModuleNames], calls: &Arc<MethodCalls>) {
        let core_library =
            if self.generation.is_core() { "System.Private.CoreLib.dll" } else { "mscorlib.dll" };
        self.metadata = Metadata::new(modules, core_library)
            .with_calls(Arc::clone(calls))
            .with_flat_modules(self.generation.has_flat_modules());
        self.metadata.describe(&mut self.code);
    }

    /// Resets the state that earlier calls have left behind.
    pub fn forget_calls(&self) {
        self.frame_info.set(None);
        self.next_frame_info.set(1);
        self.violation.set(None);
    }

    /// Changes the process's state.
    pub fn change_process(&self, change: impl FnOnce(&mut Process)) {
        let mut process = self.process.get();
        change(&mut process);
        self.process.set(process);
    }

    /// Applies `look` to a thread and returns the result, or `None` if there is no such thread.
    pub fn thread<T>(&self, os: OsThreadId, look: impl FnOnce(&Thread) -> T) -> Option<T> {
        self.threads.borrow().iter().find(|thread| thread.os == os).map(look)
    }

    /// Applies `look` to the thread with this object and returns the result, or `None` if there is
    /// none.
    pub fn thread_of<T>(&self, object: ThreadId, look: impl FnOnce(&Thread) -> T) -> Option<T> {
        self.threads.borrow().iter().find(|thread| thread.object == Some(object)).map(look)
    }

    /// Changes a thread, if it exists.
    pub fn change_thread(&self, os: OsThreadId, change: impl FnOnce(&mut Thread)) {
        if let Some(thread) = self.threads.borrow_mut().iter_mut().find(|thread| thread.os == os) {
            change(thread);
        }
    }

    /// Returns the Thread object of a thread, or `None` if the runtime does not know the thread.
    pub fn object_of(&self, os: OsThreadId) -> Option<ThreadId> {
        self.thread(os, |thread| thread.object).flatten()
    }

    /// Logs an event, if the log has a listener.
    #[inline]
    pub(crate) fn record(&self, event: impl FnOnce() -> Event) {
        self.log.record(event);
    }
}
