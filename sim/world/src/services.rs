//! Services that the world performs for the runtime's code.

use super::arrangement::Awaited;
use super::exceptions::Action;
use super::{ProcessEnd, World};
use crate::stubs::{Identity, first_of, method_of};
use clr_codegen::{CodeKind, FunctionIndex, Service};
use clr_runtime::profiling::{CallbackKind as Kind, CallbackMode};
use clr_runtime::{Lock, MethodKind};
use clr_unwind::Gpr;
use clr_walker::profiling::EventMask;

/// A part of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// The profiler is called back.
    Callback(Kind),
    /// The profiler is called back in another mode than the usual one of that callback.
    CallbackIn(Kind, CallbackMode),
    /// Code has called a hook of the profiler.
    Hook,
    /// The service returns with this value in rax.
    Return(u64),
    /// The runtime creates a Thread object for the thread.
    Attach,
    /// The thread is no longer a thread of the runtime.
    Gone,
    /// The thread's id is over for the profiler, though the thread is not removed yet.
    IdOver,
    /// The thread waits until no other foreground thread is left.
    AwaitForeground,
    /// The runtime marks itself as shutting down.
    ShutDown,
    /// The thread changes its mode.
    Cooperative(bool),
    /// The thread forbids its suspension, or allows it again.
    ForbidSuspension(bool),
    /// The thread waits this number of times.
    Wait(u8),
    /// The thread takes a lock as soon as it is free.
    Acquire(Lock),
    /// The thread releases a lock.
    Release(Lock),
    /// The thread waits until the runtime is not suspended by another one, and becomes cooperative.
    AwaitResume,
    /// The suspension of the runtime enters a phase.
    Suspend(Phase),
    /// The thread begins to write to the code manager's tables as soon as no other thread reads or
    /// writes them (true), or has written (false).
    Write(bool),
    /// The code of a method is freed.
    Free(FunctionIndex),
    /// The thread requests a GC from the server GC's thread.
    AskForGc,
    /// The thread waits until this number of GCs has been made.
    AwaitGc(u32),
    /// The server GC's thread waits for a request, or for the end of all other threads.
    ServeGc,
    /// The server GC's thread has made this number of GCs.
    MadeGc(u32),
    /// The thread stops all other threads, and waits until they have stopped.
    StopOthers,
    /// The registers from before a redirection are restored.
    Restore,
    /// The thread waits for something that another thread of the program does.
    AwaitProgram(Awaited),
    /// The handler of the process's end is queued for the finalizer's thread.
    RaiseProcessExit,
    /// The finalizer's thread takes the next method.
    TakeFinalizer,
    /// The process ends; true after a fatal error.
    Die(bool),
    /// The handler of first-chance exceptions is called instead of the service.
    NotifyFirstChance,
    /// An exception advances.
    Exception(Action),
    /// An exception continues in native code.
    Propagate,
}

/// The phase of a suspension of the runtime by the thread itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Running,
    Suspending,
    Suspended,
}

/// All events that a world has: the event mask of a world's profiler unless another one is set.
pub const ALL_EVENTS: EventMask = EventMask(0x1187_FFFF);

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
                return self.thread_begins(None, mode, start);
            }
            Service::ThreadEnd => return self.thread_end(thread),
            Service::AttachThread => {
                return self.thread_begins(Some(Step::Attach), CallbackMode::Any, 0);
            }
            Service::Malloc => return locked(&[Lock::ProcessHeap]),
            Service::LoadLibrary => return self.load_library(),
            Service::RareDisable => return Self::come_back_later(),
            Service::RestoreContext => return vec![Step::Restore],
            Service::Wait => return vec![Step::Wait(1), Step::Return(0)],
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
            Service::Compile => return self.compilation(),
            Service::Compiled if self.has_metadata(method_of(self.method())) => {
                &[Kind::JITCompilationFinished]
            }
            Service::Compiled => &[Kind::DynamicMethodJITCompilationFinished],
            Service::CompileStub => &[
                Kind::DynamicMethodJITCompilationStarted,
                Kind::DynamicMethodJITCompilationFinished,
            ],
            Service::LoadClass => {
                let mut steps = Self::class_load().to_vec();
                steps.push(Step::Return(0));
                return steps;
            }
            Service::LoadAssembly => &[
                Kind::AssemblyLoadStarted,
                Kind::ModuleLoadStarted,
                Kind::ModuleLoadFinished,
                Kind::AssemblyLoadFinished,
            ],
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

    /// Returns the callbacks of compiling the method in r10: code of an image is only searched for.
    /// Other compilations finish when the code manager knows the code.
    fn compilation(&self) -> Vec<Step> {
        let function = method_of(self.method());
        let functions = &self.expanded.program.functions;
        let kind = function.and_then(|id| functions.get(id.index())).map(|f| f.kind);
        if kind == Some(CodeKind::ReadyToRun) {
            return vec![
                Step::Callback(Kind::JITCachedFunctionSearchStarted),
                Step::Callback(Kind::JITCachedFunctionSearchFinished),
                Step::Return(0),
            ];
        }
        let has_metadata = self.has_metadata(function);
        let mut steps = if has_metadata { Self::class_load().to_vec() } else { Vec::new() };
        steps.extend([
            Step::Callback(if has_metadata {
                Kind::JITCompilationStarted
            } else {
                Kind::DynamicMethodJITCompilationStarted
            }),
            Step::Acquire(Lock::LoaderHeap),
            Step::Release(Lock::LoaderHeap),
            Step::Return(1),
        ]);
        steps
    }

    /// Returns true if a method is not dynamic: the callbacks of its compilation are other ones
    /// (`JitCompileCodeLockedEventWrapper` of src/vm/prestub.cpp of CoreCLR 3.1.23).
    fn has_metadata(&self, function: Option<FunctionIndex>) -> bool {
        let identity = function.and_then(|id| self.expanded.identities.get(id.index()));
        let dynamic = [MethodKind::Dynamic, MethodKind::IlStub].map(Identity::Method);
        identity.is_none_or(|identity| !dynamic.contains(identity))
    }

    /// Loads a class: its data is allocated from a loader heap in any mode (G14).
    const fn class_load() -> [Step; 4] {
        [
            Step::Callback(Kind::ClassLoadStarted),
            Step::Acquire(Lock::LoaderHeap),
            Step::Release(Lock::LoaderHeap),
            Step::Callback(Kind::ClassLoadFinished),
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

    /// Returns the method that the current thread names in r10.
    fn method(&self) -> u64 {
        self.runtime.memory.borrow().cpu().get(Gpr::R10)
    }

    /// Returns the address of a thread's first function after the runtime has set the thread up
    /// (VA).
    fn start_address(&self, thread: usize) -> u64 {
        let Some(executed) = self.threads.get(thread) else { return 0 };
        let placed = self.expanded.placed.get(executed.start.index()).copied().unwrap_or_default();
        let entry_of = |function: FunctionIndex| self.linked.entries.get(function.index()).copied();
        let start = entry_of(placed).unwrap_or_default();
        let path = self.runtime.generation.thread_start_path();
        let first = first_of(path).filter(|_| executed.by_program);
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
        is_reported && process.event_mask.contains(kind.event())
    }
}
