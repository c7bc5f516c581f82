//! .NET 8 on Windows: 8.0.4 was recorded under wine.

use super::answers::{
    Answers, EmptyWalk, ExceptionHelper, Family, FrameIdentity, HijackArgsLayout,
    InlinedCallFrameLayout, KEPT_AT_END, Os, Product, ProfilerSuspension, SeedSize, StackCheck,
    Version, WRITE_XOR_EXECUTE, WalkFault, assumed, documented, observed,
};
use crate::profiling::CallbackMode;
use clr_unwind::compat::Rules;
use clr_walker::profiling::HResult;

const AS_3_1: &str = "as CoreCLR 3.1 on Windows, like nearly every recorded walk";

/// The answers of this runtime.
pub(super) const ANSWERS: Answers = Answers {
    name: "net8-windows",
    family: Family {
        os: Os::Windows,
        product: Product::Core,
        version: Version(8, 0),
        legacy_exceptions: false,
    },
    unwind_rules: observed(Rules::CoreClr),
    has_detach: assumed(true, AS_3_1),
    releases_profiler_at_end: assumed(false, KEPT_AT_END),
    missing_snapshot_flag: observed(HResult::INCONSISTENT_WITH_FLAGS),
    passes_over_gc_special: assumed(true, AS_3_1),
    reads_context_first: assumed(false, AS_3_1),
    checks_redirection: observed(true),
    refuses_to_wait: assumed(true, AS_3_1),
    own_context_flags: observed(0xC010_000B),
    empty_walk: observed(EmptyWalk::FailsWithoutStop),
    stack_check: assumed(StackCheck::Bounds, AS_3_1),
    walk_fault: observed(WalkFault::Unexpected),
    stops_at_resumable_frames: observed(true),
    frames_have_cookies: observed(true),
    checks_cookies_below_rsp: assumed(false, "dotnet/runtime#40637 of .NET 5"),
    context_size: observed(0x4D0),
    seed_size: assumed(SeedSize::whole(0x4D0), AS_3_1),
    frame_identity: observed(FrameIdentity::Vtable),
    inlined_call_frame: observed(InlinedCallFrameLayout::after(0x20)),
    hijack_args: observed(HijackArgsLayout::windows_with_rsp(8)),
    has_helper_method_frames: observed(true),
    has_gc_frames: observed(false),
    has_um_thunk_stub: observed(false),
    copies_write_barrier: documented(true, WRITE_XOR_EXECUTE),
    has_call_counting_stubs: observed(true),
    has_delegate_frames: assumed(false, "as .NET 9"),
    has_tail_call_frames: documented(
        false,
        "docs/design/features/tailcalls-with-helpers.md, since .NET 5",
    ),
    has_tail_call_dispatcher: documented(
        true,
        "docs/design/features/tailcalls-with-helpers.md, since .NET 5",
    ),
    has_suppressed_transitions: documented(true, "SuppressGCTransitionAttribute, since .NET 5"),
    has_software_exception_frames: observed(false),
    hides_exception_handling: observed(false),
    exception_helper: observed(ExceptionHelper::NONE),
    unwind_enter_mode: observed(CallbackMode::Preemptive),
    unwind_leave_mode: observed(CallbackMode::Cooperative),
    frees_by_qcalls: observed(false),
    tells_of_assembly_unload_start: assumed(true, "as .NET 9"),
    tells_of_unloaded_functions: assumed(false, AS_3_1),
    catches_in_reflection: assumed(false, "as .NET 8 on Unix, where it was observed"),
    enters_a_catching_thrower_cooperatively: observed(true),
    redirected_context_flags: observed(0x10_000B),
    redirected_context_flags_lost: assumed(
        0x0,
        "as its FaultingExceptionFrames, which were observed",
    ),
    faulting_context_flags_lost: observed(0x0),
    faulting_context_flags: observed(0x10_005F),
    profiler_suspension: observed(ProfilerSuspension::MarkedAfter),
    suspends_before_finished: assumed(false, "as .NET 8 on Unix, where it was observed"),
    forgets_who_locked_threads: assumed(false, AS_3_1),
    locks_threads_twice: assumed(true, AS_3_1),
    looks_images_up_cooperatively: observed(true),
    suspends_only_in_callbacks: observed(true),
    looks_up_only_in_triggering_callbacks: assumed(true, AS_3_1),
    forces_gc_on_foreign_threads_only: assumed(false, AS_3_1),
    immutable_events: documented(0xEEF8_CC00, "corprof.idl: COR_PRF_MONITOR_IMMUTABLE"),
    attachable_events: documented(0x1005_02FE, "corprof.idl: COR_PRF_ALLOWABLE_AFTER_ATTACH"),
    profiler_info: assumed(14, "as .NET 8 on Unix"),
    runtime_version: assumed([8, 0, 4, 0], "as on Unix"),
    app_domain_name: assumed("clrhost", "as .NET 8 on Unix; a host may give another name"),
};
