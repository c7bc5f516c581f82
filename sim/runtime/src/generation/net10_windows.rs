//! .NET 10 on Windows: an application was recorded under wine. Sources are single files of
//! dotnet/runtime's `main`.

use super::answers::{
    Answers, EmptyWalk, Family, FrameIdentity, HijackArgsLayout, InlinedCallFrameLayout, Os,
    Product, ProfilerSuspension, SeedSize, StackCheck, Version, WalkFault, assumed, documented,
    observed, read,
};
use crate::profiling::CallbackMode;
use clr_walker::profiling::HResult;
use clr_walker::unwind::Rules;

/// The answers of this runtime.
pub(super) const ANSWERS: Answers = Answers {
    name: "net10-windows",
    family: Family {
        os: Os::Windows,
        product: Product::Core,
        version: Version(10, 0),
        legacy_exceptions: false,
    },
    unwind_rules: observed(Rules::CoreClr),
    has_detach: read(true, "profilinghelper.cpp: ProfilingAPIDetach"),
    missing_snapshot_flag: read(
        HResult::INCONSISTENT_WITH_FLAGS,
        "proftoeeinterfaceimpl.cpp: DoStackSnapshot",
    ),
    passes_over_gc_special: read(true, "proftoeeinterfaceimpl.cpp: DoStackSnapshot"),
    reads_context_first: read(false, "proftoeeinterfaceimpl.cpp: DoStackSnapshot"),
    checks_redirection: read(true, "proftoeeinterfaceimpl.cpp: DoStackSnapshot"),
    refuses_to_wait: read(false, "codeman.cpp: IsManagedCode"),
    own_context_flags: observed(0xC010_000B),
    empty_walk: read(
        EmptyWalk::FailsWithoutStop,
        "proftoeeinterfaceimpl.cpp: ProfilerStackWalkCallback",
    ),
    stack_check: read(StackCheck::Bounds, "stackwalk.cpp: CheckForSkippedFrames"),
    walk_fault: read(WalkFault::Unexpected, "proftoeeinterfaceimpl.cpp: DoStackSnapshotHelper"),
    stops_at_resumable_frames: read(true, "proftoeeinterfaceimpl.cpp: DoStackSnapshotHelper"),
    frames_have_cookies: read(false, "frames.h: Frame::GetGSCookieAddr"),
    checks_cookies_below_rsp: read(false, "stackwalk.cpp: CheckGSCookies"),
    context_size: observed(0x4D0),
    seed_size: read(SeedSize::whole(0x4D0), "proftoeeinterfaceimpl.cpp: DoStackSnapshot"),
    frame_identity: observed(FrameIdentity::Number),
    inlined_call_frame: observed(InlinedCallFrameLayout::after(0x18)),
    hijack_args: assumed(
        HijackArgsLayout::windows_with_rsp(0x10),
        "as .NET 10 on Unix, where rcx is a return value too, and as .NET 8 on Windows, where rsp is stored",
    ),
    has_helper_method_frames: observed(false),
    has_gc_frames: observed(false),
    has_um_thunk_stub: read(false, "UMThunkStub.asm and umthunkstub.S: UMThunkStub"),
    has_delegate_frames: read(false, "frames.h: MulticastFrame"),
    has_tail_call_frames: read(false, "frames.h: TailCallFrame"),
    has_tail_call_dispatcher: read(true, "tailcallhelp.cpp: TailCallHelp"),
    has_suppressed_transitions: read(true, "dllimport.cpp: NDirect::NDirectLink"),
    has_software_exception_frames: read(true, "frames.h: SoftwareExceptionFrame"),
    hides_exception_handling: observed(true),
    hidden_classes: assumed(
        &[
            "System.Runtime.EH",
            "System.Runtime.StackFrameIterator",
            "System.Runtime.ExceptionServices.InternalCalls",
        ],
        "as .NET 10 on Unix",
    ),
    unwind_enter_mode: observed(CallbackMode::Cooperative),
    unwind_leave_mode: observed(CallbackMode::Cooperative),
    frees_by_qcalls: observed(true),
    tells_of_assembly_unload_start: observed(true),
    tells_of_unloaded_functions: read(false, "proftoeeinterfaceimpl.cpp: FunctionUnloadStarted"),
    adds_code_under_lock: read(false, "codeman.cpp: ExecutionManager::AddRangeHelper"),
    catches_in_reflection: read(
        false,
        "reflectioninvocation.cpp: CallDescrWorkerReflectionWrapper",
    ),
    enters_a_catching_thrower_cooperatively: read(false, "exceptionhandling.cpp: ExceptionTracker"),
    redirected_context_flags: observed(0x10_000B),
    faulting_context_flags_lost: read(0x0, "exceptionhandling.cpp: FaultingExceptionFrame"),
    faulting_context_flags: read(0x10_005F, "signal.cpp: common_signal_handler"),
    profiler_suspension: read(
        ProfilerSuspension::MarkedAfter,
        "proftoeeinterfaceimpl.cpp: SuspendRuntime",
    ),
    forgets_who_locked_threads: read(false, "threadsuspend.cpp: ThreadSuspend::LockThreadStore"),
    locks_threads_twice: read(false, "profilingenumerators.cpp: ProfilerThreadEnum::Init"),
    looks_images_up_cooperatively: read(
        true,
        "readytoruninfo.cpp: ReadyToRunInfo::GetMethodDescForEntryPoint; hash.cpp: HashMap::LookupValue (00ac37e4)",
    ),
    suspends_only_in_callbacks: read(false, "proftoeeinterfaceimpl.cpp: SuspendRuntime"),
    looks_up_only_in_triggering_callbacks: assumed(false, "as .NET 10 on Unix"),
    immutable_events: documented(0xEEF8_CC00, "corprof.idl: COR_PRF_MONITOR_IMMUTABLE"),
    attachable_events: documented(0x1005_02FE, "corprof.idl: COR_PRF_ALLOWABLE_AFTER_ATTACH"),
    has_profiler_info4: documented(true, "corprof.idl: ICorProfilerInfo4"),
    has_profiler_info9: documented(true, "corprof.idl: ICorProfilerInfo9"),
};
