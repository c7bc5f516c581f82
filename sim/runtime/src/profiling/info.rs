//! `ICorProfilerInfo` over the simulated runtime: the companion methods of `DoStackSnapshot`
//! (contract §5).

use super::faults::TYPE_LOAD;
use super::{Accepts, Caller, Effect, HResult, InfoMethod, ProfilerCallback, SuspensionReason};
use crate::code_manager::{CodeVersion, Method, MethodIndex};
use crate::explain::Event;
use crate::generation::ProfilerSuspension;
use crate::thread::{Thread, ThreadObject};
use crate::{
    CallbackState, Lock, Managed, Outcome, ProfilerAction, ProfilerStatus, Suspension,
    TargetMemory, ThreadLife,
};
use clr_unwind::Unreadable;
use clr_walker::profiling::{
    CallError, CodeRange, EventMask, FrameInfo, FunctionId, FunctionInfo, ProfilerInfo, ReJitId,
    SnapshotCallback, SnapshotRequest, ThreadId,
};

pub(super) type Result<T> = core::result::Result<T, CallError<Outcome>>;

/// Fails with E_NOTIMPL unless the runtime's interfaces have the method.
fn needs(exists: bool) -> Result<()> {
    if exists { Ok(()) } else { fail(HResult::NOT_IMPLEMENTED) }
}

pub(super) fn fail<T>(result: HResult) -> Result<T> {
    Err(result.into())
}

impl From<Outcome> for CallError<Outcome> {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Returned(result) => Self::Failed(result),
            fatal => Self::Fatal(fatal),
        }
    }
}

impl<M: TargetMemory> Caller<'_, '_, M> {
    /// Makes the checks that every method begins with.
    ///
    /// # Errors
    /// Returns the HRESULT of a method that refuses the call.
    pub fn begin(&self, accepts: Accepts) -> Result<()> {
        match accepts {
            Accepts::All | Accepts::Special => self.asynchronous(),
            Accepts::Callbacks => self.synchronous(CallbackState::IN_CALLBACK),
            Accepts::TriggeringCallbacks => self.triggering(),
            Accepts::LookUps => self.looking_up(),
        }
    }

    /// Begins a call of a method: E_NOTIMPL unless the runtime's interfaces have it.
    fn begin_method(&self, method: InfoMethod) -> Result<()> {
        self.notice(method);
        needs(self.runtime.generation.profiler_info() >= method.interface())?;
        self.begin(method.accepts())
    }

    /// Notices a method that takes locks which a suspended thread may own.
    pub(super) fn notice(&self, method: InfoMethod) {
        if method.has(Effect::TakesLocks) {
            self.runtime.did(ProfilerAction::Call(method.name()));
        }
    }

    /// Checks that the profiler is not being detached, as every method does. A thread's first call
    /// creates its per-thread state.
    pub(super) fn asynchronous(&self) -> Result<()> {
        let detaching = self.runtime.process.get().profiler == ProfilerStatus::Detaching;
        if detaching && self.runtime.generation.has_detach() {
            self.runtime.record(|| Event::Detaching);
            return fail(HResult::PROFILER_DETACHING);
        }
        Ok(self.initialize()?)
    }

    /// Checks the caller of a method that threads of the runtime may call only in callbacks
    /// (C-122).
    fn synchronous(&self, needed: CallbackState) -> Result<()> {
        self.asynchronous()?;
        let known = self.runtime.object_of(self.os).is_some();
        if known && !self.callback_state().passes(needed) {
            return fail(HResult::UNSUPPORTED_CALL_SEQUENCE);
        }
        Ok(())
    }

    /// Checks the caller of a method that may trigger a GC.
    fn triggering(&self) -> Result<()> {
        let CallbackState(callback) = CallbackState::IN_CALLBACK;
        self.synchronous(CallbackState(callback | CallbackState::IN_TRIGGERS_SCOPE.0))
    }

    /// Checks the caller of a method that looks code up and may trigger a GC (C-119, C-173).
    fn looking_up(&self) -> Result<()> {
        if self.runtime.generation.looks_up_only_in_triggering_callbacks() {
            self.triggering()
        } else {
            self.synchronous(CallbackState::IN_CALLBACK)
        }
    }

    pub(super) fn callback_state(&self) -> CallbackState {
        self.runtime.thread(self.os, |thread| thread.callback_state).unwrap_or_default()
    }

    /// Fails if the caller must not be suspended: it may hold the lock that a lookup needs (C-116).
    /// Only GetFunctionFromIP and GetCodeInfo check that, and GetCodeInfo2 where the generation says so.
    fn outside_forbid_region(&self) -> Result<()> {
        let Some(id) = self.runtime.object_of(self.os) else { return Ok(()) };
        if self.read(|memory| ThreadObject(id).forbid_suspend(memory))? != 0 {
            return fail(HResult::ASYNCHRONOUS_UNSAFE);
        }
        Ok(())
    }

    /// Makes the check of GetCodeInfo2 where it has one: the id comes first.
    fn outside_forbid_region_2(&self, function: FunctionId) -> Result<()> {
        if function == FunctionId(0) {
            return fail(HResult::INVALID_ARGUMENT);
        }
        self.outside_forbid_region()
    }

    /// Returns the managed code at `ip` (contract §5.1).
    fn look_up(&self, ip: u64) -> Result<Managed<'_>> {
        let runtime = self.runtime;
        if !runtime.process.get().gc_initialized {
            return fail(HResult::NOT_YET_AVAILABLE);
        }
        if self.is_code_manager_busy()
            && runtime.generation.refuses_to_wait()
            && runtime.object_of(self.os).is_some()
            && !self.callback_state().passes(CallbackState::IN_CALLBACK)
        {
            return fail(HResult::ASYNCHRONOUS_UNSAFE);
        }
        self.find_code(ip)?.ok_or_else(|| HResult::FAIL.into())
    }

    fn method(&self, function: FunctionId) -> Result<(MethodIndex, &Method)> {
        if function == FunctionId(0) {
            return fail(HResult::INVALID_ARGUMENT);
        }
        let found = self.runtime.code.method(function);
        let (index, method) = found.ok_or(CallError::Failed(HResult::INVALID_ARGUMENT))?;
        if self.runtime.code.is_dangling(function) {
            // The object of the id was freed together with the code (H-18).
            let freed = Unreadable { address: function.0, len: 8 };
            return Err(self.runtime.fault(freed).into());
        }
        if method.unrestored {
            return fail(HResult::DATA_INCOMPLETE);
        }
        Ok((index, method))
    }

    /// Returns the most recent version of a method's code that `wanted` accepts. Its address is
    /// looked up like any other (C-125).
    fn version(
        &self,
        function: FunctionId,
        wanted: impl Fn(&CodeVersion) -> bool,
    ) -> Result<&CodeVersion> {
        let (index, _) = self.method(function)?;
        let version = self.runtime.code.versions(index).filter(|code| wanted(code)).last();
        let code = self.code_at(version.map_or(0, |code| code.start))?;
        self.compiled(function)?;
        Ok(code)
    }

    /// Refuses a function that is compiled for the first time now: it has no code yet.
    ///
    /// # Errors
    /// Returns `CORPROF_E_FUNCTION_NOT_COMPILED`.
    pub fn compiled(&self, function: FunctionId) -> Result<()> {
        if self.runtime.unfinished.borrow().is_compiling(function) {
            return fail(HResult::FUNCTION_NOT_COMPILED);
        }
        Ok(())
    }

    /// Returns false while a module is loaded: its place is not known yet, nor how it and its assembly belong together.
    pub fn is_loaded(&self, module: u64) -> bool {
        !self.runtime.unfinished.borrow().is_loading(module)
    }

    /// Returns the code that an address belongs to: `GetCodeInfoFromCodeStart`. It takes the code
    /// manager's reader lock as GetFunctionFromIP does, so it may wait or be refused.
    fn code_at(&self, start: u64) -> Result<&CodeVersion> {
        match self.look_up(start) {
            Ok(found) => Ok(found.code),
            Err(CallError::Failed(HResult::ASYNCHRONOUS_UNSAFE)) => {
                fail(HResult::ASYNCHRONOUS_UNSAFE)
            }
            Err(CallError::Failed(_)) => fail(HResult::FUNCTION_NOT_COMPILED),
            Err(fatal) => Err(fatal),
        }
    }

    /// Takes the lock of the thread list, as the enumeration of threads does (contract §5.12, G17).
    fn lock_threads(&self) -> Result<()> {
        let (runtime, process) = (self.runtime, self.runtime.process.get());
        let holds = process.owner(Lock::ThreadStore) == Some(self.os);
        // After SuspendRuntime its caller holds the lock on behalf of the profiler.
        if process.suspended_by_profiler || holds && !runtime.generation.locks_threads_twice() {
            return Ok(());
        }
        self.go_through(&[Lock::ThreadStore])?;
        let forgets = holds && runtime.generation.forgets_who_locked_threads();
        runtime.change_process(|process| process.thread_store_forgotten |= forgets);
        Ok(())
    }

    /// Executes the checks that SuspendRuntime and ResumeRuntime have in common (contract §5.9).
    fn suspending(&self) -> Result<()> {
        let generation = self.runtime.generation;
        needs(generation.profiler_suspension() != ProfilerSuspension::None)?;
        if generation.suspends_only_in_callbacks() {
            self.triggering()?;
        } else {
            self.asynchronous()?;
            self.outside_callbacks_without_triggers()?;
        }
        if self.runtime.process.get().started {
            Ok(())
        } else {
            fail(HResult::RUNTIME_UNINITIALIZED)
        }
    }

    /// Returns the OS id and the handle of the thread with `id`. Memory that is not a Thread is
    /// read all the same.
    fn known_thread(&self, id: ThreadId) -> Result<(u32, u64)> {
        let is_refused = id == ThreadId(0) && self.runtime.generation.refuses_thread_0();
        if is_refused || self.read(|memory| ThreadObject(id).is_gc_special(memory))? {
            return fail(HResult::INVALID_ARGUMENT);
        }
        let known = self.runtime.thread_of(id, |thread| (thread.os.0, thread.handle));
        known.ok_or_else(|| HResult::INVALID_ARGUMENT.into())
    }
}

/// Writes as many pieces of code as there is room for, and returns the total number of pieces
/// (C-125). If `start` is not the start of the hot piece, it is taken for that of the cold one,
/// which is empty if there is none.
fn pieces(code: &CodeVersion, start: u64, ranges: &mut [CodeRange]) -> u32 {
    let hot = CodeRange { start: code.start, size: code.size };
    let cold = code.cold.map(|(start, size)| CodeRange { start, size });
    let count = 1 + u32::from(cold.is_some());
    let cold = cold.unwrap_or(CodeRange { start: 0, size: 0 });
    let pieces = if start == hot.start { [hot, cold] } else { [cold, hot] };
    for (room, piece) in ranges.iter_mut().zip(pieces).take(count as usize) {
        *room = piece;
    }
    count
}

impl<M: TargetMemory> ProfilerInfo for Caller<'_, '_, M> {
    type Fatal = Outcome;

    fn do_stack_snapshot(
        &self,
        request: &SnapshotRequest<'_>,
        callback: Option<&mut SnapshotCallback<'_>>,
    ) -> Result<()> {
        match Caller::do_stack_snapshot(self, request, callback) {
            Outcome::Returned(HResult::OK) => Ok(()),
            outcome => Err(outcome.into()),
        }
    }

    fn get_function_from_ip(&self, ip: u64) -> Result<FunctionId> {
        self.asynchronous()?;
        self.outside_forbid_region()?;
        let method = self.look_up(ip)?.method;
        if method.kind.has_metadata() { Ok(method.id) } else { fail(HResult::FAIL) }
    }

    fn get_function_from_ip2(&self, ip: u64) -> Result<(FunctionId, ReJitId)> {
        self.begin_method(InfoMethod::GetFunctionFromIP2)?;
        let Managed { method, code, .. } = self.look_up(ip)?;
        if method.kind.has_metadata() { Ok((method.id, code.rejit)) } else { fail(HResult::FAIL) }
    }

    fn get_function_from_ip3(&self, ip: u64) -> Result<(FunctionId, ReJitId)> {
        self.begin_method(InfoMethod::GetFunctionFromIP3)?;
        let Managed { method, code, .. } = self.look_up(ip)?;
        Ok((method.id, code.rejit))
    }

    fn get_code_info(&self, function: FunctionId) -> Result<CodeRange> {
        self.begin_method(InfoMethod::GetCodeInfo)?;
        if self.runtime.generation.forbids_code_info_2() {
            // GetCodeInfo is a call of GetCodeInfo2 there.
            self.outside_forbid_region_2(function)?;
        } else {
            self.outside_forbid_region()?;
        }
        let code = self.version(function, |code| code.rejit == ReJitId(0))?;
        Ok(CodeRange { start: code.start, size: code.size })
    }

    fn get_code_info2(&self, function: FunctionId, ranges: &mut [CodeRange]) -> Result<u32> {
        self.begin_method(InfoMethod::GetCodeInfo2)?;
        if self.runtime.generation.forbids_code_info_2() {
            self.outside_forbid_region_2(function)?;
        }
        let code = self.version(function, |code| code.rejit == ReJitId(0))?;
        Ok(pieces(code, code.start, ranges))
    }

    fn get_code_info3(
        &self,
        function: FunctionId,
        rejit: ReJitId,
        ranges: &mut [CodeRange],
    ) -> Result<u32> {
        self.begin_method(InfoMethod::GetCodeInfo3)?;
        let code = self.version(function, |code| code.rejit == rejit)?;
        Ok(pieces(code, code.start, ranges))
    }

    fn get_code_info4(&self, start: u64, ranges: &mut [CodeRange]) -> Result<u32> {
        self.begin_method(InfoMethod::GetCodeInfo4)?;
        Ok(pieces(self.code_at(start)?, start, ranges))
    }

    fn get_function_info2(
        &self,
        function: FunctionId,
        frame_info: Option<FrameInfo<'_>>,
        type_arguments: u32,
    ) -> Result<FunctionInfo> {
        self.begin_method(InfoMethod::GetFunctionInfo2)?;
        if let Some(frame_info) = frame_info {
            let of = self.runtime.frame_info.get();
            if of != Some((frame_info.handle(), function)) {
                return fail(HResult::INVALID_ARGUMENT);
            }
        }
        let (_, method) = self.method(function)?;
        // A frameInfo has no arguments of the frame, so it adds no information (C-124).
        Ok(FunctionInfo {
            class: if method.shared { 0 } else { method.class },
            module: method.module,
            token: method.token,
            type_argument_count: method.type_arguments.len() as u32,
            type_arguments: method
                .type_arguments
                .iter()
                .copied()
                .take(type_arguments as usize)
                .collect(),
        })
    }

    fn get_class_from_token_and_type_args(
        &self,
        module: u64,
        token: u32,
        type_arguments: &[u64],
    ) -> Result<u64> {
        self.begin_method(InfoMethod::GetClassFromTokenAndTypeArgs)?;
        let runtime = self.runtime;
        if !runtime.process.get().started {
            return fail(HResult::RUNTIME_UNINITIALIZED);
        }
        let Some(module) = runtime.metadata.module(module) else {
            return fail(HResult::DATA_INCOMPLETE);
        };
        self.may_fail("GetClassFromTokenAndTypeArgs")?;
        // The class loader allocates objects, and data from a loader heap.
        self.become_cooperative()?;
        self.go_through(&[Lock::LoaderHeap])?;
        let found = module.types().iter().find(|one| one.token == token).filter(|one| {
            let arity = module.parameters_of(one.token).count();
            type_arguments.is_empty() || type_arguments.len() == arity
        });
        found.map(|one| one.class).ok_or_else(|| TYPE_LOAD.into())
    }

    fn get_current_thread_id(&self) -> Result<ThreadId> {
        self.begin_method(InfoMethod::GetCurrentThreadID)?;
        let Some(id) = self.runtime.object_of(self.os) else {
            return fail(HResult::NOT_MANAGED_THREAD);
        };
        if self.read(|memory| ThreadObject(id).is_gc_special(memory))? {
            return fail(HResult::NOT_MANAGED_THREAD);
        }
        Ok(id)
    }

    fn get_thread_info(&self, thread: ThreadId) -> Result<u32> {
        self.begin_method(InfoMethod::GetThreadInfo)?;
        Ok(self.known_thread(thread)?.0)
    }

    fn get_handle_from_thread(&self, thread: ThreadId) -> Result<u64> {
        self.begin_method(InfoMethod::GetHandleFromThread)?;
        match self.known_thread(thread)? {
            (_, 0) => fail(HResult::INVALID_ARGUMENT),
            (_, handle) => {
                self.may_fail("GetHandleFromThread")?;
                Ok(handle)
            }
        }
    }

    fn enum_threads(&self) -> Result<Vec<ThreadId>> {
        self.begin_method(InfoMethod::EnumThreads)?;
        self.may_fail("EnumThreads")?;
        self.lock_threads()?;
        let threads = self.runtime.threads.borrow();
        let live = |thread: &&Thread| thread.life == ThreadLife::Running && !thread.reported_dead;
        let live = threads.iter().filter(live);
        Ok(live.filter(|thread| !thread.is_gc_special).filter_map(|thread| thread.object).collect())
    }

    fn initialize_current_thread(&self) -> Result<()> {
        self.begin_method(InfoMethod::InitializeCurrentThread)
    }

    fn force_gc(&self) -> Result<()> {
        self.force_a_gc()
    }

    fn suspend_runtime(&self) -> Result<()> {
        self.notice(InfoMethod::SuspendRuntime);
        self.suspending()?;
        let (runtime, os) = (self.runtime, self.os);
        match runtime.process.get().suspension {
            Suspension::None => {}
            // The CLR knows the suspending thread by its Thread object. Without one the suspension is
            // counted once more, but never counted down again (contract §5.9).
            Suspension::Suspended(owner) if owner == os && runtime.object_of(os).is_none() => {
                runtime.change_process(|process| {
                    process.profiler_suspensions += 1;
                    process.suspended_by_profiler = true;
                });
                return Ok(());
            }
            _ => return fail(HResult::SUSPENSION_IN_PROGRESS),
        }
        self.may_fail("SuspendRuntime")?;
        let marks_first =
            runtime.generation.profiler_suspension() == ProfilerSuspension::MarkedBefore;
        runtime.change_process(|process| process.suspended_by_profiler |= marks_first);
        self.stop_threads(SuspensionReason::Profiler)?;
        runtime.change_process(|process| {
            process.suspended_by_profiler |= !marks_first;
            process.profiler_suspensions += 1;
        });
        Ok(())
    }

    fn resume_runtime(&self) -> Result<()> {
        self.suspending()?;
        let runtime = self.runtime;
        if !runtime.process.get().suspended_by_profiler {
            return fail(HResult::UNSUPPORTED_CALL_SEQUENCE);
        }
        // Runtimes that set the mark first remove it last.
        let unmarks_last =
            runtime.generation.profiler_suspension() == ProfilerSuspension::MarkedBefore;
        runtime.change_process(|process| process.suspended_by_profiler = unmarks_last);
        self.report_resume();
        runtime.change_process(|process| {
            process.profiler_suspensions = process.profiler_suspensions.saturating_sub(1);
            if process.profiler_suspensions == 0 {
                // Regardless of the resuming thread, the suspending thread owns the lock (contract
                // §5.10).
                if let Some(by) = process.suspension.by() {
                    process.release(Lock::ThreadStore, by);
                }
                process.suspension = Suspension::None;
            }
        });
        self.report(ProfilerCallback::RuntimeResumeFinished);
        // Meanwhile another thread may have suspended the runtime: then its mark is lost.
        runtime.change_process(|process| process.suspended_by_profiler &= !unmarks_last);
        Ok(())
    }

    fn get_event_mask(&self) -> Result<EventMask> {
        self.begin_method(InfoMethod::GetEventMask)?;
        Ok(self.runtime.process.get().event_mask)
    }

    fn set_event_mask(&self, mask: EventMask) -> Result<()> {
        self.begin_method(InfoMethod::SetEventMask)?;
        let process = self.runtime.process.get();
        let generation = self.runtime.generation;
        let starting = process.profiler == ProfilerStatus::InitializingForStartup;
        let changed = mask.0 ^ process.event_mask.0;
        if !starting && changed & generation.immutable_events() != 0 {
            return fail(HResult::FAIL);
        }
        if process.attached && mask.0 & !generation.attachable_events() != 0 {
            return fail(HResult::UNSUPPORTED_FOR_ATTACHING_PROFILER);
        }
        self.runtime.change_process(|process| process.event_mask = mask);
        Ok(())
    }
}
