//! The methods of ICorProfilerInfo that a profiler calls, each said once: [`ProfilerInfo`], facts about its methods, and
//! wrappers are made of one list.

use super::{
    CallError, CodeRange, EventMask, FrameInfo, FunctionId, FunctionInfo, HResult, ReJitId,
    SnapshotCallback, SnapshotRequest, ThreadId,
};
use alloc::vec::Vec;

/// The threads of the runtime that may call a method. Threads that the runtime does not know may call each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Accepts {
    /// All threads: the method is asynchronous.
    All,
    /// Threads in callbacks (C-122).
    Callbacks,
    /// Threads in callbacks in which a GC may be triggered.
    TriggeringCallbacks,
    /// As [`TriggeringCallbacks`](Self::TriggeringCallbacks), but threads in any callback on .NET 10 (C-119, C-173).
    LookUps,
    /// Threads for which a rule of the method's own holds.
    Special,
}

/// A consequence of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// The call takes locks that a suspended thread may own.
    TakesLocks,
    /// The call may trigger a GC, or wait for one: no lock may be held that callbacks of the GC take (H-06).
    AwaitsGc,
    /// The call changes what later calls return.
    Changes,
    /// The call stops the threads of the runtime, or lets them continue.
    StopsThreads,
}

/// The result of a call of an implementation `I`.
pub type Called<T, I> = Result<T, CallError<<I as ProfilerInfo>::Fatal>>;

/// A wrapper of another [`ProfilerInfo`], which it calls in its own way. It has all methods of [`ProfilerInfo`].
pub trait ForwardInfo {
    /// The wrapped implementation.
    type To: ProfilerInfo;

    /// Makes a call of a method, which is about `thread` if that is given.
    ///
    /// # Errors
    /// Returns the error of the call.
    fn forward<T>(
        &self,
        method: InfoMethod,
        thread: Option<ThreadId>,
        call: impl FnOnce(&Self::To) -> Called<T, Self::To>,
    ) -> Called<T, Self::To>;

    /// Makes a call of `DoStackSnapshot`.
    ///
    /// # Errors
    /// Returns the error of the call.
    fn forward_snapshot(
        &self,
        request: &SnapshotRequest<'_>,
        callback: Option<&mut SnapshotCallback<'_>>,
    ) -> Called<(), Self::To> {
        let call = |to: &Self::To| to.do_stack_snapshot(request, callback);
        self.forward(InfoMethod::DoStackSnapshot, Some(request.thread), call)
    }
}

/// Declares the methods: `Name, number of the ICorProfilerInfo, the callers, [effects], the method in Rust`, and the
/// argument that is the thread which the call is about.
macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident $interface:literal $accepts:ident [$($effect:ident)*]
        $method:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $(, about $thread:ident)?;)*) => {
        /// A method of ICorProfilerInfo.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum InfoMethod {
            /// `DoStackSnapshot`.
            DoStackSnapshot,
            $(#[doc = concat!("`", stringify!($name), "`.")] $name,)*
        }

        impl InfoMethod {
            /// All methods.
            pub const ALL: &'static [Self] = &[Self::DoStackSnapshot, $(Self::$name),*];

            /// Returns the name.
            pub const fn name(self) -> &'static str {
                match self {
                    Self::DoStackSnapshot => "DoStackSnapshot",
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Returns the number of the first ICorProfilerInfo with the method.
            pub const fn interface(self) -> u8 {
                match self { Self::DoStackSnapshot => 2, $(Self::$name => $interface,)* }
            }

            /// Returns the threads of the runtime that may call the method.
            pub const fn accepts(self) -> Accepts {
                match self {
                    Self::DoStackSnapshot => Accepts::Special,
                    $(Self::$name => Accepts::$accepts,)*
                }
            }

            /// Returns the consequences of a call.
            pub const fn effects(self) -> &'static [Effect] {
                match self { Self::DoStackSnapshot => &[], $(Self::$name => &[$(Effect::$effect),*],)* }
            }
        }

        /// The part of ICorProfilerInfo that a stack profiler calls.
        ///
        /// "Asynchronous" methods may be called from anywhere; the others only inside a callback, or on a
        /// thread that the runtime does not know (C-122): [`InfoMethod::accepts`].
        ///
        /// A method that an implementation leaves out returns `E_NOTIMPL`, as if the runtime's interface lacked it.
        /// Walks need `do_stack_snapshot` and `get_function_from_ip`, and those of
        /// [`Policy::RuntimeSuspended`](crate::mixed::Policy::RuntimeSuspended) `suspend_runtime` and `resume_runtime`.
        pub trait ProfilerInfo {
            /// The event that ends a call without a return. In a real runtime it ends the process, so
            /// implementations over one use [`core::convert::Infallible`].
            type Fatal: Copy + core::fmt::Debug;

            /// `DoStackSnapshot`: walks the stack of a thread, leaf first, with a callback for each managed
            /// frame and for each unmanaged run between two of them. Asynchronous.
            ///
            /// # Errors
            /// [`CallError`]; callbacks may have been made before it (C-113).
            fn do_stack_snapshot(
                &self,
                request: &SnapshotRequest<'_>,
                callback: Option<&mut SnapshotCallback<'_>>,
            ) -> Result<(), CallError<Self::Fatal>> {
                let _ = (request, callback);
                Err(HResult::NOT_IMPLEMENTED.into())
            }

            $(
                $(#[$doc])*
                fn $method(&self, $($argument: $type),*) -> Result<methods!(@result $($result)?), CallError<Self::Fatal>> {
                    let _ = ($($argument,)*);
                    Err(HResult::NOT_IMPLEMENTED.into())
                }
            )*
        }

        impl<W: ForwardInfo> ProfilerInfo for W {
            type Fatal = <W::To as ProfilerInfo>::Fatal;

            fn do_stack_snapshot(
                &self,
                request: &SnapshotRequest<'_>,
                callback: Option<&mut SnapshotCallback<'_>>,
            ) -> Called<(), W::To> {
                self.forward_snapshot(request, callback)
            }

            $(
                fn $method(&self, $($argument: $type),*) -> Called<methods!(@result $($result)?), W::To> {
                    let thread = methods!(@about $($thread)?);
                    self.forward(InfoMethod::$name, thread, |to| to.$method($($argument),*))
                }
            )*
        }
    };
    (@result $result:ty) => { $result };
    (@result) => { () };
    (@about $thread:ident) => { Some($thread) };
    (@about) => { None };
}

methods! {
    /// `GetFunctionFromIP`. Asynchronous.
    ///
    /// # Errors
    /// `E_FAIL` if `ip` is in no managed method with metadata (C-114, C-115).
    GetFunctionFromIP 1 All [] get_function_from_ip(ip: u64) -> FunctionId;

    /// `GetFunctionFromIP2`.
    ///
    /// # Errors
    /// As [`get_function_from_ip`](Self::get_function_from_ip), and outside callbacks (C-119).
    GetFunctionFromIP2 4 LookUps [TakesLocks AwaitsGc]
        get_function_from_ip2(ip: u64) -> (FunctionId, ReJitId);

    /// `GetFunctionFromIP3`, which knows dynamic methods too (C-118).
    ///
    /// # Errors
    /// As [`get_function_from_ip2`](Self::get_function_from_ip2).
    GetFunctionFromIP3 8 LookUps [TakesLocks AwaitsGc]
        get_function_from_ip3(ip: u64) -> (FunctionId, ReJitId);

    /// `GetCodeInfo`: the first piece of a function's code. Asynchronous.
    ///
    /// # Errors
    /// `E_INVALIDARG` for id 0, `CORPROF_E_FUNCTION_NOT_COMPILED`.
    GetCodeInfo 1 All [TakesLocks] get_code_info(function: FunctionId) -> CodeRange;

    /// `GetCodeInfo2`: writes the pieces of a function's code, in the order of the method, and
    /// returns their number even if `ranges` has room for fewer (C-125). Asynchronous.
    ///
    /// # Errors
    /// As [`get_code_info`](Self::get_code_info).
    GetCodeInfo2 2 All [TakesLocks]
        get_code_info2(function: FunctionId, ranges: &mut [CodeRange]) -> u32;

    /// `GetCodeInfo3`: writes the pieces of one version of a function's code, as
    /// [`get_code_info2`](Self::get_code_info2) does.
    ///
    /// # Errors
    /// As [`get_code_info`](Self::get_code_info), and outside callbacks.
    GetCodeInfo3 4 LookUps [TakesLocks AwaitsGc]
        get_code_info3(function: FunctionId, rejit: ReJitId, ranges: &mut [CodeRange]) -> u32;

    /// `GetCodeInfo4`: writes the pieces of the code that starts at `start` (VA), as
    /// [`get_code_info2`](Self::get_code_info2) does.
    ///
    /// # Errors
    /// As [`get_code_info3`](Self::get_code_info3).
    GetCodeInfo4 9 LookUps [TakesLocks AwaitsGc]
        get_code_info4(start: u64, ranges: &mut [CodeRange]) -> u32;

    /// `GetFunctionInfo2`, with at most `type_arguments` type arguments. Asynchronous.
    ///
    /// # Errors
    /// `E_INVALIDARG` for id 0 and for the frameInfo of another function (C-123).
    GetFunctionInfo2 2 All [TakesLocks] get_function_info2(
        function: FunctionId, frame_info: Option<FrameInfo<'_>>, type_arguments: u32
    ) -> FunctionInfo;

    /// `GetClassFromTokenAndTypeArgs`: the `ClassID` of a type of a module, by its token, with `ClassID`s of type
    /// arguments; none stand for the generic type itself. The class is loaded: the call takes locks of the class
    /// loader, so that it must not be made in the callback of a walk (H-08).
    ///
    /// # Errors
    /// `CORPROF_E_UNSUPPORTED_CALL_SEQUENCE` outside callbacks in which a GC may be triggered,
    /// `CORPROF_E_RUNTIME_UNINITIALIZED` before the runtime has started, `CORPROF_E_DATAINCOMPLETE` for module 0,
    /// `COR_E_TYPELOAD` if there is no such type, or the number of arguments is another one.
    GetClassFromTokenAndTypeArgs 2 TriggeringCallbacks [TakesLocks AwaitsGc]
        get_class_from_token_and_type_args(module: u64, token: u32, type_arguments: &[u64]) -> u64;

    /// `GetCurrentThreadID`. Asynchronous.
    ///
    /// # Errors
    /// `CORPROF_E_NOT_MANAGED_THREAD` (C-120).
    GetCurrentThreadID 1 All [] get_current_thread_id() -> ThreadId;

    /// `GetThreadInfo`: the operating system's id of a thread.
    ///
    /// # Errors
    /// `E_INVALIDARG` for id 0 (C-121), and outside callbacks.
    GetThreadInfo 1 Callbacks [TakesLocks] get_thread_info(thread: ThreadId) -> u32, about thread;

    /// `GetHandleFromThread`: a handle that the runtime keeps owning.
    ///
    /// # Errors
    /// As [`get_thread_info`](Self::get_thread_info), and if the handle is invalid.
    GetHandleFromThread 1 Callbacks [TakesLocks]
        get_handle_from_thread(thread: ThreadId) -> u64, about thread;

    /// `EnumThreads`: the threads that exist now. It takes the lock of the thread list, which a GC holds.
    ///
    /// # Errors
    /// `CORPROF_E_UNSUPPORTED_CALL_SEQUENCE` outside callbacks (C-122).
    EnumThreads 4 Callbacks [TakesLocks AwaitsGc] enum_threads() -> Vec<ThreadId>;

    /// `InitializeCurrentThread`: makes the preparations that the thread's first call would make
    /// otherwise.
    ///
    /// # Errors
    /// `CORPROF_E_UNSUPPORTED_CALL_SEQUENCE` outside callbacks (C-122).
    InitializeCurrentThread 4 Callbacks [TakesLocks Changes] initialize_current_thread();

    /// `ForceGC`: collects all generations. The calling thread is one of the runtime afterwards (C-174, C-175).
    ///
    /// # Errors
    /// `CORPROF_E_NOT_YET_AVAILABLE` before the GC is initialized, `CORPROF_E_UNSUPPORTED_CALL_SEQUENCE` on a thread of
    /// the runtime in a callback or with Frames (.NET Framework 2: `E_FAIL` on any thread of the runtime).
    ForceGC 1 Special [TakesLocks AwaitsGc StopsThreads] force_gc();

    /// `SuspendRuntime` of ICorProfilerInfo10.
    ///
    /// # Errors
    /// The errors of C-126, and `CORPROF_E_UNSUPPORTED_CALL_SEQUENCE` in some callbacks (C-167).
    SuspendRuntime 10 Special [TakesLocks StopsThreads] suspend_runtime();

    /// `ResumeRuntime`.
    ///
    /// # Errors
    /// `CORPROF_E_UNSUPPORTED_CALL_SEQUENCE` if the profiler has not suspended it (C-127).
    ResumeRuntime 10 Special [StopsThreads] resume_runtime();

    /// `GetEventMask`. Asynchronous.
    ///
    /// # Errors
    /// `CORPROF_E_PROFILER_DETACHING`.
    GetEventMask 1 All [] get_event_mask() -> EventMask;

    /// `SetEventMask`. Asynchronous.
    ///
    /// # Errors
    /// `E_FAIL` if a bit changes that may not change after startup,
    /// `CORPROF_E_UNSUPPORTED_FOR_ATTACHING_PROFILER` for a bit that needs startup.
    SetEventMask 1 All [Changes] set_event_mask(mask: EventMask);
}

impl InfoMethod {
    /// Returns the method with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|method| method.name() == name)
    }

    /// Returns true if a call has this consequence.
    pub fn has(self, effect: Effect) -> bool {
        self.effects().contains(&effect)
    }
}
