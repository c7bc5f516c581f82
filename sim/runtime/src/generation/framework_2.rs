//! .NET Framework 2.0 to 3.5, which the documentation of `DoStackSnapshot` describes. No walk was
//! recorded: the answers were read in Shared Source CLI 2.0, which is 32-bit.

use super::answers::{
    Answers, EmptyWalk, Family, FrameIdentity, HijackArgsLayout, InlinedCallFrameLayout, Os,
    Product, ProfilerSuspension, SeedSize, StackCheck, Version, WalkFault, assumed, read,
};
use crate::profiling::CallbackMode;
use clr_walker::profiling::HResult;
use clr_walker::unwind::Rules;

/// The answers of this runtime.
pub(super) const ANSWERS: Answers = Answers {
    name: "framework-2",
    family: Family {
        os: Os::Windows,
        product: Product::Framework,
        version: Version(2, 0),
        legacy_exceptions: false,
    },
    unwind_rules: read(Rules::CoreClr, "unwinder_amd64.cpp: VirtualUnwind"),
    has_detach: read(false, "profilinghelper.cpp: ProfilingAPIDetach"),
    missing_snapshot_flag: read(
        HResult::INVALID_ARGUMENT,
        "proftoeeinterfaceimpl.cpp: DoStackSnapshot",
    ),
    passes_over_gc_special: read(false, "proftoeeinterfaceimpl.cpp: DoStackSnapshot"),
    reads_context_first: read(true, "proftoeeinterfaceimpl.cpp: DoStackSnapshot"),
    checks_redirection: read(false, "proftoeeinterfaceimpl.cpp: DoStackSnapshot"),
    refuses_to_wait: read(false, "codeman.cpp: IsManagedCode"),
    own_context_flags: read(0x10_000B, "proftoeeinterfaceimpl.cpp: DoStackSnapshot"),
    empty_walk: read(
        EmptyWalk::FailsWithoutFrame,
        "proftoeeinterfaceimpl.cpp: ProfilerStackWalkCallback",
    ),
    stack_check: read(StackCheck::Readable, "stackwalk.cpp: CheckForSkippedFrames"),
    walk_fault: read(WalkFault::Unexpected, "proftoeeinterfaceimpl.cpp: DoStackSnapshotHelper"),
    stops_at_resumable_frames: read(false, "proftoeeinterfaceimpl.cpp: DoStackSnapshotHelper"),
    frames_have_cookies: read(true, "frames.h: Frame::GetGSCookieAddr"),
    checks_cookies_below_rsp: read(true, "stackwalk.cpp: CheckGSCookies"),
    context_size: read(0x4D0, "pal.h: CONTEXT"),
    seed_size: read(SeedSize::whole(0x4D0), "proftoeeinterfaceimpl.cpp: DoStackSnapshot"),
    frame_identity: read(FrameIdentity::Vtable, "frames.h: FrameIdentifier"),
    inlined_call_frame: read(InlinedCallFrameLayout::after(0x20), "frames.h: InlinedCallFrame"),
    hijack_args: assumed(
        HijackArgsLayout::windows(8),
        "as CoreCLR 3.1 on Windows: Shared Source CLI is 32-bit",
    ),
    has_helper_method_frames: read(true, "frames.h: HelperMethodFrame"),
    has_gc_frames: read(true, "frames.h: GCFrame"),
    has_um_thunk_stub: read(true, "UMThunkStub.asm and umthunkstub.S: UMThunkStub"),
    has_delegate_frames: read(true, "frames.h: MulticastFrame"),
    has_tail_call_frames: read(true, "frames.h: TailCallFrame"),
    has_tail_call_dispatcher: read(false, "tailcallhelp.cpp: TailCallHelp"),
    has_suppressed_transitions: read(false, "dllimport.cpp: NDirect::NDirectLink"),
    has_software_exception_frames: read(false, "frames.h: SoftwareExceptionFrame"),
    hides_exception_handling: read(false, "exceptionhandling.cpp: DispatchManagedException"),
    hidden_classes: read(&[], "exceptionhandling.cpp: ExceptionTracker"),
    unwind_enter_mode: read(CallbackMode::Preemptive, "exceptionhandling.cpp: ExceptionTracker"),
    unwind_leave_mode: read(CallbackMode::Cooperative, "exceptionhandling.cpp: ExceptionTracker"),
    frees_by_qcalls: read(false, "marshalnative.cpp: QCalls of handles"),
    tells_of_assembly_unload_start: read(true, "assembly.cpp: Assembly::Terminate"),
    tells_of_unloaded_functions: read(true, "proftoeeinterfaceimpl.cpp: FunctionUnloadStarted"),
    adds_code_under_lock: read(true, "codeman.cpp: ExecutionManager::AddRangeHelper"),
    catches_in_reflection: read(true, "reflectioninvocation.cpp: CallDescrWorkerReflectionWrapper"),
    enters_a_catching_thrower_cooperatively: read(false, "exceptionhandling.cpp: ExceptionTracker"),
    redirected_context_flags: read(0x10_000B, "threadsuspend.cpp: HandledJITCase"),
    faulting_context_flags_lost: read(0x0, "exceptionhandling.cpp: FaultingExceptionFrame"),
    faulting_context_flags: read(0x10_005F, "signal.cpp: common_signal_handler"),
    profiler_suspension: read(
        ProfilerSuspension::None,
        "proftoeeinterfaceimpl.cpp: SuspendRuntime",
    ),
    forgets_who_locked_threads: read(false, "threadsuspend.cpp: ThreadSuspend::LockThreadStore"),
    locks_threads_twice: read(true, "profilingenumerators.cpp: ProfilerThreadEnum::Init"),
    looks_images_up_cooperatively: read(
        false,
        "codeman.cpp: ExecutionManager::FindReadyToRunModule",
    ),
    suspends_only_in_callbacks: read(true, "proftoeeinterfaceimpl.cpp: SuspendRuntime"),
    looks_up_only_in_triggering_callbacks: assumed(true, "the methods do not exist"),
    immutable_events: read(0xEEFC_CC00, "corprof.idl: COR_PRF_MONITOR_IMMUTABLE"),
    attachable_events: read(0x1001_02FE, "corprof.idl: COR_PRF_ALLOWABLE_AFTER_ATTACH"),
    has_profiler_info4: read(false, "corprof.idl: ICorProfilerInfo4"),
    has_profiler_info9: read(false, "corprof.idl: ICorProfilerInfo9"),
};
