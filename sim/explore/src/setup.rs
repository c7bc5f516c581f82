//! The profiler under test: its threads, and its handlers of callbacks, hooks and signals.

use super::callback::Callback;
use super::history::ThreadKind;
use super::lock::{ConditionVariable, EventObject, LockKind, ProfilerLock};
use super::thread::{Body, CurrentThread, Handlers};
use clr_codegen::FunctionIndex;
use clr_runtime::profiling::CallbackKind;
use std::rc::Rc;

/// Code of the profiler that is executed on each callback, hook or signal.
pub(super) type Handler<'p> = Rc<dyn Fn(&CurrentThread<'_, '_>) + 'p>;

/// Code of the profiler that is executed when a thread of the program calls an export.
pub(super) type ExportHandler<'p> = Rc<dyn Fn(&CurrentThread<'_, '_>, FunctionIndex) + 'p>;

/// A thread of the profiler that will be started.
pub(super) struct Beginning<'p> {
    pub name: Rc<str>,
    pub kind: ThreadKind,
    pub body: Body<'p>,
}

/// A profiler that is being loaded for one history: all its state must be created anew here, so
/// that interleavings do not influence each other.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct Setup<'p> {
    pub(super) threads: Vec<Beginning<'p>>,
    /// Index of the thread that starts the runtime.
    pub(super) starter: Option<usize>,
    /// The program begins with the start of the runtime.
    pub(super) starts: bool,
    pub(super) locks: Vec<(Rc<str>, LockKind)>,
    pub(super) conditions: u32,
    /// The time of each event is of interest.
    pub(super) events: Vec<bool>,
    pub(super) callbacks: Vec<(CallbackKind, Handler<'p>)>,
    pub(super) hook: Option<Handler<'p>>,
    pub(super) export: Option<ExportHandler<'p>>,
    pub(super) signal: Option<Handler<'p>>,
    pub(super) crash: Option<Handler<'p>>,
    pub(super) hides_places: bool,
    pub(super) notes_clauses: bool,
    pub(super) limits_expire: bool,
    /// The name of all threads and locks in an interleaving that is not recorded.
    pub(super) nameless: Option<Rc<str>>,
    /// Returns the hash of all data that the profiler's code has between its calls.
    pub(super) data: Option<Box<dyn Fn() -> u64 + 'p>>,
}

impl std::fmt::Debug for Setup<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

impl<'p> Setup<'p> {
    /// Adds a thread of the profiler that never runs managed code.
    pub fn thread(&mut self, name: &str, body: impl FnOnce(&CurrentThread<'_, '_>) + 'p) {
        self.begin(name, ThreadKind::Profiler, Box::new(body));
    }

    /// Adds a thread of the profiler that has run managed code: the runtime knows it, in preemptive
    /// mode (H-02).
    pub fn managed_thread(&mut self, name: &str, body: impl FnOnce(&CurrentThread<'_, '_>) + 'p) {
        self.begin(name, ThreadKind::ManagedProfiler, Box::new(body));
    }

    /// Adds the thread that starts the runtime, which does not know it: the program begins when the
    /// thread has ended. `Initialize` is called on it (`EEStartupHelper` in src/vm/ceemain.cpp of CoreCLR
    /// 3.1).
    pub fn before_program(&mut self, name: &str, body: impl FnOnce(&CurrentThread<'_, '_>) + 'p) {
        self.starter = Some(self.threads.len());
        self.begin(name, ThreadKind::Profiler, Box::new(body));
    }

    /// Lets the program's first thread begin with the start of the runtime, in a process that has not started.
    pub const fn begin_with_start(&mut self) {
        self.starts = true;
    }

    /// Leaves out of recorded stacks where in its source a thread of the profiler is: the calls come from an
    /// interpreter.
    pub const fn hide_places(&mut self) {
        self.hides_places = true;
    }

    /// Notes the clauses that decide calls, for the report of the search.
    pub const fn note_clauses(&mut self) {
        self.notes_clauses = true;
    }

    /// Lets limits of waits pass while other threads can run, as a choice of the search. Otherwise a limit passes only when no
    /// thread can go on.
    pub const fn expire_limits(&mut self) {
        self.limits_expire = true;
    }

    /// Declares that the profiler's code keeps no data from one call to another, and shares none between its threads, but
    /// this: `content` returns its hash. Each access to it must be [reported](CurrentThread::shares). An exhaustive search
    /// then recognises states by what they contain, whatever has led to them, so that it executes fewer interleavings.
    ///
    /// With other data it would leave out interleavings that matter. It notices that a step is not what the same step was
    /// before, and does not claim to have searched everything then.
    pub fn keeps(&mut self, content: impl Fn() -> u64 + 'p) {
        self.data = Some(Box::new(content));
    }

    fn begin(&mut self, name: &str, kind: ThreadKind, body: Body<'p>) {
        let name = self.named(name);
        self.threads.push(Beginning { name, kind, body });
    }

    fn named(&self, name: &str) -> Rc<str> {
        self.nameless.as_ref().map_or_else(|| name.into(), Rc::clone)
    }

    /// Creates a lock: a thread that takes it twice waits forever.
    pub fn lock(&mut self, name: &str) -> ProfilerLock {
        self.lock_of(name, LockKind::Plain)
    }

    /// Creates a lock of this kind.
    pub fn lock_of(&mut self, name: &str, kind: LockKind) -> ProfilerLock {
        let name = self.named(name);
        self.locks.push((name, kind));
        ProfilerLock(self.locks.len() as u32 - 1)
    }

    /// Creates a condition variable.
    pub fn condition(&mut self) -> ConditionVariable {
        self.conditions += 1;
        ConditionVariable(self.conditions - 1)
    }

    /// Creates an event, which is not set.
    pub fn event(&mut self) -> EventObject {
        self.events.push(false);
        EventObject(self.events.len() as u32 - 1)
    }

    /// Creates an event, which is not set, and [tells since when it is set](CurrentThread::was_set_before). Searches have
    /// to distinguish more interleavings than with another event: each turn of any thread before shows in that time.
    pub fn timed_event(&mut self) -> EventObject {
        let event = self.event();
        if let Some(timed) = self.events.last_mut() {
            *timed = true;
        }
        event
    }

    /// Sets the handler of a callback, which is executed on the thread of the callback. The last
    /// one set counts.
    pub fn on(&mut self, callback: CallbackKind, handler: impl Fn(&CurrentThread<'_, '_>) + 'p) {
        self.callbacks.retain(|(kind, _)| *kind != callback);
        self.callbacks.push((callback, Rc::new(handler)));
    }

    /// Sets the handler of the hooks that code calls directly.
    pub fn on_hook(&mut self, handler: impl Fn(&CurrentThread<'_, '_>) + 'p) {
        self.hook = Some(Rc::new(handler));
    }

    /// Sets the handler of calls of the profiler's exports, which is executed on the thread that calls, as it
    /// enters the function of the program that [stands for](super::TestedProcess::exporting) the export.
    pub fn on_export(&mut self, handler: impl Fn(&CurrentThread<'_, '_>, FunctionIndex) + 'p) {
        self.export = Some(Rc::new(handler));
    }

    /// Sets the handler of signals.
    pub fn on_signal(&mut self, handler: impl Fn(&CurrentThread<'_, '_>) + 'p) {
        self.signal = Some(Rc::new(handler));
    }

    /// Sets the handler of uncaught exceptions, which is executed on their thread before the stack
    /// is unwound at the end of the process.
    pub fn on_crash(&mut self, handler: impl Fn(&CurrentThread<'_, '_>) + 'p) {
        self.crash = Some(Rc::new(handler));
    }

    pub(super) fn handler(&self, callback: CallbackKind) -> Option<Handler<'p>> {
        let handler = self.callbacks.iter().find(|(kind, _)| *kind == callback);
        handler.map(|(_, handler)| Rc::clone(handler))
    }
}

impl Handlers for Setup<'_> {
    fn call(&self, callback: Callback, thread: &CurrentThread<'_, '_>) {
        if let Some(handler) = self.handler(callback.kind) {
            thread.within(callback, || handler(thread));
        }
    }
}
