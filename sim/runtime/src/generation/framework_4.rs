//! .NET Framework 4.x. No walk was recorded and its source is not published: CoreCLR 3.1 on Windows is
//! its nearest relative.

use super::answers::{
    Answers, CheckFailures, EmptyWalk, ExceptionHelper, Family, FrameIdentity, HijackArgsLayout,
    InlinedCallFrameLayout, InvokePath, Os, Product, ProfilerSuspension, SeedSize, StackCheck,
    StartPath, Version, WalkFault, assumed, documented,
};
use crate::profiling::CallbackMode;
use clr_unwind::compat::Rules;
use clr_walker::profiling::HResult;

const AS_3_1: &str = "as CoreCLR 3.1 on Windows";

/// The answers of this runtime.
pub(super) const ANSWERS: Answers = Answers {
    name: "framework-4",
    family: Family {
        os: Os::Windows,
        product: Product::Framework,
        version: Version(4, 0),
        legacy_exceptions: false,
    },
    unwind_rules: assumed(Rules::CoreClr, AS_3_1),
    has_detach: assumed(true, AS_3_1),
    releases_profiler_at_end: assumed(true, AS_3_1),
    missing_snapshot_flag: assumed(HResult::INCONSISTENT_WITH_FLAGS, AS_3_1),
    passes_over_gc_special: assumed(true, AS_3_1),
    reads_context_first: assumed(false, AS_3_1),
    checks_redirection: assumed(true, AS_3_1),
    refuses_to_wait: assumed(true, AS_3_1),
    own_context_flags: assumed(0xC010_000B, AS_3_1),
    empty_walk: assumed(EmptyWalk::FailsWithoutStop, AS_3_1),
    stack_check: assumed(StackCheck::Bounds, AS_3_1),
    walk_fault: assumed(WalkFault::Unexpected, AS_3_1),
    stops_at_resumable_frames: assumed(true, AS_3_1),
    frames_have_cookies: assumed(true, AS_3_1),
    checks_cookies_below_rsp: assumed(true, AS_3_1),
    context_size: assumed(0x4D0, AS_3_1),
    seed_size: assumed(SeedSize::whole(0x4D0), AS_3_1),
    frame_identity: assumed(FrameIdentity::Vtable, AS_3_1),
    inlined_call_frame: assumed(InlinedCallFrameLayout::after(0x20), AS_3_1),
    hijack_args: assumed(HijackArgsLayout::windows(8), AS_3_1),
    has_helper_method_frames: assumed(true, AS_3_1),
    has_gc_frames: assumed(true, AS_3_1),
    has_um_thunk_stub: assumed(true, AS_3_1),
    copies_write_barrier: assumed(false, AS_3_1),
    has_call_counting_stubs: assumed(false, "methods are not compiled again"),
    has_delegate_frames: assumed(true, AS_3_1),
    has_com_frames: assumed(true, AS_3_1),
    has_resolve_helper_frames: assumed(false, "a Frame of .NET 11"),
    calls_entry_point_by_managed_code: assumed(false, AS_3_1),
    has_tail_call_frames: assumed(true, AS_3_1),
    has_tail_call_dispatcher: assumed(false, AS_3_1),
    has_suppressed_transitions: assumed(false, AS_3_1),
    has_software_exception_frames: assumed(false, AS_3_1),
    hides_exception_handling: assumed(false, AS_3_1),
    exception_helper: assumed(ExceptionHelper::NONE, AS_3_1),
    tells_of_calls_of_handling: assumed(false, "native code dispatches exceptions"),
    unwind_enter_mode: assumed(CallbackMode::Preemptive, AS_3_1),
    unwind_leave_mode: assumed(CallbackMode::Cooperative, AS_3_1),
    frees_by_qcalls: assumed(false, AS_3_1),
    tells_of_assembly_unload_start: assumed(true, "as .NET 9, where it was observed"),
    tells_of_unloaded_functions: assumed(false, AS_3_1),
    catches_in_reflection: assumed(true, AS_3_1),
    searches_behind_native_code: assumed(
        false,
        "exceptions pass native code on Windows: no pass ends there",
    ),
    invoke_path: assumed(InvokePath::Native, "as CoreCLR 3.1 on Unix"),
    thread_start_path: assumed(StartPath::ThreadStart, "as CoreCLR 3.1 on Unix"),
    handles_exit_in_class_library: assumed(true, "as CoreCLR 3.1 on Unix"),
    check_failures: assumed(CheckFailures::Native, "as CoreCLR 3.1 on Unix"),
    compacts_as_induced: assumed(false, "as .NET 8 on Unix, where it was observed"),
    enters_a_catching_thrower_cooperatively: assumed(false, AS_3_1),
    redirected_context_flags: assumed(0x10_000B, AS_3_1),
    redirected_context_flags_lost: assumed(0x0, AS_3_1),
    faulting_context_flags_lost: assumed(0x0, AS_3_1),
    faulting_context_flags: assumed(0x10_005F, AS_3_1),
    profiler_suspension: assumed(
        ProfilerSuspension::None,
        "ICorProfilerInfo10 came with .NET Core 3.0",
    ),
    suspends_before_finished: assumed(false, AS_3_1),
    forgets_who_locked_threads: assumed(false, AS_3_1),
    locks_threads_twice: assumed(true, AS_3_1),
    looks_images_up_cooperatively: assumed(false, "there is no ReadyToRun code"),
    suspends_only_in_callbacks: assumed(true, AS_3_1),
    looks_up_only_in_triggering_callbacks: assumed(true, AS_3_1),
    forces_gc_on_foreign_threads_only: assumed(false, AS_3_1),
    immutable_events: documented(
        0xEEFC_CC00,
        "COR_PRF_MONITOR enumeration, .NET Framework documentation",
    ),
    attachable_events: documented(
        0x1001_02BE,
        "COR_PRF_MONITOR enumeration, .NET Framework documentation",
    ),
    profiler_info: documented(
        8,
        "ICorProfilerInfo8 interface, .NET Framework documentation: since 4.7.2",
    ),
    runtime_version: documented(
        [4, 0, 30319, 42000],
        "Environment.Version property, .NET Framework documentation",
    ),
    app_domain_name: assumed("DefaultDomain", "the name of the default domain in .NET Framework"),
};
