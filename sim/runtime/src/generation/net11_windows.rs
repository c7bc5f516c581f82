//! .NET 11 on Windows: 11.0.0 was recorded under wine. Sources are single files of
//! dotnet/runtime's `main`.

use super::answers::{
    Answers, CheckFailures, EmptyWalk, ExceptionHelper, FORBIDDEN_CALLS, Family, FrameIdentity,
    HijackArgsLayout, InlinedCallFrameLayout, InvokePath, KEPT_AT_END, MARKS_LAST, Os, Product,
    ProfilerSuspension, SNAPSHOT_AT_MAIN, SeedSize, StackCheck, StartPath, TWO_SLOTS, Version,
    WRITE_XOR_EXECUTE, WalkFault, assumed, documented, observed,
};
use crate::profiling::CallbackMode;
use clr_unwind::compat::Rules;
use clr_walker::profiling::HResult;

/// The answers of this runtime.
pub(super) const ANSWERS: Answers = Answers {
    name: "net11-windows",
    family: Family {
        os: Os::Windows,
        product: Product::Core,
        version: Version(11, 0),
        legacy_exceptions: false,
    },
    unwind_rules: observed(Rules::CoreClr),
    has_detach: assumed(true, SNAPSHOT_AT_MAIN),
    releases_profiler_at_end: assumed(false, KEPT_AT_END),
    missing_snapshot_flag: assumed(HResult::INCONSISTENT_WITH_FLAGS, SNAPSHOT_AT_MAIN),
    passes_over_gc_special: assumed(true, SNAPSHOT_AT_MAIN),
    reads_context_first: assumed(false, SNAPSHOT_AT_MAIN),
    checks_redirection: assumed(true, SNAPSHOT_AT_MAIN),
    refuses_to_wait: assumed(false, SNAPSHOT_AT_MAIN),
    own_context_flags: observed(0xC010_000B),
    empty_walk: observed(EmptyWalk::FailsWithoutStop),
    stack_check: assumed(
        StackCheck::Bounds,
        "read at main after .NET 9: src/coreclr/vm/stackwalk.cpp: StackFrameIterator::NextRaw",
    ),
    walk_fault: assumed(WalkFault::Unexpected, "as .NET 10 on Windows, where it was observed"),
    stops_at_resumable_frames: assumed(
        true,
        "read at main after .NET 9: src/coreclr/vm/stackwalk.cpp: StackFrameIterator::NextRaw",
    ),
    frames_have_cookies: observed(false),
    checks_cookies_below_rsp: assumed(false, "dotnet/runtime#40637 of .NET 5"),
    context_size: observed(0x4D0),
    seed_size: assumed(
        SeedSize::whole(0x4D0),
        "as CoreCLR 3.1: the CONTEXT of Windows has no more",
    ),
    frame_identity: observed(FrameIdentity::Number),
    inlined_call_frame: observed(InlinedCallFrameLayout::after(0x18)),
    hijack_args: assumed(
        HijackArgsLayout::windows_with_rsp(0x10),
        "as .NET 10 on Unix, where rcx is a return value too, and as .NET 8 on Windows, where rsp is stored",
    ),
    has_helper_method_frames: observed(false),
    has_gc_frames: observed(false),
    has_um_thunk_stub: assumed(false, "as .NET 8 on both systems, where it was observed"),
    copies_write_barrier: documented(true, WRITE_XOR_EXECUTE),
    has_call_counting_stubs: assumed(
        true,
        "read at main after .NET 9: src/coreclr/vm/callcounting.h: CallCountingStub",
    ),
    has_delegate_frames: assumed(
        false,
        "read at main after .NET 9: src/coreclr/vm/FrameTypes.h: FRAME_TYPE_NAME",
    ),
    has_com_frames: documented(
        false,
        "data descriptor of coreclr.dll 11.0.0: no identifier of such a Frame",
    ),
    has_resolve_helper_frames: documented(
        true,
        "data descriptor of coreclr.dll 11.0.0: ResolveHelperFrameIdentifier",
    ),
    has_managed_entry_points: observed(true),
    has_tail_call_frames: assumed(
        false,
        "read at main after .NET 9: src/coreclr/vm/FrameTypes.h: FRAME_TYPE_NAME",
    ),
    has_tail_call_dispatcher: documented(
        true,
        "docs/design/features/tailcalls-with-helpers.md, since .NET 5",
    ),
    p_invokes_are_methods: observed(true),
    has_flat_modules: assumed(false, "the system maps each section at its RVA"),
    has_suppressed_transitions: documented(true, "SuppressGCTransitionAttribute, since .NET 5"),
    has_software_exception_frames: observed(true),
    hides_exception_handling: observed(true),
    exception_helper: observed(ExceptionHelper::low_bits(1)),
    tells_of_calls_of_handling: assumed(true, "as .NET 11 on Unix, where it was observed"),
    unwind_enter_mode: observed(CallbackMode::Cooperative),
    unwind_leave_mode: observed(CallbackMode::Cooperative),
    frees_by_qcalls: observed(true),
    tells_of_assembly_unload_start: assumed(true, "as .NET 10 on Windows, where it was observed"),
    tells_of_unloaded_functions: assumed(
        false,
        "as in CoreCLR 3.1: src/vm/eetoprofinterfaceimpl.cpp, which never raises it",
    ),
    catches_in_reflection: assumed(false, "as .NET 8 on Unix, where it was observed"),
    searches_behind_native_code: assumed(
        false,
        "exceptions pass native code on Windows: no pass ends there",
    ),
    invoke_path: observed(InvokePath::MethodBase),
    thread_start_path: observed(StartPath::StartCallback),
    has_native_thread_pool: assumed(false, "as .NET 11 on Unix, where it was observed"),
    later_tiers: assumed(2, "as .NET 11 on Unix, where it was observed"),
    replaces_code_on_stack: assumed(true, "as .NET 11 on Unix, where it was observed"),
    reuses_thread_objects: assumed(false, "as .NET 11 on Unix, where it was observed"),
    runs_finalizers_in_class_library: assumed(true, "as .NET 11 on Unix, where it was observed"),
    handles_exit_in_class_library: observed(true),
    handles_unhandled_in_class_library: assumed(true, "as .NET 11 on Unix, where it was observed"),
    check_failures: assumed(
        CheckFailures::ManagedDeep,
        "as .NET 11 on Unix, where it was observed",
    ),
    reports_called_funclets: assumed(false, "as .NET 11 on Unix, where it was observed"),
    compacts_as_induced: assumed(true, "as .NET 11 on Unix, where it was observed"),
    enters_a_catching_thrower_cooperatively: assumed(
        false,
        "exceptions are dispatched by managed code",
    ),
    redirected_context_flags: observed(0xC010_005B),
    redirected_context_flags_lost: observed(0x40),
    faulting_context_flags_lost: assumed(0x0, "as .NET 8, where it was observed"),
    faulting_context_flags: observed(0x810_001F),
    profiler_suspension: documented(ProfilerSuspension::MarkedAfter, MARKS_LAST),
    suspends_before_finished: assumed(true, "as .NET 9 on Unix, where it was observed"),
    forgets_who_locked_threads: assumed(
        false,
        "as the list is not locked twice: src/coreclr/vm/profilingenumerators.cpp at main after \
         .NET 9",
    ),
    locks_threads_twice: assumed(
        false,
        "read at main after .NET 9: src/coreclr/vm/profilingenumerators.cpp: \
         ProfilerThreadEnum::Init",
    ),
    looks_images_up_cooperatively: assumed(
        true,
        "read at main after .NET 9: src/coreclr/vm/hash.cpp: HashMap::LookupValue",
    ),
    reads_two_slots: documented(true, TWO_SLOTS),
    suspends_only_in_callbacks: assumed(false, "as .NET 10 on Unix, where it was observed"),
    looks_up_only_in_triggering_callbacks: assumed(false, "as .NET 10 on Unix"),
    forbids_code_info_2: documented(false, FORBIDDEN_CALLS),
    refuses_thread_0: documented(true, FORBIDDEN_CALLS),
    forces_gc_on_foreign_threads_only: assumed(false, "as .NET 10 on Unix"),
    immutable_events: documented(0xEE98_CC00, "dotnet/runtime pull request 113924"),
    attachable_events: documented(0x1005_02FE, "corprof.idl: COR_PRF_ALLOWABLE_AFTER_ATTACH"),
    profiler_info: assumed(15, "as .NET 9 on Unix"),
    runtime_version: assumed([11, 0, 0, 0], "as on Unix"),
    app_domain_name: assumed("clrhost", "as .NET 8 on Unix; a host may give another name"),
};
