//! Properties of the runtime's functions.

use super::Shared;
use clr_runtime::MethodKind;
use clr_runtime::generation::{CheckFailures, Generation, InvokePath, StartPath};

impl Shared {
    /// Returns true if a generation has the function.
    pub const fn exists_in(self, generation: Generation) -> bool {
        match self {
            Self::UmThunkStub => generation.has_um_thunk_stub(),
            Self::ReversePInvokeEnter | Self::ReversePInvokeExit => !generation.has_um_thunk_stub(),
            Self::BeginReverseTransition | Self::EndReverseTransition => {
                generation.has_helper_method_frames()
            }
            Self::InvokeMethodBase => {
                matches!(generation.invoke_path(), InvokePath::Native | InvokePath::MethodBase)
            }
            Self::InvokeMethodInfo => !matches!(generation.invoke_path(), InvokePath::Invoker),
            Self::InvokeWithNoArgs => !matches!(generation.invoke_path(), InvokePath::Native),
            Self::NewWorker
            | Self::PatchpointWorker
            | Self::Sleep
            | Self::MonitorWait
            | Self::Invoke
            | Self::StaticBase
            | Self::ExitMethod
            | Self::Join
            | Self::WaitForFinalizers
            | Self::InitClass => !generation.has_helper_method_frames(),
            Self::DestroyMethod | Self::CreateHandle | Self::DestroyHandle => {
                generation.frees_by_qcalls()
            }
            Self::StartCallback => {
                matches!(generation.thread_start_path(), StartPath::StartCallback)
            }
            Self::ThreadStart
            | Self::RunInternal
            | Self::ThreadStartContext
            | Self::DispatchInfoThrow => {
                matches!(generation.thread_start_path(), StartPath::ThreadStart)
            }
            Self::FailRangeCheck => matches!(
                generation.check_failures(),
                CheckFailures::Native | CheckFailures::ManagedCasts
            ),
            Self::ThrowIndexOutOfRange => !Self::FailRangeCheck.exists_in(generation),
            Self::FailCast => matches!(generation.check_failures(), CheckFailures::Native),
            Self::CheckCast => !Self::FailCast.exists_in(generation),
            Self::CheckCastAny => {
                matches!(generation.check_failures(), CheckFailures::ManagedDeep)
            }
            Self::RunMain
            | Self::CallEntryPoint
            | Self::FirstChanceEntry
            | Self::OnFirstChance
            | Self::UnhandledEntry
            | Self::CallClassConstructor => generation.has_managed_entry_points(),
            Self::OnUnhandled => generation.handles_unhandled_in_class_library(),
            Self::TellTransition | Self::TellReturn => generation.p_invokes_are_methods(),
            Self::OnProcessExit => generation.handles_exit_in_class_library(),
            Self::RunFinalizers => generation.runs_finalizers_in_class_library(),
            Self::DispatchTailCalls => generation.has_tail_call_dispatcher(),
            Self::RareDisable | Self::ConditionWait => generation.is_unix(),
            Self::GenericComPlusCallStub
            | Self::ClrToComWorker
            | Self::GenericComCallStub
            | Self::ComToClrDispatchHelper => generation.has_com_frames(),
            Self::RaiseException
            | Self::ProcessException
            | Self::CallFunclet
            | Self::CallFilter => !generation.hides_exception_handling(),
            Self::Propagate
            | Self::RhThrowEx
            | Self::RhThrowHwEx
            | Self::RhRethrow
            | Self::DispatchEx
            | Self::FindFirstPassHandler
            | Self::InvokeSecondPass
            | Self::ExInfoInit
            | Self::ExInfoThrownException
            | Self::SfiInit
            | Self::SfiNext
            | Self::EhEnumNext
            | Self::CallCatchFunclet
            | Self::CallFinallyFunclet
            | Self::CallFilterFunclet => generation.hides_exception_handling(),
            _ => true,
        }
    }

    /// Returns true for a method of the class that handles exceptions, as opposed to native code.
    const fn handles_exceptions(self) -> bool {
        matches!(
            self,
            Self::RhThrowEx
                | Self::RhThrowHwEx
                | Self::RhRethrow
                | Self::DispatchEx
                | Self::FindFirstPassHandler
                | Self::InvokeSecondPass
        )
    }

    /// Returns true for a method of the managed exception handling: of that class, or of its nested
    /// `ExInfo`, which walks do not hide (C-163).
    pub(super) const fn is_exception_handling(self) -> bool {
        self.handles_exceptions() || matches!(self, Self::ExInfoInit | Self::ExInfoThrownException)
    }

    /// Returns the kind of the method; only meaningful for managed functions.
    pub(super) const fn method_kind(self) -> MethodKind {
        if self.handles_exceptions() {
            MethodKind::ExceptionHandling
        } else if matches!(self, Self::CollectStub) {
            MethodKind::IlStub
        } else {
            MethodKind::Ordinary
        }
    }

    /// Returns true for a method of the class library, as opposed to unmanaged code.
    pub const fn is_managed(self) -> bool {
        matches!(
            self,
            Self::Sleep
                | Self::MonitorWait
                | Self::ExitMethod
                | Self::Join
                | Self::WaitForFinalizers
                | Self::RunFinalizers
                | Self::OnProcessExit
                | Self::ThrowIndexOutOfRange
                | Self::CheckCast
                | Self::CheckCastAny
                | Self::StartCallback
                | Self::ThreadStart
                | Self::RunInternal
                | Self::ThreadStartContext
                | Self::DispatchInfoThrow
                | Self::NameThread
                | Self::LoadAssembly
                | Self::GetType
                | Self::DestroyAllocator
                | Self::DestroyMethod
                | Self::CreateHandle
                | Self::DestroyHandle
                | Self::Collect
                | Self::CollectStub
                | Self::Invoke
                | Self::StaticBase
                | Self::InitClass
                | Self::InvokeMethodBase
                | Self::InvokeMethodInfo
                | Self::InvokeWithNoArgs
                | Self::DispatchTailCalls
                | Self::CallEntryPoint
                | Self::FirstChanceEntry
                | Self::OnFirstChance
                | Self::UnhandledEntry
                | Self::OnUnhandled
                | Self::CallClassConstructor
                | Self::TellTransition
                | Self::TellReturn
        ) || self.is_exception_handling()
    }

    /// Returns true for an FCall: a method of its own with unmanaged code.
    pub const fn is_fcall(self) -> bool {
        matches!(
            self,
            Self::ThreadSleep
                | Self::Exit
                | Self::ThreadJoin
                | Self::FinalizerWait
                | Self::InvokeMethod
                | Self::FCall
                | Self::RuntimeMethodDestroy
                | Self::HandleAlloc
                | Self::HandleFree
                | Self::BeginTransition
                | Self::EndTransition
                | Self::BeginReverseTransition
                | Self::EndReverseTransition
        )
    }
}
