//! The profiler under test: its threads, and what it does in callbacks, hooks and signals.

use super::history::Kind;
use super::thread::Thread;
use clr_runtime::profiling::CallbackKind;
use std::rc::Rc;

/// Code of the profiler that is executed once, on a thread of its own.
pub(super) type Body<'p> = Box<dyn FnOnce(&Thread<'_, '_>) + 'p>;
/// Code of the profiler that is executed whenever something comes.
pub(super) type Handler<'p> = Rc<dyn Fn(&Thread<'_, '_>) + 'p>;

/// A thread of the profiler that is about to begin.
pub(super) struct Beginning<'p> {
    pub name: Rc<str>,
    pub kind: Kind,
    pub body: Body<'p>,
}

/// A lock of the profiler's own. It is not re-entrant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock(pub(super) u32);

/// An event of the profiler's own: it is set until it is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event(pub(super) u32);

/// A profiler that is being loaded, for one history: whatever it keeps must be made anew here, so that one
/// history knows nothing of another.
#[derive(Default)]
pub struct Setup<'p> {
    pub(super) threads: Vec<Beginning<'p>>,
    pub(super) locks: Vec<Rc<str>>,
    pub(super) events: u32,
    pub(super) callbacks: Vec<(CallbackKind, Handler<'p>)>,
    pub(super) hook: Option<Handler<'p>>,
    pub(super) signal: Option<Handler<'p>>,
    pub(super) crash: Option<Handler<'p>>,
}

impl std::fmt::Debug for Setup<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

impl<'p> Setup<'p> {
    /// A thread of the profiler that never runs managed code.
    pub fn thread(&mut self, name: &str, body: impl FnOnce(&Thread<'_, '_>) + 'p) {
        self.begin(name, Kind::Profiler, Box::new(body));
    }

    /// A thread of the profiler that has run managed code: the runtime knows it, in preemptive mode
    /// (H-02).
    pub fn managed_thread(&mut self, name: &str, body: impl FnOnce(&Thread<'_, '_>) + 'p) {
        self.begin(name, Kind::ManagedProfiler, Box::new(body));
    }

    fn begin(&mut self, name: &str, kind: Kind, body: Body<'p>) {
        self.threads.push(Beginning { name: name.into(), kind, body });
    }

    /// A lock.
    pub fn lock(&mut self, name: &str) -> Lock {
        self.locks.push(name.into());
        Lock(self.locks.len() as u32 - 1)
    }

    /// An event, which is not set.
    pub fn event(&mut self) -> Event {
        self.events += 1;
        Event(self.events - 1)
    }

    /// What is done in a callback, on the thread that it is made on. The last one said counts.
    pub fn on(&mut self, callback: CallbackKind, handler: impl Fn(&Thread<'_, '_>) + 'p) {
        self.callbacks.retain(|(kind, _)| *kind != callback);
        self.callbacks.push((callback, Rc::new(handler)));
    }

    /// What is done in the hooks that code calls directly.
    pub fn on_hook(&mut self, handler: impl Fn(&Thread<'_, '_>) + 'p) {
        self.hook = Some(Rc::new(handler));
    }

    /// What is done when a thread gets a signal.
    pub fn on_signal(&mut self, handler: impl Fn(&Thread<'_, '_>) + 'p) {
        self.signal = Some(Rc::new(handler));
    }

    /// What is done when nothing has caught an exception, on its thread, before the stack is unwound for
    /// the process's last words.
    pub fn on_crash(&mut self, handler: impl Fn(&Thread<'_, '_>) + 'p) {
        self.crash = Some(Rc::new(handler));
    }

    pub(super) fn handler(&self, callback: CallbackKind) -> Option<Handler<'p>> {
        let handler = self.callbacks.iter().find(|(kind, _)| *kind == callback);
        handler.map(|(_, handler)| Rc::clone(handler))
    }
}

/// What a running history asks of the profiler, whatever it borrows.
pub(super) trait Handlers {
    fn call(&self, callback: CallbackKind, thread: &Thread<'_, '_>);
}

impl Handlers for Setup<'_> {
    fn call(&self, callback: CallbackKind, thread: &Thread<'_, '_>) {
        if let Some(handler) = self.handler(callback) {
            handler(thread);
        }
    }
}
