//! The callbacks that a runtime makes, and the methods that profilers may call in them (contract
//! §6).

use super::Caller;
use crate::generation::Generation;
use crate::{CallbackState, TargetMemory};
use clr_walker::profiling::{EventMask, ThreadId};

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
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => stringify!($kind),)* }
            }

            const fn usual_mode(self) -> CallbackMode {
                match self { $(Self::$kind => CallbackMode::$mode,)* }
            }

            /// Returns true if a GC may be triggered in the callback: methods that may trigger one
            /// are allowed only then.
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
    GetReJITParameters Preemptive true,
    ReJITCompilationStarted Preemptive true,
    ReJITCompilationFinished Preemptive true,
    ClassLoadStarted Preemptive true,
    ClassLoadFinished Preemptive true,
    ModuleLoadStarted Cooperative true,
    ModuleLoadFinished Preemptive true,
    ModuleAttachedToAssembly Preemptive true,
    AssemblyLoadStarted Cooperative true,
    AssemblyLoadFinished Cooperative true,
    AppDomainCreationStarted Preemptive true,
    AppDomainCreationFinished Preemptive true,
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
    ObjectsAllocatedByClass Cooperative false,
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
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Returns the mode of the thread that the callback is made on. Exceptions that were observed
    /// for single callbacks are handled where the callback is made
    /// ([`Generation::enters_a_catching_thrower_cooperatively`]).
    pub const fn mode(self, generation: Generation) -> CallbackMode {
        match self {
            Self::ExceptionUnwindFunctionEnter => generation.unwind_enter_mode(),
            Self::ExceptionUnwindFunctionLeave => generation.unwind_leave_mode(),
            _ => self.usual_mode(),
        }
    }

    /// Returns the bit of the event mask that requests the callback (`COR_PRF_MONITOR`); no bit if every
    /// profiler gets it.
    pub const fn event(self) -> EventMask {
        let bits = match self {
            Self::FunctionUnloadStarted => 0x1,
            Self::ClassLoadStarted
            | Self::ClassLoadFinished
            | Self::ClassUnloadStarted
            | Self::ClassUnloadFinished => 0x2,
            Self::ModuleLoadStarted
            | Self::ModuleLoadFinished
            | Self::ModuleAttachedToAssembly
            | Self::ModuleUnloadStarted
            | Self::ModuleUnloadFinished => 0x4,
            Self::AssemblyLoadStarted
            | Self::AssemblyLoadFinished
            | Self::AssemblyUnloadStarted
            | Self::AssemblyUnloadFinished => 0x8,
            Self::AppDomainCreationStarted | Self::AppDomainCreationFinished => 0x10,
            Self::JITCompilationStarted
            | Self::JITCompilationFinished
            | Self::JITInlining
            | Self::DynamicMethodUnloaded
            | Self::DynamicMethodJITCompilationStarted
            | Self::DynamicMethodJITCompilationFinished => 0x20,
            Self::ExceptionThrown
            | Self::ExceptionSearchFunctionEnter
            | Self::ExceptionSearchFunctionLeave
            | Self::ExceptionSearchFilterEnter
            | Self::ExceptionSearchFilterLeave
            | Self::ExceptionSearchCatcherFound
            | Self::ExceptionUnwindFunctionEnter
            | Self::ExceptionUnwindFunctionLeave
            | Self::ExceptionUnwindFinallyEnter
            | Self::ExceptionUnwindFinallyLeave
            | Self::ExceptionCatcherEnter
            | Self::ExceptionCatcherLeave => 0x40,
            Self::GarbageCollectionStarted
            | Self::GarbageCollectionFinished
            | Self::MovedReferences
            | Self::SurvivingReferences
            | Self::ObjectReferences
            | Self::RootReferences
            | Self::ObjectsAllocatedByClass
            | Self::HandleCreated
            | Self::HandleDestroyed
            | Self::FinalizeableObjectQueued => 0x80,
            Self::ObjectAllocated => 0x100,
            Self::ThreadCreated
            | Self::ThreadAssignedToOSThread
            | Self::ThreadDestroyed
            | Self::ThreadNameChanged => 0x200,
            Self::ManagedToUnmanagedTransition | Self::UnmanagedToManagedTransition => 0x800,
            Self::EnterLeaveSlow => 0x1000,
            Self::RuntimeSuspendStarted
            | Self::RuntimeSuspendFinished
            | Self::RuntimeSuspendAborted
            | Self::RuntimeResumeStarted
            | Self::RuntimeResumeFinished
            | Self::RuntimeThreadSuspended
            | Self::RuntimeThreadResumed => 0x1_0000,
            Self::JITCachedFunctionSearchStarted | Self::JITCachedFunctionSearchFinished => {
                0x2_0000
            }
            Self::GetReJITParameters
            | Self::ReJITCompilationStarted
            | Self::ReJITCompilationFinished => 0x4_0000,
            // Sessions of EventPipe choose their events.
            Self::Shutdown | Self::EventPipeEventDelivered | Self::EventPipeProviderCreated => 0,
        };
        EventMask(bits)
    }

    /// Returns the callback-state bits of a thread in this callback.
    pub const fn state(self) -> CallbackState {
        let triggers = if self.allows_triggers() { CallbackState::IN_TRIGGERS_SCOPE.0 } else { 0 };
        CallbackState(CallbackState::IN_CALLBACK.0 | triggers)
    }
}

/// A reason for which the runtime is suspended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SuspensionReason {
    /// The profiler has asked for it.
    #[default]
    Profiler,
    /// A GC.
    Gc,
    /// An assembly is unloaded.
    Unload,
}

/// A callback that the runtime makes in the middle of a call of the profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfilerCallback {
    /// `RuntimeThreadSuspended` (C-029).
    RuntimeThreadSuspended(ThreadId),
    /// `RuntimeThreadResumed`.
    RuntimeThreadResumed(ThreadId),
    /// `RuntimeSuspendStarted`.
    RuntimeSuspendStarted(SuspensionReason),
    /// `RuntimeSuspendFinished`.
    RuntimeSuspendFinished,
    /// `RuntimeResumeStarted`.
    RuntimeResumeStarted,
    /// `RuntimeResumeFinished`.
    RuntimeResumeFinished,
    /// `ThreadCreated`, of the calling thread.
    ThreadCreated(ThreadId),
    /// `ThreadAssignedToOSThread`, of the calling thread.
    ThreadAssignedToOsThread(ThreadId),
    /// `GarbageCollectionStarted`.
    GarbageCollectionStarted,
    /// `MovedReferences`.
    MovedReferences,
    /// `SurvivingReferences`.
    SurvivingReferences,
    /// `RootReferences`.
    RootReferences,
    /// `GarbageCollectionFinished`.
    GarbageCollectionFinished,
}

impl ProfilerCallback {
    /// Returns the thread that the callback is about, if it names one.
    pub const fn thread(self) -> Option<ThreadId> {
        match self {
            Self::RuntimeThreadSuspended(thread)
            | Self::RuntimeThreadResumed(thread)
            | Self::ThreadCreated(thread)
            | Self::ThreadAssignedToOsThread(thread) => Some(thread),
            _ => None,
        }
    }
}

impl From<ProfilerCallback> for CallbackKind {
    fn from(callback: ProfilerCallback) -> Self {
        match callback {
            ProfilerCallback::RuntimeThreadSuspended(_) => Self::RuntimeThreadSuspended,
            ProfilerCallback::RuntimeThreadResumed(_) => Self::RuntimeThreadResumed,
            ProfilerCallback::RuntimeSuspendStarted(_) => Self::RuntimeSuspendStarted,
            ProfilerCallback::RuntimeSuspendFinished => Self::RuntimeSuspendFinished,
            ProfilerCallback::RuntimeResumeStarted => Self::RuntimeResumeStarted,
            ProfilerCallback::RuntimeResumeFinished => Self::RuntimeResumeFinished,
            ProfilerCallback::ThreadCreated(_) => Self::ThreadCreated,
            ProfilerCallback::ThreadAssignedToOsThread(_) => Self::ThreadAssignedToOSThread,
            ProfilerCallback::GarbageCollectionStarted => Self::GarbageCollectionStarted,
            ProfilerCallback::MovedReferences => Self::MovedReferences,
            ProfilerCallback::SurvivingReferences => Self::SurvivingReferences,
            ProfilerCallback::RootReferences => Self::RootReferences,
            ProfilerCallback::GarbageCollectionFinished => Self::GarbageCollectionFinished,
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
