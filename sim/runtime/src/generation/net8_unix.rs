//! .NET 8 on Unix: 8.0.4 was recorded on Linux.

use super::answers::{
    Answers, EmptyWalk, ExceptionHelper, Family, FrameIdentity, HijackArgsLayout,
    InlinedCallFrameLayout, KEPT_AT_END, Os, Product, ProfilerSuspension, SeedSize, StackCheck,
    Version, WRITE_XOR_EXECUTE, WalkFault, assumed, documented, observed,
};
use crate::profiling::CallbackMode;
use clr_unwind::compat::Rules;
use clr_walker::profiling::HResult;

const NEIGHBORS: &str = "as .NET Core 3.1 and .NET 9 on Unix, which agree";

/// The answers of this runtime.
pub(super) const ANSWERS: Answers = Answers {
    name: "net8-unix",
    family: Family {
        os: Os::Unix,
        product: Product::Core,
        version: Version(8, 0),
        legacy_exceptions: false,
    },
    unwind_rules: observed(Rules::CoreClrUnix),
    has_detach: assumed(true, NEIGHBORS),
    releases_profiler_at_end: assumed(false, KEPT_AT_END),
    missing_snapshot_flag: observed(HResult::INCONSISTENT_WITH_FLAGS),
    passes_over_gc_special: assumed(true, NEIGHBORS),
    reads_context_first: assumed(false, NEIGHBORS),
    checks_redirection: assumed(true, NEIGHBORS),
    refuses_to_wait: assumed(true, "as CoreCLR 3.1: readers that must not wait give up"),
    own_context_flags: assumed(0xC010_000B, NEIGHBORS),
    empty_walk: observed(EmptyWalk::FailsWithoutStop),
    stack_check: assumed(StackCheck::Bounds, NEIGHBORS),
    walk_fault: assumed(WalkFault::Kills, NEIGHBORS),
    stops_at_resumable_frames: assumed(true, NEIGHBORS),
    frames_have_cookies: observed(true),
    checks_cookies_below_rsp: assumed(false, "dotnet/runtime#40637 of .NET 5"),
    context_size: observed(0xC20),
    seed_size: observed(SeedSize { plain: 0x4D8, extended: 0x5E0, avx512: 0xC20, apx: None }),
    frame_identity: observed(FrameIdentity::Vtable),
    inlined_call_frame: observed(InlinedCallFrameLayout::after(0x20)),
    hijack_args: observed(HijackArgsLayout::unix(0x10)),
    has_helper_method_frames: observed(true),
    has_gc_frames: observed(false),
    has_um_thunk_stub: observed(false),
    copies_write_barrier: documented(true, WRITE_XOR_EXECUTE),
    has_call_counting_stubs: assumed(
        true,
        "read at main after .NET 9: src/coreclr/vm/callcounting.h: CallCountingStub",
    ),
    has_delegate_frames: assumed(false, NEIGHBORS),
    has_com_frames: assumed(false, "COM is Windows' own"),
    has_resolve_helper_frames: assumed(false, "a Frame of .NET 11"),
    calls_entry_point_by_managed_code: observed(false),
    has_tail_call_frames: assumed(false, NEIGHBORS),
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
    tells_of_unloaded_functions: assumed(false, NEIGHBORS),
    catches_in_reflection: observed(false),
    enters_a_catching_thrower_cooperatively: observed(true),
    redirected_context_flags: observed(0x10_004B),
    redirected_context_flags_lost: observed(0x0),
    faulting_context_flags_lost: observed(0x0),
    faulting_context_flags: observed(0x810_004B),
    profiler_suspension: assumed(
        ProfilerSuspension::MarkedAfter,
        "as .NET 8 on Windows, where it was observed",
    ),
    suspends_before_finished: observed(false),
    forgets_who_locked_threads: assumed(
        false,
        "as CoreCLR 3.1: dotnet/runtime#110062 is about .NET 9",
    ),
    locks_threads_twice: assumed(true, NEIGHBORS),
    looks_images_up_cooperatively: assumed(true, NEIGHBORS),
    suspends_only_in_callbacks: assumed(true, "as .NET 8 on Windows, where it was observed"),
    looks_up_only_in_triggering_callbacks: assumed(true, NEIGHBORS),
    forces_gc_on_foreign_threads_only: observed(false),
    immutable_events: documented(0xEEF8_CC00, "corprof.idl: COR_PRF_MONITOR_IMMUTABLE"),
    attachable_events: documented(0x1005_02FE, "corprof.idl: COR_PRF_ALLOWABLE_AFTER_ATTACH"),
    profiler_info: documented(14, "the ids of interfaces in libcoreclr.so 8.0.4"),
    runtime_version: observed([8, 0, 4, 0]),
    app_domain_name: observed("clrhost"),
};
