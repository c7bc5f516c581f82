//! The code of each helper.

use super::fixups::Fixup;
use super::{
    Plan, RETURN, Service, Shared, exceptions, frames, helpers, leaf, native, transitions,
    unloading,
};
use clr_codegen::Function;

impl Plan {
    /// Creates a helper.
    pub(super) fn shared_function(&self, shared: Shared) -> Function {
        if let Some(fixup) = Fixup::of(shared) {
            return if fixup.is_worker(shared) {
                self.fixup_worker(&fixup)
            } else {
                self.fixup_stub(shared, &fixup)
            };
        }
        let found = self.function_of_library(shared);
        if let Some(function) = found.or_else(|| self.function_of_compilation(shared)) {
            return function;
        }
        if let Some(service) = helpers::served(shared) {
            return native(shared, helpers::plain(), vec![frames::service(service)], RETURN);
        }
        match shared {
            Shared::KickOffThread => self.kick_off_thread(),
            Shared::Sleep => self.qcall(shared, Shared::ThreadSleep),
            Shared::MonitorWait => self.qcall(shared, Shared::MonitorContention),
            Shared::NameThread => self.qcall(shared, Shared::InformThreadNameChange),
            Shared::LoadAssembly => self.qcall(shared, Shared::AssemblyNativeLoad),
            Shared::Collect | Shared::CollectStub => self.qcall(shared, Shared::GcInterfaceCollect),
            Shared::GetType => self.qcall(shared, Shared::LoadType),
            Shared::DestroyAllocator => self.qcall(shared, Shared::LoaderAllocatorDestroy),
            Shared::DestroyMethod => self.qcall(shared, Shared::RuntimeMethodDestroy),
            Shared::CreateHandle => self.qcall(shared, Shared::HandleAlloc),
            Shared::DestroyHandle => self.qcall(shared, Shared::HandleFree),
            Shared::Invoke => self.qcall(shared, Shared::InvokeMethod),
            Shared::InitClass => self.qcall(shared, Shared::ClassInit),
            Shared::DispatchTailCalls => self.dispatch_tail_calls(),
            Shared::ThreadSleep => self.preemptive_helper(shared, Service::Sleep),
            Shared::MonitorContention => self.preemptive_helper(shared, Service::AwaitMonitor),
            Shared::GcInterfaceCollect => self.gc_interface_collect(),
            Shared::LoaderAllocatorDestroy => self.loader_allocator_destroy(),
            Shared::RuntimeMethodDestroy => self.cooperative_helper(shared, Service::DestroyMethod),
            Shared::HandleAlloc => self.cooperative_helper(shared, Service::CreateHandle),
            Shared::HandleFree => self.cooperative_helper(shared, Service::DestroyHandle),
            Shared::DeleteCodeHeap => unloading::writing(shared, &[Service::FreeCode]),
            Shared::InvokeMethod | Shared::ClassInit => self.calling_helper(shared),
            Shared::FCall => self.fcall(),
            Shared::PInvokeBegin => native(shared, leaf(), self.frames.begin_p_invoke(), RETURN),
            Shared::PInvokeEnd => {
                native(shared, helpers::plain(), self.frames.end_p_invoke(), RETURN)
            }
            Shared::GenericComPlusCallStub => self.com_plus_call_stub(),
            Shared::ClrToComWorker => self.clr_to_com_worker(),
            Shared::GenericComCallStub => self.com_call_stub(),
            Shared::ComToClrDispatchHelper => transitions::com_to_clr_dispatch_helper(),
            Shared::UmThunkStub => transitions::um_thunk_stub(&self.frames),
            Shared::ReversePInvokeEnter => transitions::reverse_p_invoke_enter(&self.frames),
            Shared::ReversePInvokeExit => transitions::reverse_p_invoke_exit(),
            Shared::BeginTransition => {
                self.transition_helper(shared, Service::ManagedToUnmanagedCall)
            }
            Shared::EndTransition => {
                self.transition_helper(shared, Service::UnmanagedToManagedReturn)
            }
            Shared::BeginReverseTransition => {
                self.transition_helper(shared, Service::UnmanagedToManagedCall)
            }
            Shared::EndReverseTransition => {
                self.transition_helper(shared, Service::ManagedToUnmanagedReturn)
            }
            Shared::ProfileEnterNaked => self.profile_naked(shared, Shared::ProfileEnter),
            Shared::ProfileLeaveNaked => self.profile_naked(shared, Shared::ProfileLeave),
            Shared::ProfileTailcallNaked => self.profile_naked(shared, Shared::ProfileTailcall),
            Shared::ProfileEnter | Shared::ProfileLeave | Shared::ProfileTailcall => {
                self.profile_worker(shared)
            }
            Shared::RedirectedHandledJitCase => self.redirected_handled_jit_case(),
            Shared::OnHijackTripThread => self.on_hijack_trip_thread(),
            Shared::OnHijackSave => self.on_hijack_save(),
            Shared::OnHijackWorker => self.on_hijack_worker(),
            Shared::RareDisable => self.rare_disable(),
            Shared::CallDescrWorker => transitions::call_descr_worker(),
            Shared::WriteBarrier => self.write_barrier(),
            Shared::New | Shared::NewWorker => self.allocating_helper(shared),
            Shared::Allocate => self.allocate(),
            Shared::Throw | Shared::Rethrow | Shared::FailRangeCheck | Shared::FailCast => {
                self.throw_helper(shared)
            }
            Shared::HardwareFault => self.hardware_fault(),
            Shared::RethrowHelper => self.rethrow_helper(),
            Shared::RaiseException => self.raise_exception(),
            Shared::ProcessException => exceptions::process_exception(),
            Shared::RhThrowEx | Shared::RhThrowHwEx | Shared::RhRethrow => self.rh_throw(shared),
            Shared::DispatchEx => self.dispatch_ex(),
            Shared::FindFirstPassHandler => self.each_clause(shared, Shared::CallFilterFunclet),
            Shared::InvokeSecondPass => self.each_clause(shared, Shared::CallFinallyFunclet),
            Shared::ExInfoInit | Shared::ExInfoThrownException => self.ex_info_method(shared),
            Shared::SfiInit => exceptions::stack_walk(shared, Service::Raise),
            Shared::SfiNext => exceptions::stack_walk(shared, Service::Dispatch),
            Shared::CallFunclet
            | Shared::CallFilter
            | Shared::CallCatchFunclet
            | Shared::CallFinallyFunclet
            | Shared::CallFilterFunclet => self.call_funclet(shared),
            // All others are leaves.
            _ => helpers::leaf_helper(shared),
        }
    }
}
