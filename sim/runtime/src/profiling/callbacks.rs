//! The callbacks that a runtime makes, and the methods that profilers may call in them (contract
//! §6).

use super::Caller;
use crate::generation::Generation;
use crate::{CallbackState, TargetMemory};
use clr_walker::profiling::ProfilerCallback;

/// GC mode of a callback's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallbackMode {
    /// The thread is cooperative.
    Cooperative,
    /// The thread is preemptive.
    Preemptive,
    /// The thread keeps its mode.
    Any,
}

macro_rules! callbacks {
    ($($kind:ident $mode:ident $triggers:literal,)*) => {
        /// A callback of ICorProfilerCallback, or a hook.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum CallbackKind {
            $(
                #[doc = concat!("`", stringify!($kind), "`.")]
                $kind,
            )*
        }

        impl CallbackKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Returns the name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => stringify!($kind),)* }
            }

            const fn usual_mode(self) -> CallbackMode {
                match self { $(Self::$kind => CallbackMode::$mode,)* }
            }

            /// Returns true if a GC may be triggered in the callback: methods that may trigger one
            /// are allowed only then.
            #[must_use]
            pub const fn allows_triggers(self) -> bool {
                match self { $(Self::$kind => $triggers,)* }
            }
        }
    };
}

callbacks! {
    ThreadCreated Preemptive true,
    ThreadAssignedToOSThread Any false,
    ThreadDestroyed Preemptive true,
    ThreadNameChanged Preemptive true,
    JITCompilationStarted Preemptive true,
    JITCompilationFinished Preemptive true,
    JITCachedFunctionSearchStarted Preemptive true,
    JITCachedFunctionSearchFinished Preemptive true,
    JITInlining Preemptive true,
    ReJITCompilationStarted Preemptive true,
    ReJITCompilationFinished Preemptive true,
    ClassLoadStarted Preemptive true,
    ClassLoadFinished Preemptive true,
    ModuleLoadStarted Cooperative true,
    ModuleLoadFinished Preemptive true,
    AssemblyLoadStarted Cooperative true,
    AssemblyLoadFinished Cooperative true,
    AppDomainCreationStarted Cooperative true,
    AppDomainCreationFinished Cooperative true,
    ObjectAllocated Cooperative true,
    ManagedToUnmanagedTransition Preemptive true,
    UnmanagedToManagedTransition Preemptive true,
    ExceptionThrown Cooperative true,
    ExceptionSearchFunctionEnter Preemptive true,
    ExceptionSearchFunctionLeave Preemptive true,
    ExceptionSearchFilterEnter Preemptive true,
    ExceptionSearchFilterLeave Preemptive true,
    ExceptionSearchCatcherFound Preemptive true,
    ExceptionUnwindFunctionEnter Preemptive false,
    ExceptionUnwindFunctionLeave Cooperative false,
    ExceptionUnwindFinallyEnter Cooperative false,
    ExceptionUnwindFinallyLeave Cooperative false,
    ExceptionCatcherEnter Cooperative false,
    ExceptionCatcherLeave Cooperative true,
    RuntimeSuspendStarted Any false,
    RuntimeSuspendFinished Any false,
    RuntimeSuspendAborted Any false,
    RuntimeResumeStarted Any true,
    RuntimeResumeFinished Any true,
    RuntimeThreadSuspended Any false,
    RuntimeThreadResumed Any false,
    GarbageCollectionStarted Cooperative false,
    GarbageCollectionFinished Cooperative false,
    MovedReferences Cooperative false,
    SurvivingReferences Cooperative false,
    ObjectReferences Cooperative false,
    RootReferences Cooperative false,
    HandleCreated Cooperative false,
    HandleDestroyed Cooperative false,
    FinalizeableObjectQueued Cooperative true,
    DynamicMethodUnloaded Cooperative true,
    DynamicMethodJITCompilationStarted Preemptive true,
    DynamicMethodJITCompilationFinished Preemptive true,
    EnterLeaveSlow Cooperative true,
    Shutdown Any true,
    ModuleUnloadStarted Preemptive true,
    ModuleUnloadFinished Preemptive true,
    ClassUnloadStarted Preemptive true,
    ClassUnloadFinished Preemptive true,
    AssemblyUnloadStarted Preemptive true,
    AssemblyUnloadFinished Preemptive true,
    FunctionUnloadStarted Preemptive true,
    EventPipeEventDelivered Any false,
    EventPipeProviderCreated Any true,
}

impl CallbackKind {
    /// Returns the kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Returns the mode of the thread that the callback is made on. Exceptions that were observed
    /// for single callbacks are handled where the callback is made
    /// ([`Generation::enters_a_catching_thrower_cooperatively`]).
    #[must_use]
    pub const fn mode(self, generation: Generation) -> CallbackMode {
        match self {
            Self::ExceptionUnwindFunctionEnter => generation.unwind_enter_mode(),
            Self::ExceptionUnwindFunctionLeave => generation.unwind_leave_mode(),
            _ => self.usual_mode(),
        }
    }

    /// Returns the callback-state bits of a thread in this callback.
    #[must_use]
    pub const fn state(self) -> CallbackState {
        let triggers = if self.allows_triggers() { CallbackState::IN_TRIGGERS_SCOPE.0 } else { 0 };
        CallbackState(CallbackState::IN_CALLBACK.0 | triggers)
    }
}

impl From<ProfilerCallback> for CallbackKind {
    fn from(callback: ProfilerCallback) -> Self {
        match callback {
            ProfilerCallback::RuntimeThreadSuspended(_) => Self::RuntimeThreadSuspended,
            ProfilerCallback::RuntimeThreadResumed(_) => Self::RuntimeThreadResumed,
            ProfilerCallback::RuntimeSuspendStarted => Self::RuntimeSuspendStarted,
            ProfilerCallback::RuntimeSuspendFinished => Self::RuntimeSuspendFinished,
            ProfilerCallback::RuntimeResumeStarted => Self::RuntimeResumeStarted,
            ProfilerCallback::RuntimeResumeFinished => Self::RuntimeResumeFinished,
        }
    }
}

impl<M: TargetMemory> Caller<'_, '_, M> {
    /// Calls `act` as if in a callback on this thread, with the callback-state bits set.
    pub fn in_callback<T>(&self, kind: CallbackKind, act: impl FnOnce(&Self) -> T) -> T {
        let runtime = self.runtime;
        let before = runtime.thread(self.os, |thread| thread.callback_state).unwrap_or_default();
        runtime.change_thread(self.os, |thread| thread.callback_state.0 |= kind.state().0);
        let done = act(self);
        runtime.change_thread(self.os, |thread| thread.callback_state = before);
        done
    }
}
