//! The profiling methods as called by code under a schedule: other threads may run before each call
//! and during waits.

use super::callback::Callback;
use super::footprint::Footprint;
use super::history::TurnEvent;
use super::ids::LockName;
use super::thread::CurrentThread;
use super::verdict::ProfilerRule;
use clr_machine::Machine;
use clr_runtime::Outcome;
use clr_runtime::profiling::{CallFault, CallFaults, Caller, GcRequest, HResult, ProfilerCallback};
use clr_runtime::{OsThreadId, Profiler, Runtime, Wait};
use clr_walker::profiling::{
    CallError, Effect, ForwardInfo, InfoMethod, ProfilerInfo, SnapshotCallback, SnapshotFrame,
    SnapshotRequest, ThreadId,
};

type Result<T> = core::result::Result<T, CallError<Outcome>>;

/// Maximum nesting of calls in callbacks: a real process would eventually run out of stack, and so
/// would a coroutine.
const NESTED: u32 = 8;

/// The state of the runtime that its methods look at.
const ASKED: Footprint =
    Footprint::CODE.and(Footprint::RUNTIME).and(Footprint::THREADS).and(Footprint::SUSPENSION);

/// The same, with what methods change.
const CHANGED: Footprint =
    Footprint::CODE.and(Footprint::RUNTIME).and(Footprint::THREADS).and(ASKED.read());

/// `ICorProfilerInfo`, as called on a thread.
///
/// An outcome that ends the process ends the history: no call returns [`CallError::Fatal`].
#[derive(Clone, Copy, Debug)]
pub struct Info<'i, 't, 'b> {
    pub(super) thread: &'i CurrentThread<'t, 'b>,
}

impl<'t, 'b> CurrentThread<'t, 'b> {
    /// Returns the profiling methods, as called on this thread.
    #[must_use]
    pub const fn info(&self) -> Info<'_, 't, 'b> {
        Info { thread: self }
    }

    /// Returns the profiling methods, as called later on a thread that the runtime does not know,
    /// to name the frames of a walk that has asked nothing. Such calls are no part of the interleaving.
    #[must_use]
    pub fn names_later(&self) -> Caller<'t, 'b, Machine> {
        self.kernel.runtime.on(OsThreadId(u32::MAX))
    }
}

impl<'b> Profiler<'b, Machine> for CurrentThread<'_, 'b> {
    fn call_back(&self, _: &Runtime<'b>, _: OsThreadId, callback: ProfilerCallback) {
        let callback = Callback::in_call(callback, &self.kernel.world.borrow());
        let kind = callback.kind;
        self.record(TurnEvent::Callback(kind));
        self.switch();
        self.handlers.call(callback, self);
        self.record(TurnEvent::CallbackOver(kind));
    }

    fn wait(&self, _: &Runtime<'b>, _: OsThreadId, wait: Wait) -> bool {
        CurrentThread::wait(self, wait)
    }

    fn attach(&self, _: &Runtime<'b>, os: OsThreadId) {
        self.kernel.touch(self.kernel.of_runtime());
        self.kernel.world.borrow_mut().attach_thread(os);
    }

    fn request_gc(&self, _: &Runtime<'b>) -> GcRequest {
        self.kernel.touch(self.kernel.of_runtime());
        self.kernel.world.borrow_mut().request_gc()
    }

    /// Lets other threads run while this thread owns a resource that they may need.
    fn between(&self, runtime: &Runtime<'b>, os: OsThreadId) {
        let process = runtime.process.get();
        let locks = process.locks_of(os).map(|lock| Footprint::lock(LockName::Runtime(lock)));
        let owned = locks.reduce(|one, other| one | other);
        let reads = runtime.thread(os, |thread| thread.code_manager_reads > 0) == Some(true);
        if owned.is_some() || reads {
            // A writer waits for the readers of the code manager's tables.
            let readers = if reads { Footprint::READERS } else { Footprint::default() };
            let touches = owned.unwrap_or_default() | readers | ASKED.read();
            self.touching(touches, || self.switch());
        }
    }

    fn suspends(&self, _: &Runtime<'b>, _: OsThreadId) {
        self.touching(self.kernel.of_runtime(), || self.switch());
    }

    fn reads_unlocked(&self, _: &Runtime<'b>, _: OsThreadId) {
        self.kernel.touch(Footprint::ALL);
        self.switch();
        self.kernel.touch(Footprint::ALL);
    }

    fn fails(&self, _: &Runtime<'b>, _: OsThreadId, possible: CallFaults) -> Option<CallFault> {
        let fault = self.turns.fails(self.me, possible)?;
        self.record(TurnEvent::Injected(fault));
        Some(fault)
    }
}

impl<'b> CurrentThread<'_, 'b> {
    /// Calls a method of the runtime that [`ProfilerInfo`] lacks, by its name. Other threads may run before
    /// it, and where it waits.
    ///
    /// # Errors
    /// Returns the error of the method.
    pub fn call_runtime<T>(
        &self,
        name: &'static str,
        method: impl FnOnce(Caller<'_, 'b, Machine>) -> Result<T>,
    ) -> Result<T> {
        let stops = InfoMethod::from_name(name).is_some_and(|it| it.has(Effect::StopsThreads));
        let what = if stops { self.kernel.of_runtime() } else { CHANGED };
        self.call_touching(name, None, what, method)
    }

    /// Checks a call that may trigger a GC or wait for one: a lock held during the call remains held
    /// while all threads wait (H-06).
    fn may_trigger(&self) {
        let state = self.kernel.state.borrow();
        let holds = state.locks.iter().any(|lock| lock.is_held_by(self.me));
        drop(state);
        if holds {
            self.kernel.broke(self.me, ProfilerRule::LockOverGcTrigger);
        }
    }

    /// Calls a method of the runtime, about a thread if one is given, all of whose turns touch `what`.
    fn call_touching<'c, T>(
        &'c self,
        name: &'static str,
        about: Option<ThreadId>,
        what: Footprint,
        method: impl FnOnce(Caller<'c, 'b, Machine>) -> Result<T>,
    ) -> Result<T> {
        let thread = self;
        if InfoMethod::from_name(name).is_some_and(|it| it.has(Effect::AwaitsGc)) {
            thread.may_trigger();
        }
        thread.switch();
        thread.record(TurnEvent::Called(name, about.and_then(|id| thread.target_of(id))));
        let mut calls = 0;
        thread.kernel.change_thread(thread.me, |me| {
            me.calls += 1;
            calls = me.calls;
        });
        if calls > NESTED {
            thread.fail("calls are nested in callbacks without end");
        }
        let runtime = &thread.kernel.runtime;
        if runtime.thread(thread.os, |thread| thread.initialized) == Some(false) {
            thread.does(ProfilerRule::FirstCallWhileSuspended);
        }
        let before = runtime.process.get().thread_store_forgotten;
        let (explains, notes) = (thread.kernel.is_recorded(), thread.kernel.notes_clauses());
        let mark = (explains || notes).then(|| runtime.log.mark());
        let result = thread.touching(what, || method(runtime.on(thread.os).with_profiler(thread)));
        if runtime.process.get().thread_store_forgotten != before {
            thread.kernel.touch(Footprint::RUNTIME);
        }
        thread.kernel.change_thread(thread.me, |me| me.calls = me.calls.saturating_sub(1));
        let outcome = match &result {
            Ok(_) => Outcome::Returned(HResult::OK),
            Err(CallError::Failed(failed)) => Outcome::Returned(*failed),
            Err(CallError::Fatal(fatal)) => *fatal,
        };
        let events = mark.map_or_else(Vec::new, |mark| runtime.log.since(mark));
        thread.kernel.note_clauses(&events);
        if thread.escapes() {
            runtime.change_thread(thread.os, |thread| thread.escapes = false);
        } else {
            thread.record(TurnEvent::Returned(name, outcome));
            if explains && outcome != Outcome::Returned(HResult::OK) {
                thread.kernel.explain(thread.me, &events);
            }
        }
        if let Err(CallError::Fatal(fatal)) = result {
            thread.killed(fatal);
        }
        result
    }
}

impl<'i, 'b> ForwardInfo for Info<'i, '_, 'b> {
    type To = Caller<'i, 'b, Machine>;

    fn forward<T>(
        &self,
        method: InfoMethod,
        about: Option<ThreadId>,
        call: impl FnOnce(&Self::To) -> Result<T>,
    ) -> Result<T> {
        let what = if method.has(Effect::StopsThreads) {
            self.thread.kernel.of_runtime()
        } else if method.has(Effect::Changes) {
            CHANGED
        } else {
            ASKED.read()
        };
        self.thread.call_touching(method.name(), about, what, |info| call(&info))
    }

    fn forward_snapshot(
        &self,
        request: &SnapshotRequest<'_>,
        callback: Option<&mut SnapshotCallback<'_>>,
    ) -> Result<()> {
        let thread = self.thread;
        let mut recorded = callback.map(|callback| {
            |frame: &mut SnapshotFrame<'_>| {
                thread.begin_walk_callback();
                let wanted = callback(frame);
                thread.end_walk_callback();
                wanted
            }
        });
        self.forward(InfoMethod::DoStackSnapshot, None, |info| {
            let recorded = recorded.as_mut().map(|it| it as &mut SnapshotCallback<'_>);
            thread.walk(request.thread, || ProfilerInfo::do_stack_snapshot(info, request, recorded))
        })
    }
}
