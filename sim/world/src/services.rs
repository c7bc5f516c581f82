//! Services that the world performs for the runtime's code.

use super::step::{ASSEMBLY_LOAD, Step};
use super::{ProcessEnd, World};
use crate::stubs::{first_of, method_of};
use clr_codegen::{FunctionIndex, Service};
use clr_runtime::profiling::{CallbackKind as Kind, CallbackMode};
use clr_runtime::{Lock, ProfilerStatus};

/// Returns steps that take nested locks and release them; nothing that is done meanwhile is
/// visible.
fn locked(locks: &[Lock]) -> Vec<Step> {
    let taken = locks.iter().map(|lock| Step::Acquire(*lock));
    let given_back = locks.iter().rev().map(|lock| Step::Release(*lock));
    taken.chain(given_back).chain([Step::Return(0)]).collect()
}

impl World<'_> {
    /// Returns the steps of a service that a thread has called.
    pub(super) fn serve(&mut self, thread: usize, service: Service) -> Vec<Step> {
        let managed = self.runtime.generation.hides_exception_handling();
        self.note_service(thread, service);
        let callbacks: &[Kind] = match service {
            Service::ThreadStart => {
                let start = self.start_address(thread);
                let by_program = self.threads.get(thread).is_some_and(|thread| thread.by_program);
                // Recorded on 3.1.3, 8.0.34, 9.0.23, 10.0.15 and 11.0.0.
                let mode = if by_program { CallbackMode::Cooperative } else { CallbackMode::Any };
                let mut steps = self.thread_begins(None, mode, start);
                let begun = steps.len() - 1;
                let mut own = self.start(thread);
                own.extend(self.first_class_load(thread));
                steps.splice(begun..begun, own);
                return steps;
            }
            Service::ThreadEnd => return self.thread_end(thread),
            Service::AttachThread => {
                return self.thread_begins(Some(Step::Attach), CallbackMode::Any, 0);
            }
            Service::Malloc => return locked(&[Lock::ProcessHeap]),
            Service::LoadLibrary => return self.load_library(),
            Service::RareDisable => return Self::come_back_later(),
            Service::RestoreContext => return vec![Step::Restore],
            Service::Sleep | Service::AwaitMonitor => return vec![Step::Wait(1), Step::Return(0)],
            Service::FastHook => return vec![Step::Hook, Step::Return(0)],
            Service::FindCode => return vec![Step::Return(self.code_of(self.method()))],
            Service::Collect => return self.collect(thread),
            Service::ServeGc => return vec![Step::ServeGc],
            Service::Unload => return self.unload(),
            Service::Unloaded => return self.unloaded(),
            Service::DestroyMethod => return self.destroy_method(),
            Service::FreeCode => return self.free_code(),
            Service::BeginWrite => {
                let forbidden = Step::ForbidSuspension(true);
                return vec![forbidden, Step::Write(true), Step::Return(0)];
            }
            Service::EndWrite => {
                let allowed = Step::ForbidSuspension(false);
                return vec![Step::Write(false), allowed, Step::Return(0)];
            }
            Service::CreateHandle => &[Kind::HandleCreated],
            Service::DestroyHandle => &[Kind::HandleDestroyed],
            Service::Compile
            | Service::Compiled
            | Service::CompileStub
            | Service::LoadClass
            | Service::ReplaceOnStack
            | Service::TierUp
            | Service::ServeTiers => return self.compile(thread, service),
            Service::LoadAssembly => &ASSEMBLY_LOAD,
            Service::NameThread => &[Kind::ThreadNameChanged],
            Service::SlowHook => &[Kind::EnterLeaveSlow],
            // The GC writes the event before the runtime notifies the profiler of the object.
            Service::Allocated if self.runtime.process.get().allocation_ticks => {
                &[Kind::EventPipeEventDelivered, Kind::ObjectAllocated]
            }
            Service::Allocated => &[Kind::ObjectAllocated],
            Service::ManagedToUnmanagedCall | Service::ManagedToUnmanagedReturn => {
                &[Kind::ManagedToUnmanagedTransition]
            }
            Service::UnmanagedToManagedCall | Service::UnmanagedToManagedReturn => {
                &[Kind::UnmanagedToManagedTransition]
            }
            Service::StartThread
            | Service::JoinThread
            | Service::CallOnce
            | Service::HandleFirstChance
            | Service::HandleUnhandled
            | Service::UnhandledHandled
            | Service::HandleProcessExit
            | Service::MakeFinalizable
            | Service::AwaitFinalizers
            | Service::ServeFinalizer
            | Service::Finalized
            | Service::Exit
            | Service::Die
            | Service::TakeHandler => return self.arrange(thread, service),
            Service::CaptureFault => {
                self.capture_fault(thread);
                return vec![Step::Return(0)];
            }
            Service::Raise if managed => return self.begin_pass(thread),
            Service::Raise => return self.raise(thread),
            Service::Dispatch if managed => return self.next_of_pass(thread),
            Service::Dispatch => return self.dispatch(thread),
            Service::NextClause => return self.next_clause(thread),
            Service::Propagate => return vec![Step::Propagate],
            Service::EnterFunclet if managed => return self.call_funclet(thread),
            Service::LeaveFunclet if managed => return self.funclet_returned(thread),
            Service::EnterFunclet => return vec![Step::Return(self.enter_funclet(thread))],
            Service::LeaveFunclet => {
                self.leave_funclet(thread);
                return vec![Step::Return(0)];
            }
        };
        let callbacks = callbacks.iter().map(|kind| Step::Callback(*kind));
        callbacks.chain([Step::Return(0)]).collect()
    }

    /// Waits for the end of a suspension. A thread that has to wait reports itself, as the suspending one does (recorded
    /// on 3.1.3, 8.0.34, 9.0.23, 10.0.15 and 11.0.0).
    fn come_back_later() -> Vec<Step> {
        let preemptive = CallbackMode::Preemptive;
        vec![
            Step::Cooperative(false),
            Step::ForbidSuspension(true),
            Step::CallbackIn(Kind::RuntimeThreadSuspended, preemptive),
            Step::ForbidSuspension(false),
            Step::AwaitResume,
            Step::CallbackIn(Kind::RuntimeThreadResumed, preemptive),
            Step::Return(0),
        ]
    }

    /// Begins a thread of the runtime, or attaches a native one: it enters the thread store before the profiler is notified.
    fn thread_begins(&self, attach: Option<Step>, mode: CallbackMode, result: u64) -> Vec<Step> {
        let mut steps = self.log_of_thread();
        steps.push(Step::Acquire(Lock::ThreadStore));
        steps.extend(attach);
        steps.extend([
            Step::Release(Lock::ThreadStore),
            Step::Callback(Kind::ThreadCreated),
            Step::CallbackIn(Kind::ThreadAssignedToOSThread, mode),
            Step::Return(result),
        ]);
        steps
    }

    /// Ends a thread. The profiler is notified first, and the thread store is locked only for the
    /// removal of the thread (contract §6; `Thread::OnThreadTerminate` of src/vm/threads.cpp of
    /// CoreCLR 3.1): a profiler that blocks in the callback blocks no other thread of the runtime.
    fn thread_end(&self, thread: usize) -> Vec<Step> {
        let shut_down = [Step::ShutDown, Step::Callback(Kind::Shutdown), Step::Return(0)];
        match self.process_end {
            Some(ProcessEnd::Exit(ends)) if ends == thread => return shut_down.to_vec(),
            Some(ProcessEnd::Return(ends)) if ends == thread => {
                let before = [Step::AwaitForeground].into_iter().chain(self.process_exit());
                return before.chain(shut_down).collect();
            }
            _ => {}
        }
        vec![
            Step::Callback(Kind::ThreadDestroyed),
            Step::IdOver,
            Step::Acquire(Lock::ThreadStore),
            Step::Gone,
            Step::Release(Lock::ThreadStore),
            Step::Return(0),
        ]
    }

    /// Creates the stress log of a thread that the runtime meets for the first time, if the log is
    /// on: it takes memory from the process's heap (contract §2.4).
    fn log_of_thread(&self) -> Vec<Step> {
        if !self.runtime.process.get().stress_log {
            return Vec::new();
        }
        let mut steps = locked(&[Lock::StressLog, Lock::ProcessHeap]);
        steps.pop();
        steps
    }

    /// Loads a library: the loader lock is held all the time, while the heap and, on Windows only,
    /// the table of function tables are changed (H-11, H-12).
    fn load_library(&self) -> Vec<Step> {
        let mut steps = vec![
            Step::Acquire(Lock::Loader),
            Step::Acquire(Lock::ProcessHeap),
            Step::Release(Lock::ProcessHeap),
        ];
        if !self.runtime.generation.is_unix() {
            let table = Lock::FunctionTables;
            steps.extend([Step::Acquire(table), Step::Release(table)]);
        }
        steps.extend([Step::Release(Lock::Loader), Step::Return(0)]);
        steps
    }

    /// Returns the address of a thread's first function after the runtime has set the thread up
    /// (VA).
    fn start_address(&self, thread: usize) -> u64 {
        let Some(executed) = self.threads.get(thread) else { return 0 };
        let placed = self.expanded.placed.get(executed.start.index()).copied().unwrap_or_default();
        let entry_of = |function: FunctionIndex| self.linked.entries.get(function.index()).copied();
        let start = entry_of(placed).unwrap_or_default();
        let path = self.runtime.generation.thread_start_path();
        let is_native = executed.of_pool && self.runtime.generation.has_native_thread_pool();
        let first = first_of(path).filter(|_| executed.by_program && !is_native);
        let first = first.and_then(|first| self.expanded.shared.get(&first).copied());
        self.set_start(thread, start);
        first.and_then(entry_of).unwrap_or(start)
    }

    /// Returns the address of a method's code (VA).
    fn code_of(&self, method: u64) -> u64 {
        let id = method_of(method);
        id.and_then(|id| self.linked.entries.get(id.index())).copied().unwrap_or_default()
    }

    /// Returns true if the profiler has requested a callback (contract §1.3).
    pub(super) fn wants(&self, kind: Kind) -> bool {
        let process = self.runtime.process.get();
        let is_reported = kind != Kind::ThreadDestroyed || !process.shutting_down;
        is_reported
            && process.profiler == ProfilerStatus::Active
            && (process.requests(kind) || kind == Kind::ObjectAllocated && self.wants_last_object())
    }

    /// Returns true if the profiler has asked for objects of the heap in which the last object was made (observed on 8.0.34,
    /// 10.0.15 and 11.0.0; for others assumed).
    fn wants_last_object(&self) -> bool {
        let objects = self.runtime.objects.borrow();
        let last = objects.get(objects.made()).unwrap_or_default();
        self.runtime.process.get().requests_objects_of(last.heap)
    }
}
