//! .NET 9 on Unix with the setting `LegacyExceptionHandling`: exceptions are dispatched by native
//! code. 9.0.7 was recorded on Linux. Sources are those of dotnet/runtime before .NET 10.

use super::answers::{
    Answers, CheckFailures, EmptyWalk, ExceptionHelper, FORBIDDEN_CALLS, Family, FrameIdentity,
    HijackArgsLayout, InlinedCallFrameLayout, InvokePath, KEPT_AT_END, NEAREST_START, Os, Product,
    ProfilerSuspension, SeedSize, StackCheck, StartPath, Version, WRITE_XOR_EXECUTE, WalkFault,
    assumed, documented, observed,
};
use crate::profiling::CallbackMode;
use clr_unwind::compat::Rules;
use clr_walker::profiling::HResult;

/// The answers of this runtime.
pub(super) const ANSWERS: Answers = Answers {
    name: "net9-unix-legacy-exceptions",
    family: Family {
        os: Os::Unix,
        product: Product::Core,
        version: Version(9, 0),
        legacy_exceptions: true,
    },
    unwind_rules: observed(Rules::CoreClrUnix),
    has_detach: assumed(
        true,
        "as in CoreCLR 3.1 and at main after .NET 9: src/coreclr/vm/proftoeeinterfaceimpl.cpp: \
         ProfToEEInterfaceImpl::DoStackSnapshot",
    ),
    releases_profiler_at_end: assumed(false, KEPT_AT_END),
    missing_snapshot_flag: assumed(
        HResult::INCONSISTENT_WITH_FLAGS,
        "as in CoreCLR 3.1 and at main after .NET 9: src/coreclr/vm/proftoeeinterfaceimpl.cpp: \
         ProfToEEInterfaceImpl::DoStackSnapshot",
    ),
    passes_over_gc_special: assumed(
        true,
        "as in CoreCLR 3.1 and at main after .NET 9: src/coreclr/vm/proftoeeinterfaceimpl.cpp: \
         ProfToEEInterfaceImpl::DoStackSnapshot",
    ),
    reads_context_first: assumed(
        false,
        "as in CoreCLR 3.1 and at main after .NET 9: src/coreclr/vm/proftoeeinterfaceimpl.cpp: \
         ProfToEEInterfaceImpl::DoStackSnapshot",
    ),
    checks_redirection: assumed(
        true,
        "as in CoreCLR 3.1 and at main after .NET 9: src/coreclr/vm/proftoeeinterfaceimpl.cpp: \
         ProfToEEInterfaceImpl::DoStackSnapshot",
    ),
    refuses_to_wait: assumed(
        false,
        "read at main after .NET 9: src/coreclr/vm/proftoeeinterfaceimpl.cpp: \
         ProfToEEInterfaceImpl::DoStackSnapshot",
    ),
    own_context_flags: observed(0xC010_000B),
    empty_walk: observed(EmptyWalk::FailsWithoutStop),
    stack_check: assumed(
        StackCheck::Bounds,
        "as in CoreCLR 3.1 and at main after .NET 9: src/coreclr/vm/stackwalk.cpp: \
         StackFrameIterator::NextRaw",
    ),
    walk_fault: observed(WalkFault::Kills),
    stops_at_resumable_frames: assumed(
        true,
        "as in CoreCLR 3.1 and at main after .NET 9: src/coreclr/vm/stackwalk.cpp: \
         StackFrameIterator::NextRaw",
    ),
    frames_have_cookies: observed(true),
    checks_cookies_below_rsp: assumed(false, "dotnet/runtime#40637 of .NET 5"),
    context_size: observed(0xC20),
    seed_size: observed(SeedSize { plain: 0x4D8, extended: 0x5E0, avx512: 0xC20, apx: None }),
    frame_identity: observed(FrameIdentity::Vtable),
    inlined_call_frame: observed(InlinedCallFrameLayout::after(0x18)),
    hijack_args: observed(HijackArgsLayout::unix(0x10)),
    has_helper_method_frames: observed(true),
    has_gc_frames: observed(false),
    has_um_thunk_stub: observed(false),
    copies_write_barrier: documented(true, WRITE_XOR_EXECUTE),
    has_call_counting_stubs: assumed(
        true,
        "read at main after .NET 9: src/coreclr/vm/callcounting.h: CallCountingStub",
    ),
    has_delegate_frames: assumed(
        false,
        "read at main after .NET 9: src/coreclr/vm/FrameTypes.h: FRAME_TYPE_NAME",
    ),
    has_com_frames: assumed(false, "COM is Windows' own"),
    has_resolve_helper_frames: assumed(false, "a Frame of .NET 11"),
    has_managed_entry_points: observed(false),
    has_tail_call_frames: assumed(
        false,
        "read at main after .NET 9: src/coreclr/vm/FrameTypes.h: FRAME_TYPE_NAME",
    ),
    has_tail_call_dispatcher: documented(
        true,
        "docs/design/features/tailcalls-with-helpers.md, since .NET 5",
    ),
    p_invokes_are_methods: observed(false),
    has_flat_modules: observed(true),
    has_suppressed_transitions: documented(true, "SuppressGCTransitionAttribute, since .NET 5"),
    has_software_exception_frames: observed(false),
    hides_exception_handling: observed(false),
    exception_helper: observed(ExceptionHelper::NONE),
    tells_of_calls_of_handling: observed(false),
    unwind_enter_mode: observed(CallbackMode::Preemptive),
    unwind_leave_mode: observed(CallbackMode::Cooperative),
    frees_by_qcalls: observed(true),
    tells_of_assembly_unload_start: observed(true),
    tells_of_unloaded_functions: assumed(
        false,
        "as in CoreCLR 3.1: src/vm/eetoprofinterfaceimpl.cpp, which never raises it",
    ),
    catches_in_reflection: observed(false),
    searches_behind_native_code: observed(false),
    invoke_path: observed(InvokePath::MethodInfo),
    thread_start_path: observed(StartPath::None),
    has_native_thread_pool: observed(false),
    later_tiers: observed(2),
    replaces_code_on_stack: observed(true),
    reuses_thread_objects: observed(true),
    runs_finalizers_in_class_library: observed(true),
    handles_exit_in_class_library: observed(false),
    handles_unhandled_in_class_library: observed(false),
    check_failures: observed(CheckFailures::Managed),
    reports_called_funclets: observed(false),
    compacts_as_induced: observed(true),
    enters_a_catching_thrower_cooperatively: observed(true),
    redirected_context_flags: observed(0x10_004B),
    redirected_context_flags_lost: observed(0x0),
    faulting_context_flags_lost: observed(0x40),
    faulting_context_flags: observed(0x810_004B),
    profiler_suspension: observed(ProfilerSuspension::MarkedAfter),
    suspends_before_finished: observed(true),
    forgets_who_locked_threads: assumed(true, "dotnet/runtime#110062 reports it for .NET 9"),
    locks_threads_twice: assumed(
        true,
        "as in CoreCLR 3.1: src/vm/profilingenumerators.cpp; changed after .NET 9 by \
         dotnet/runtime#110548",
    ),
    looks_images_up_cooperatively: assumed(
        true,
        "read at main after .NET 9: src/coreclr/vm/hash.cpp: HashMap::LookupValue",
    ),
    reads_two_slots: documented(false, NEAREST_START),
    suspends_only_in_callbacks: observed(false),
    looks_up_only_in_triggering_callbacks: observed(true),
    forbids_code_info_2: documented(false, FORBIDDEN_CALLS),
    refuses_thread_0: documented(true, FORBIDDEN_CALLS),
    forces_gc_on_foreign_threads_only: assumed(false, "as .NET 9 on Unix"),
    immutable_events: documented(0xEEF8_CC00, "corprof.idl: COR_PRF_MONITOR_IMMUTABLE"),
    attachable_events: documented(0x1005_02FE, "corprof.idl: COR_PRF_ALLOWABLE_AFTER_ATTACH"),
    profiler_info: documented(15, "the ids of interfaces in libcoreclr.so 9.0.7"),
    runtime_version: observed([9, 0, 7, 0]),
    app_domain_name: assumed("clrhost", "as .NET 8 on Unix; a host may give another name"),
};
