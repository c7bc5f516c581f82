//! .NET 10 on Unix: 10.0.9 was recorded on Linux.

use super::answers::{
    Answers, EmptyWalk, ExceptionHelper, Family, FrameIdentity, HijackArgsLayout,
    InlinedCallFrameLayout, KEPT_AT_END, Os, Product, ProfilerSuspension, SeedSize, StackCheck,
    Version, WRITE_XOR_EXECUTE, WalkFault, assumed, documented, observed,
};
use crate::profiling::CallbackMode;
use clr_unwind::compat::Rules;
use clr_walker::profiling::HResult;

const NEIGHBORS: &str = "as .NET 9 on Unix and .NET 10 on Windows";

/// The answers of this runtime.
pub(super) const ANSWERS: Answers = Answers {
    name: "net10-unix",
    family: Family {
        os: Os::Unix,
        product: Product::Core,
        version: Version(10, 0),
        legacy_exceptions: false,
    },
    unwind_rules: observed(Rules::CoreClrUnix),
    has_detach: assumed(true, NEIGHBORS),
    releases_profiler_at_end: assumed(false, KEPT_AT_END),
    missing_snapshot_flag: observed(HResult::INCONSISTENT_WITH_FLAGS),
    passes_over_gc_special: assumed(true, NEIGHBORS),
    reads_context_first: assumed(false, NEIGHBORS),
    checks_redirection: assumed(true, NEIGHBORS),
    refuses_to_wait: assumed(false, NEIGHBORS),
    own_context_flags: assumed(0xC010_000B, NEIGHBORS),
    empty_walk: observed(EmptyWalk::FailsWithoutStop),
    stack_check: assumed(StackCheck::Bounds, NEIGHBORS),
    walk_fault: assumed(WalkFault::Kills, "as .NET 9 on Unix, where it was observed"),
    stops_at_resumable_frames: assumed(true, NEIGHBORS),
    frames_have_cookies: observed(false),
    checks_cookies_below_rsp: assumed(false, NEIGHBORS),
    context_size: observed(0xCA0),
    seed_size: observed(SeedSize {
        plain: 0x4D0,
        extended: 0x5E0,
        avx512: 0xC20,
        apx: Some(0xCA0),
    }),
    frame_identity: observed(FrameIdentity::Number),
    inlined_call_frame: observed(InlinedCallFrameLayout::after(0x18)),
    hijack_args: observed(HijackArgsLayout::unix(0x18)),
    has_helper_method_frames: observed(false),
    has_gc_frames: observed(false),
    has_um_thunk_stub: assumed(false, NEIGHBORS),
    copies_write_barrier: documented(true, WRITE_XOR_EXECUTE),
    has_call_counting_stubs: assumed(
        true,
        "read at main after .NET 9: src/coreclr/vm/callcounting.h: CallCountingStub",
    ),
    has_delegate_frames: assumed(false, NEIGHBORS),
    has_com_frames: documented(
        false,
        "data descriptor of libcoreclr.so 10.0.15: no identifier of such a Frame",
    ),
    has_resolve_helper_frames: documented(
        false,
        "data descriptor of libcoreclr.so 10.0.15: no identifier of such a Frame",
    ),
    calls_entry_point_by_managed_code: observed(false),
    has_tail_call_frames: assumed(false, NEIGHBORS),
    has_tail_call_dispatcher: assumed(true, NEIGHBORS),
    has_suppressed_transitions: assumed(true, NEIGHBORS),
    has_software_exception_frames: observed(true),
    hides_exception_handling: observed(true),
    exception_helper: observed(ExceptionHelper::low_bits(2)),
    unwind_enter_mode: observed(CallbackMode::Cooperative),
    unwind_leave_mode: observed(CallbackMode::Cooperative),
    frees_by_qcalls: observed(true),
    tells_of_assembly_unload_start: assumed(true, NEIGHBORS),
    tells_of_unloaded_functions: assumed(false, NEIGHBORS),
    catches_in_reflection: assumed(false, NEIGHBORS),
    enters_a_catching_thrower_cooperatively: assumed(false, NEIGHBORS),
    redirected_context_flags: observed(0x10_004B),
    redirected_context_flags_lost: observed(0x40),
    faulting_context_flags_lost: assumed(0x0, NEIGHBORS),
    faulting_context_flags: observed(0x810_000B),
    profiler_suspension: observed(ProfilerSuspension::MarkedAfter),
    suspends_before_finished: assumed(true, "as .NET 9 on Unix, where it was observed"),
    forgets_who_locked_threads: assumed(false, "as the list is not locked twice"),
    locks_threads_twice: assumed(
        false,
        "read at main: src/coreclr/vm/profilingenumerators.cpp: ProfilerThreadEnum::Init",
    ),
    looks_images_up_cooperatively: assumed(true, NEIGHBORS),
    suspends_only_in_callbacks: observed(false),
    looks_up_only_in_triggering_callbacks: observed(false),
    forces_gc_on_foreign_threads_only: assumed(false, NEIGHBORS),
    immutable_events: assumed(0xEEF8_CC00, NEIGHBORS),
    attachable_events: assumed(0x1005_02FE, NEIGHBORS),
    profiler_info: assumed(15, "as .NET 9 on Unix"),
    runtime_version: assumed([10, 0, 9, 0], "the version that was recorded"),
    app_domain_name: assumed("clrhost", "as .NET 8 on Unix; a host may give another name"),
};
