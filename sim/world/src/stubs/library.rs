//! Methods of the class library around the program, and the native code beside them.

use super::frames::call;
use super::{Plan, Service, Shared};
use clr_codegen::Function;

impl Plan {
    /// Creates a function by which the class library calls the program, starts threads, runs handlers and finalizers, calls by reflection,
    /// or fails checks; returns `None` for any other one.
    pub(super) fn function_of_library(&self, shared: Shared) -> Option<Function> {
        Some(match shared {
            Shared::RunMain => self.run_main(),
            Shared::CallEntryPoint => self.call_entry_point(),
            Shared::ClassInit if Shared::CallClassConstructor.exists_in(self.generation) => {
                self.class_init()
            }
            Shared::CallClassConstructor => self.call_class_constructor(),
            Shared::FirstChanceEntry => {
                self.entry(shared, vec![call(self.helper(Shared::OnFirstChance))])
            }
            Shared::TellTransition => self.qcall(shared, Shared::BeginTransition),
            Shared::TellReturn => self.qcall(shared, Shared::EndTransition),
            Shared::StaticBase => Self::forwarding(shared, call(self.helper(Shared::InitClass))),
            Shared::InvokeMethodInfo | Shared::InvokeMethodBase | Shared::InvokeWithNoArgs => {
                self.reflection(shared)
            }
            Shared::Join => self.qcall(shared, Shared::ThreadJoin),
            Shared::WaitForFinalizers => self.qcall(shared, Shared::FinalizerWait),
            Shared::ExitMethod => self.qcall(shared, Shared::Exit),
            Shared::Exit => self.preemptive_helper(shared, Service::Exit),
            Shared::ThreadJoin => self.preemptive_helper(shared, Service::JoinThread),
            Shared::FinalizerWait => self.preemptive_helper(shared, Service::AwaitFinalizers),
            Shared::UnhandledEntry => {
                self.entry(shared, vec![call(self.helper(Shared::OnUnhandled))])
            }
            Shared::CallHandler => self.call_handler(),
            Shared::CallUnhandledHandler => self.call_unhandled_handler(),
            Shared::FinalizerThread => self.finalizer_thread(),
            Shared::ThreadStart
            | Shared::RunInternal
            | Shared::ThreadStartContext
            | Shared::DispatchInfoThrow
            | Shared::StartCallback
            | Shared::OnFirstChance
            | Shared::OnUnhandled
            | Shared::OnProcessExit
            | Shared::RunFinalizers => self.start_of_thread(shared),
            Shared::CheckCast | Shared::CheckCastAny | Shared::ThrowIndexOutOfRange => {
                self.failed_check(shared)
            }
            _ => return None,
        })
    }
}
