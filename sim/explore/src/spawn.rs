//! Threads and locks of the profiler that are made during an interleaving.

use super::footprint::Footprint;
use super::history::{ThreadKind, TurnEvent};
use super::ids::ThreadIndex;
use super::lock::{EventObject, LockKind, LockState, ProfilerLock};
use super::state::Thread;
use super::thread::CurrentThread;
use clr_runtime::OsThreadId;

impl CurrentThread<'_, '_> {
    /// Starts a thread of the profiler, which the runtime does not know. It may run before this call
    /// returns.
    #[track_caller]
    pub fn spawn(
        &self,
        name: &str,
        body: impl FnOnce(&CurrentThread<'_, '_>) + 'static,
    ) -> ThreadIndex {
        self.comes_from_caller();
        let kernel = self.kernel;
        let thread = {
            let mut state = kernel.state.borrow_mut();
            let index = ThreadIndex(state.threads.len() as u32);
            let number = index.0 - kernel.apps;
            let os = kernel.world.borrow_mut().add_profilers_thread(number, false);
            let thread = Thread::new(ThreadKind::Profiler, name.into(), os);
            if let Some(history) = &mut state.history {
                history.threads.push(thread.summary());
            }
            state.threads.push(thread);
            index
        };
        // The order of creation determines the numbers.
        kernel.touch(Footprint::THREADS | Footprint::thread(thread));
        self.record(TurnEvent::Started(thread));
        let body = move |thread: &CurrentThread<'_, '_>| {
            thread.record(TurnEvent::Begins);
            body(thread);
        };
        self.turns.start(thread, Box::new(body));
        self.switch();
        thread
    }

    /// Ends all other threads at once, wherever they are and whatever they own: the end of the process has begun, as
    /// `ExitProcess` of Windows begins it.
    #[track_caller]
    pub fn end_others(&self) {
        self.comes_from_caller();
        self.switch();
        if self.is_over() {
            return;
        }
        self.record(TurnEvent::System("ends all other threads"));
        let mut state = self.kernel.state.borrow_mut();
        for (index, thread) in state.threads.iter_mut().enumerate() {
            thread.ended |= ThreadIndex(index as u32) != self.me;
        }
        drop(state);
        self.kernel.touch(Footprint::ALL);
    }

    /// Ends the process, with this thread and all others.
    pub fn end_process(&self) {
        if !self.is_over() {
            self.kernel.all_ended();
        }
    }

    /// Returns true if a thread has ended.
    #[must_use]
    pub fn has_ended(&self, thread: ThreadIndex) -> bool {
        self.kernel.touch(Footprint::thread(thread).read());
        let state = self.kernel.state.borrow();
        state.threads.get(thread.index()).is_none_or(|thread| thread.ended)
    }

    /// Returns the thread, among those that are meant, that has had the latest turn. It has not ended.
    #[must_use]
    pub fn ran_last(&self, is_meant: impl Fn(ThreadIndex) -> bool) -> Option<ThreadIndex> {
        self.kernel.touch(Footprint::ALL.read());
        let state = self.kernel.state.borrow();
        let threads = state.threads.iter().enumerate().filter(|(_, thread)| !thread.ended);
        let threads = threads.map(|(at, thread)| (thread.last_turn(), ThreadIndex(at as u32)));
        threads.filter(|(_, thread)| is_meant(*thread)).max().map(|(_, thread)| thread)
    }

    /// Returns true if threads take [signals](Self::signal): the runtime is one of Unix.
    #[must_use]
    pub fn has_signals(&self) -> bool {
        self.kernel.runtime.generation.is_unix()
    }

    /// Returns the thread with this OS id.
    #[must_use]
    pub fn thread_with(&self, os: OsThreadId) -> Option<ThreadIndex> {
        self.kernel.touch(Footprint::THREADS.read());
        self.kernel.index_of(os)
    }

    /// Returns the thread for which the runtime has this handle.
    #[must_use]
    pub fn thread_with_handle(&self, handle: u64) -> Option<ThreadIndex> {
        self.kernel.touch(Footprint::THREADS.read());
        let threads = self.kernel.runtime.threads.borrow();
        let os = threads.iter().find(|thread| handle != 0 && thread.handle == handle)?.os;
        drop(threads);
        self.kernel.index_of(os)
    }

    /// Returns the OS id of a thread.
    #[must_use]
    pub fn os_of(&self, thread: ThreadIndex) -> Option<OsThreadId> {
        self.kernel.touch(Footprint::THREADS.read());
        Some(self.kernel.state.borrow().threads.get(thread.index())?.os)
    }

    /// Notes that the turn looks a lock or a condition variable up in a table of those that were made in the interleaving.
    pub fn looks_up_object(&self) {
        self.kernel.touch(Footprint::MADE.read());
    }

    /// Notes that the turn changes a table of the objects that were made in the interleaving.
    pub fn changes_objects(&self) {
        self.kernel.touch(Footprint::MADE);
    }

    /// Creates an event, which is not set.
    #[must_use]
    pub fn new_event(&self) -> EventObject {
        self.changes_objects();
        let mut state = self.kernel.state.borrow_mut();
        state.events.push(false);
        state.timed.push(false);
        state.set_at.push(None);
        EventObject(state.events.len() as u32 - 1)
    }

    /// Creates a lock.
    #[must_use]
    pub fn new_lock(&self, name: &str, kind: LockKind) -> ProfilerLock {
        self.changes_objects();
        let mut state = self.kernel.state.borrow_mut();
        if let Some(history) = &mut state.history {
            history.locks.push(name.to_owned());
        }
        state.locks.push(LockState::new(kind));
        ProfilerLock(state.locks.len() as u32 - 1)
    }
}
