//! The profiling methods as called by code under a schedule: other threads may run before each call
//! and during waits.

use super::callback::Callback;
use super::footprint::Footprint;
use super::history::TurnEvent;
use super::lock::LockName;
use super::planted_bug::Bug;
use super::thread::CurrentThread;
use super::verdict::ProfilerRule;
use clr_machine::Machine;
use clr_runtime::Outcome;
use clr_runtime::profiling::{Caller, GcRequest, HResult, ProfilerCallback};
use clr_runtime::{OsThreadId, Profiler, Runtime, Wait};
use clr_walker::profiling::{
    CallError, CodeRange, EventMask, FrameInfo, FunctionId, FunctionInfo, ProfilerInfo, ReJitId,
    SnapshotCallback, SnapshotFlags, SnapshotFrame, ThreadId,
};

type Result<T> = core::result::Result<T, CallError<Outcome>>;

/// Maximum nesting of calls in callbacks: a real process would eventually run out of stack, and so
/// would a coroutine.
const NESTED: u32 = 8;

/// Methods that may trigger a GC, or wait for one: EnumThreads takes the lock of the thread list, which a GC holds.
const TRIGGERING: [&str; 6] = [
    "GetFunctionFromIP2",
    "GetFunctionFromIP3",
    "GetCodeInfo3",
    "GetCodeInfo4",
    "EnumThreads",
    "ForceGC",
];

/// The state of the runtime that its methods look at.
const ASKED: Footprint =
    Footprint::CODE.and(Footprint::RUNTIME).and(Footprint::THREADS).and(Footprint::SUSPENSION);

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
    /// to name the frames of a walk that has asked nothing. Such calls are no part of the history.
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
        let what = match name {
            "ForceGC" => self.kernel.of_runtime(),
            "SuspendRuntime" | "ResumeRuntime" if !Bug::SuspensionWithoutFootprint.is_planted() => {
                self.kernel.of_runtime()
            }
            _ => Footprint::CODE | Footprint::RUNTIME | Footprint::THREADS | ASKED.read(),
        };
        self.call_touching(name, what, method)
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

    /// Calls a method of the runtime all of whose turns touch `what`.
    fn call_touching<T>(
        &self,
        name: &'static str,
        what: Footprint,
        method: impl FnOnce(Caller<'_, 'b, Machine>) -> Result<T>,
    ) -> Result<T> {
        let thread = self;
        if TRIGGERING.contains(&name) {
            thread.may_trigger();
        }
        thread.switch();
        thread.record(TurnEvent::Called(name, None));
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
        let mark = thread.kernel.is_recorded().then(|| runtime.log.mark());
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
        if thread.escapes() {
            runtime.change_thread(thread.os, |thread| thread.escapes = false);
        } else {
            thread.record(TurnEvent::Returned(name, outcome));
            if outcome != Outcome::Returned(HResult::OK) {
                thread.kernel.explain(thread.me, &events);
            }
        }
        if let Err(CallError::Fatal(fatal)) = result {
            thread.killed(fatal);
        }
        result
    }
}

impl<'b> Info<'_, '_, 'b> {
    /// Calls a method that asks the runtime for something, and changes nothing that others ask for.
    fn asks<T>(
        self,
        name: &'static str,
        method: impl FnOnce(Caller<'_, 'b, Machine>) -> Result<T>,
    ) -> Result<T> {
        let what = if Bug::QuestionWithoutFootprint.is_planted() {
            Footprint::default()
        } else {
            ASKED.read()
        };
        self.thread.call_touching(name, what, method)
    }

    fn call<T>(
        self,
        name: &'static str,
        method: impl FnOnce(Caller<'_, 'b, Machine>) -> Result<T>,
    ) -> Result<T> {
        self.thread.call_runtime(name, method)
    }
}

impl Info<'_, '_, '_> {
    /// Collects all generations: `ForceGC`.
    ///
    /// # Errors
    /// Returns the errors of [`Caller::force_gc`].
    pub fn force_gc(&self) -> Result<()> {
        self.call("ForceGC", |info| info.force_gc())
    }
}

impl ProfilerInfo for Info<'_, '_, '_> {
    type Fatal = Outcome;

    fn do_stack_snapshot(
        &self,
        id: ThreadId,
        callback: Option<&mut SnapshotCallback<'_>>,
        flags: SnapshotFlags,
        client_data: u64,
        context: Option<&[u8]>,
        context_size: u32,
    ) -> Result<()> {
        let thread = self.thread;
        self.asks("DoStackSnapshot", |info| {
            thread.walk(id, || {
                let mut recording_callback = callback.map(|callback| {
                    |frame: &mut SnapshotFrame<'_>| {
                        thread.begin_walk_callback();
                        let wanted = callback(frame);
                        thread.end_walk_callback();
                        wanted
                    }
                });
                let recording_callback = recording_callback
                    .as_mut()
                    .map(|recording_callback| recording_callback as &mut SnapshotCallback<'_>);
                ProfilerInfo::do_stack_snapshot(
                    &info,
                    id,
                    recording_callback,
                    flags,
                    client_data,
                    context,
                    context_size,
                )
            })
        })
    }

    fn get_function_from_ip(&self, ip: u64) -> Result<FunctionId> {
        self.asks("GetFunctionFromIP", |info| info.get_function_from_ip(ip))
    }

    fn get_function_from_ip2(&self, ip: u64) -> Result<(FunctionId, ReJitId)> {
        self.asks("GetFunctionFromIP2", |info| info.get_function_from_ip2(ip))
    }

    fn get_function_from_ip3(&self, ip: u64) -> Result<(FunctionId, ReJitId)> {
        self.asks("GetFunctionFromIP3", |info| info.get_function_from_ip3(ip))
    }

    fn get_code_info(&self, function: FunctionId) -> Result<CodeRange> {
        self.asks("GetCodeInfo", |info| info.get_code_info(function))
    }

    fn get_code_info2(&self, function: FunctionId, ranges: &mut [CodeRange]) -> Result<u32> {
        self.asks("GetCodeInfo2", |info| info.get_code_info2(function, ranges))
    }

    fn get_code_info3(
        &self,
        function: FunctionId,
        rejit: ReJitId,
        ranges: &mut [CodeRange],
    ) -> Result<u32> {
        self.asks("GetCodeInfo3", |info| info.get_code_info3(function, rejit, ranges))
    }

    fn get_code_info4(&self, start: u64, ranges: &mut [CodeRange]) -> Result<u32> {
        self.asks("GetCodeInfo4", |info| info.get_code_info4(start, ranges))
    }

    fn get_function_info2(
        &self,
        function: FunctionId,
        frame_info: Option<FrameInfo<'_>>,
        type_arguments: u32,
    ) -> Result<FunctionInfo> {
        self.asks("GetFunctionInfo2", |info| {
            info.get_function_info2(function, frame_info, type_arguments)
        })
    }

    fn get_current_thread_id(&self) -> Result<ThreadId> {
        self.asks("GetCurrentThreadID", |info| info.get_current_thread_id())
    }

    fn get_thread_info(&self, thread: ThreadId) -> Result<u32> {
        self.asks("GetThreadInfo", |info| {
            self.thread.is_about(thread);
            info.get_thread_info(thread)
        })
    }

    fn get_handle_from_thread(&self, thread: ThreadId) -> Result<u64> {
        self.asks("GetHandleFromThread", |info| {
            self.thread.is_about(thread);
            info.get_handle_from_thread(thread)
        })
    }

    fn enum_threads(&self) -> Result<Vec<ThreadId>> {
        self.asks("EnumThreads", |info| info.enum_threads())
    }

    fn initialize_current_thread(&self) -> Result<()> {
        self.call("InitializeCurrentThread", |info| info.initialize_current_thread())
    }

    fn suspend_runtime(&self) -> Result<()> {
        self.call("SuspendRuntime", |info| info.suspend_runtime())
    }

    fn resume_runtime(&self) -> Result<()> {
        self.call("ResumeRuntime", |info| info.resume_runtime())
    }

    fn get_event_mask(&self) -> Result<EventMask> {
        self.asks("GetEventMask", |info| info.get_event_mask())
    }

    fn set_event_mask(&self, mask: EventMask) -> Result<()> {
        self.call("SetEventMask", |info| info.set_event_mask(mask))
    }
}
