//! .NET 9 on Unix: 9.0.7 was recorded on Linux. Sources are those of dotnet/runtime before .NET 10.

use super::answers::{
    Answers, EmptyWalk, Family, FrameIdentity, HijackArgsLayout, InlinedCallFrameLayout, Os,
    Product, ProfilerSuspension, SeedSize, StackCheck, Version, WalkFault, documented, observed,
    read,
};
use crate::profiling::CallbackMode;
use clr_walker::profiling::HResult;
use clr_walker::unwind::Rules;

/// The answers of this runtime.
pub(super) const ANSWERS: Answers = Answers {
    name: "net9-unix",
    family: Family {
        os: Os::Unix,
        product: Product::Core,
        version: Version(9, 0),
        legacy_exceptions: false,
    },
    unwind_rules: observed(Rules::CoreClrUnix),
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
    walk_fault: read(WalkFault::Kills, "proftoeeinterfaceimpl.cpp: DoStackSnapshotHelper"),
    stops_at_resumable_frames: read(true, "proftoeeinterfaceimpl.cpp: DoStackSnapshotHelper"),
    frames_have_cookies: observed(true),
    checks_cookies_below_rsp: read(false, "stackwalk.cpp: CheckGSCookies"),
    context_size: observed(0xC20),
    seed_size: observed(SeedSize { plain: 0x4D8, extended: 0x5E0, avx512: 0xC20, apx: 0xC20 }),
    frame_identity: observed(FrameIdentity::Vtable),
    inlined_call_frame: observed(InlinedCallFrameLayout::after(0x18)),
    hijack_args: observed(HijackArgsLayout::unix(0x10)),
    has_helper_method_frames: observed(true),
    has_gc_frames: observed(false),
    has_um_thunk_stub: read(false, "UMThunkStub.asm and umthunkstub.S: UMThunkStub"),
    has_delegate_frames: read(false, "frames.h: MulticastFrame"),
    has_tail_call_frames: read(false, "frames.h: TailCallFrame"),
    has_tail_call_dispatcher: read(true, "tailcallhelp.cpp: TailCallHelp"),
    has_suppressed_transitions: read(true, "dllimport.cpp: NDirect::NDirectLink"),
    has_software_exception_frames: read(false, "frames.h: SoftwareExceptionFrame"),
    hides_exception_handling: observed(true),
    hidden_classes: observed(&["System.Runtime.EH"]),
    unwind_enter_mode: observed(CallbackMode::Preemptive),
    unwind_leave_mode: observed(CallbackMode::Preemptive),
    frees_by_qcalls: observed(true),
    tells_of_assembly_unload_start: observed(true),
    tells_of_unloaded_functions: read(false, "proftoeeinterfaceimpl.cpp: FunctionUnloadStarted"),
    adds_code_under_lock: read(false, "codeman.cpp: ExecutionManager::AddRangeHelper"),
    catches_in_reflection: read(
        false,
        "reflectioninvocation.cpp: CallDescrWorkerReflectionWrapper",
    ),
    enters_a_catching_thrower_cooperatively: read(false, "exceptionhandling.cpp: ExceptionTracker"),
    redirected_context_flags: observed(0x10_004B),
    faulting_context_flags_lost: read(0x0, "exceptionhandling.cpp: FaultingExceptionFrame"),
    faulting_context_flags: read(0x810_0003, "signal.cpp: common_signal_handler"),
    profiler_suspension: read(
        ProfilerSuspension::MarkedAfter,
        "proftoeeinterfaceimpl.cpp: SuspendRuntime",
    ),
    forgets_who_locked_threads: read(true, "threadsuspend.cpp: ThreadSuspend::LockThreadStore"),
    locks_threads_twice: read(true, "profilingenumerators.cpp: ProfilerThreadEnum::Init"),
    looks_images_up_cooperatively: read(
        true,
        "readytoruninfo.cpp: ReadyToRunInfo::GetMethodDescForEntryPoint; hash.cpp: HashMap::LookupValue (00ac37e4)",
    ),
    suspends_only_in_callbacks: read(false, "proftoeeinterfaceimpl.cpp: SuspendRuntime"),
    looks_up_only_in_triggering_callbacks: observed(true),
    immutable_events: documented(0xEEF8_CC00, "corprof.idl: COR_PRF_MONITOR_IMMUTABLE"),
    attachable_events: documented(0x1005_02FE, "corprof.idl: COR_PRF_ALLOWABLE_AFTER_ATTACH"),
    has_profiler_info4: documented(true, "corprof.idl: ICorProfilerInfo4"),
    has_profiler_info9: documented(true, "corprof.idl: ICorProfilerInfo9"),
};
