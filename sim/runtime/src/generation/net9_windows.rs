//! .NET 9 on Windows: 9.0.22 was recorded under wine. Its neighbors are .NET 9 on Unix, whose code it shares, and
//! .NET 8 and .NET 10 on Windows.

use super::answers::{
    Answers, CheckFailures, EmptyWalk, ExceptionHelper, Family, FrameIdentity, HijackArgsLayout,
    InlinedCallFrameLayout, InvokePath, KEPT_AT_END, Os, Product, ProfilerSuspension, SeedSize,
    StackCheck, StartPath, Version, WRITE_XOR_EXECUTE, WalkFault, assumed, documented, observed,
};
use crate::profiling::CallbackMode;
use clr_unwind::compat::Rules;
use clr_walker::profiling::HResult;

const NEIGHBORS: &str = "as .NET 9 on Unix and .NET 10 on Windows, which agree";
const AS_UNIX: &str = "as .NET 9 on Unix: the code is shared";

/// The answers of this runtime.
pub(super) const ANSWERS: Answers = Answers {
    name: "net9-windows",
    family: Family {
        os: Os::Windows,
        product: Product::Core,
        version: Version(9, 0),
        legacy_exceptions: false,
    },
    unwind_rules: assumed(Rules::CoreClr, "as .NET 8 and .NET 10 on Windows, which agree"),
    has_detach: assumed(true, NEIGHBORS),
    releases_profiler_at_end: assumed(false, KEPT_AT_END),
    missing_snapshot_flag: assumed(HResult::INCONSISTENT_WITH_FLAGS, NEIGHBORS),
    passes_over_gc_special: assumed(true, NEIGHBORS),
    reads_context_first: assumed(false, NEIGHBORS),
    checks_redirection: assumed(true, NEIGHBORS),
    refuses_to_wait: assumed(false, NEIGHBORS),
    own_context_flags: assumed(0xC010_000B, NEIGHBORS),
    empty_walk: observed(EmptyWalk::FailsWithoutStop),
    stack_check: assumed(StackCheck::Bounds, NEIGHBORS),
    walk_fault: assumed(WalkFault::Unexpected, "as .NET 8 and .NET 10 on Windows, which agree"),
    stops_at_resumable_frames: assumed(true, NEIGHBORS),
    frames_have_cookies: assumed(true, AS_UNIX),
    checks_cookies_below_rsp: assumed(false, NEIGHBORS),
    context_size: assumed(0x4D0, "as .NET 8 and .NET 10 on Windows, which agree"),
    seed_size: assumed(SeedSize::whole(0x4D0), "as .NET 8 and .NET 10 on Windows, which agree"),
    frame_identity: assumed(FrameIdentity::Vtable, AS_UNIX),
    inlined_call_frame: assumed(InlinedCallFrameLayout::after(0x18), NEIGHBORS),
    hijack_args: assumed(
        HijackArgsLayout::windows_with_rsp(8),
        "src/coreclr/vm/amd64/cgencpu.h: HijackArgs, as it was before the third register of .NET \
         10",
    ),
    has_helper_method_frames: assumed(true, AS_UNIX),
    has_gc_frames: assumed(false, NEIGHBORS),
    has_um_thunk_stub: assumed(false, NEIGHBORS),
    copies_write_barrier: documented(true, WRITE_XOR_EXECUTE),
    has_call_counting_stubs: assumed(
        true,
        "read at main after .NET 9: src/coreclr/vm/callcounting.h: CallCountingStub",
    ),
    has_delegate_frames: assumed(false, NEIGHBORS),
    has_com_frames: assumed(true, "as CoreCLR 3.1 and .NET 10 on Windows"),
    has_resolve_helper_frames: assumed(false, "a Frame of .NET 11"),
    calls_entry_point_by_managed_code: observed(false),
    has_tail_call_frames: assumed(false, NEIGHBORS),
    has_tail_call_dispatcher: assumed(true, NEIGHBORS),
    has_suppressed_transitions: assumed(true, NEIGHBORS),
    has_software_exception_frames: observed(false),
    hides_exception_handling: assumed(true, NEIGHBORS),
    exception_helper: observed(ExceptionHelper::low_bits_and_of_handlers(2, 6)),
    tells_of_calls_of_handling: assumed(false, "as .NET 9 on Unix, where it was observed"),
    unwind_enter_mode: assumed(CallbackMode::Preemptive, AS_UNIX),
    unwind_leave_mode: assumed(CallbackMode::Preemptive, AS_UNIX),
    frees_by_qcalls: assumed(true, NEIGHBORS),
    tells_of_assembly_unload_start: assumed(true, NEIGHBORS),
    tells_of_unloaded_functions: assumed(false, NEIGHBORS),
    catches_in_reflection: assumed(false, NEIGHBORS),
    searches_behind_native_code: assumed(
        false,
        "exceptions pass native code on Windows: no pass ends there",
    ),
    invoke_path: observed(InvokePath::MethodBase),
    thread_start_path: observed(StartPath::None),
    handles_exit_in_class_library: observed(false),
    check_failures: assumed(CheckFailures::Managed, "as .NET 9 on Unix, where it was observed"),
    compacts_as_induced: assumed(true, "as .NET 9 on Unix, where it was observed"),
    enters_a_catching_thrower_cooperatively: assumed(false, NEIGHBORS),
    redirected_context_flags: observed(0xC010_005B),
    redirected_context_flags_lost: observed(0x0),
    faulting_context_flags_lost: assumed(0x0, NEIGHBORS),
    faulting_context_flags: observed(0x810_0017),
    profiler_suspension: assumed(ProfilerSuspension::MarkedAfter, NEIGHBORS),
    suspends_before_finished: assumed(true, AS_UNIX),
    forgets_who_locked_threads: assumed(true, AS_UNIX),
    locks_threads_twice: assumed(true, AS_UNIX),
    looks_images_up_cooperatively: assumed(true, NEIGHBORS),
    suspends_only_in_callbacks: assumed(false, NEIGHBORS),
    looks_up_only_in_triggering_callbacks: assumed(true, AS_UNIX),
    forces_gc_on_foreign_threads_only: assumed(false, AS_UNIX),
    immutable_events: documented(0xEEF8_CC00, "corprof.idl: COR_PRF_MONITOR_IMMUTABLE"),
    attachable_events: documented(0x1005_02FE, "corprof.idl: COR_PRF_ALLOWABLE_AFTER_ATTACH"),
    profiler_info: assumed(15, "as .NET 9 on Unix"),
    runtime_version: assumed([9, 0, 7, 0], "as on Unix"),
    app_domain_name: assumed("clrhost", "as .NET 8 on Unix; a host may give another name"),
};
