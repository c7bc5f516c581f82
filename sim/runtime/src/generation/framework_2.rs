//! .NET Framework 2.0 to 3.5, which the documentation of `DoStackSnapshot` describes. No walk was
//! recorded. Shared Source CLI 2.0 was read in part: it is 32-bit. Paths begin at its root.

use super::answers::{
    Answers, CheckFailures, EmptyWalk, ExceptionHelper, Family, FrameIdentity, HijackArgsLayout,
    InlinedCallFrameLayout, InvokePath, Os, Product, ProfilerSuspension, SeedSize, StackCheck,
    StartPath, Version, WalkFault, assumed, documented, read,
};
use crate::profiling::CallbackMode;
use clr_unwind::compat::Rules;
use clr_walker::profiling::HResult;

/// The answers of this runtime.
pub(super) const ANSWERS: Answers = Answers {
    name: "framework-2",
    family: Family {
        os: Os::Windows,
        product: Product::Framework,
        version: Version(2, 0),
        legacy_exceptions: false,
    },
    unwind_rules: assumed(Rules::CoreClr, "as CoreCLR 3.1 on Windows: Shared Source CLI is 32-bit"),
    has_detach: assumed(false, "ICorProfilerInfo3 came with .NET Framework 4"),
    releases_profiler_at_end: assumed(true, "as CoreCLR 3.1"),
    missing_snapshot_flag: read(
        HResult::INVALID_ARGUMENT,
        "clr/src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::DoStackSnapshot",
    ),
    passes_over_gc_special: read(
        false,
        "clr/src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::DoStackSnapshot",
    ),
    reads_context_first: read(
        true,
        "clr/src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::DoStackSnapshot",
    ),
    checks_redirection: read(
        false,
        "clr/src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::DoStackSnapshot",
    ),
    refuses_to_wait: read(
        false,
        "clr/src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::DoStackSnapshot",
    ),
    own_context_flags: assumed(
        0x10_000B,
        "CONTEXT_FULL, as nothing else was read in DoStackSnapshot of Shared Source CLI",
    ),
    empty_walk: read(
        EmptyWalk::FailsWithoutFrame,
        "clr/src/vm/stackwalk.cpp: Thread::StackWalkFramesEx",
    ),
    stack_check: assumed(
        StackCheck::Readable,
        "C-110 names clr/src/vm/stackwalk.cpp, but no function",
    ),
    walk_fault: read(
        WalkFault::Unexpected,
        "clr/src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::DoStackSnapshot",
    ),
    stops_at_resumable_frames: read(false, "clr/src/vm/stackwalk.cpp: Thread::StackWalkFramesEx"),
    frames_have_cookies: assumed(
        true,
        "as CoreCLR 3.1 on Windows; not looked up in Shared Source CLI",
    ),
    checks_cookies_below_rsp: assumed(
        true,
        "as CoreCLR 3.1 on Windows; not looked up in Shared Source CLI",
    ),
    context_size: assumed(0x4D0, "the CONTEXT of x64 Windows: Shared Source CLI is 32-bit"),
    seed_size: assumed(
        SeedSize::whole(0x4D0),
        "the CONTEXT of x64 Windows: Shared Source CLI is 32-bit",
    ),
    frame_identity: assumed(
        FrameIdentity::Vtable,
        "as CoreCLR 3.1 on Windows; not looked up in Shared Source CLI",
    ),
    inlined_call_frame: assumed(
        InlinedCallFrameLayout::after(0x20),
        "as CoreCLR 3.1 on Windows: Shared Source CLI is 32-bit",
    ),
    hijack_args: assumed(
        HijackArgsLayout::windows(8),
        "as CoreCLR 3.1 on Windows: Shared Source CLI is 32-bit",
    ),
    has_helper_method_frames: read(true, "clr/src/vm/proftoeeinterfaceimpl.cpp: ProfileEnter"),
    has_gc_frames: assumed(true, "as CoreCLR 3.1 on Windows; not looked up in Shared Source CLI"),
    has_um_thunk_stub: assumed(
        true,
        "as CoreCLR 3.1 on Windows; not looked up in Shared Source CLI",
    ),
    copies_write_barrier: assumed(false, "as CoreCLR 3.1"),
    has_call_counting_stubs: assumed(false, "methods are not compiled again"),
    has_delegate_frames: assumed(
        true,
        "as CoreCLR 3.1 on Windows; not looked up in Shared Source CLI",
    ),
    has_com_frames: assumed(true, "as CoreCLR 3.1 on Windows"),
    has_resolve_helper_frames: assumed(false, "a Frame of .NET 11"),
    has_managed_entry_points: assumed(false, "as CoreCLR 3.1 on Windows"),
    has_tail_call_frames: assumed(
        true,
        "as CoreCLR 3.1 on Windows; not looked up in Shared Source CLI",
    ),
    has_tail_call_dispatcher: assumed(false, "came with .NET 5"),
    p_invokes_are_methods: assumed(false, "as CoreCLR 3.1"),
    has_flat_modules: assumed(false, "the system maps each section at its RVA"),
    has_suppressed_transitions: assumed(false, "SuppressGCTransitionAttribute came with .NET 5"),
    has_software_exception_frames: assumed(false, "came after .NET 9"),
    hides_exception_handling: assumed(false, "managed exception handling came with .NET 9"),
    exception_helper: assumed(ExceptionHelper::NONE, "managed exception handling came with .NET 9"),
    tells_of_calls_of_handling: assumed(false, "native code dispatches exceptions"),
    unwind_enter_mode: assumed(
        CallbackMode::Preemptive,
        "as CoreCLR 3.1 on Windows; not looked up in Shared Source CLI",
    ),
    unwind_leave_mode: assumed(
        CallbackMode::Cooperative,
        "as CoreCLR 3.1 on Windows; not looked up in Shared Source CLI",
    ),
    frees_by_qcalls: assumed(
        false,
        "as CoreCLR 3.1 on Windows; not looked up in Shared Source CLI",
    ),
    tells_of_assembly_unload_start: assumed(true, "as .NET 9, where it was observed"),
    tells_of_unloaded_functions: assumed(
        true,
        "raised when an AppDomain is unloaded, which CoreCLR cannot do",
    ),
    catches_in_reflection: assumed(
        true,
        "as CoreCLR 3.1 on Windows; not looked up in Shared Source CLI",
    ),
    searches_behind_native_code: assumed(
        false,
        "exceptions pass native code on Windows: no pass ends there",
    ),
    invoke_path: assumed(InvokePath::Native, "as CoreCLR 3.1 on Unix"),
    thread_start_path: assumed(StartPath::ThreadStart, "as CoreCLR 3.1 on Unix"),
    has_native_thread_pool: assumed(true, "as CoreCLR 3.1 on Unix"),
    later_tiers: assumed(0, "methods are not compiled again"),
    replaces_code_on_stack: assumed(false, "methods are not compiled again"),
    reuses_thread_objects: assumed(true, "there is no tiered compilation"),
    runs_finalizers_in_class_library: assumed(false, "as CoreCLR 3.1 on Unix"),
    handles_exit_in_class_library: assumed(true, "as CoreCLR 3.1 on Unix"),
    handles_unhandled_in_class_library: assumed(false, "as CoreCLR 3.1 on Unix"),
    check_failures: assumed(CheckFailures::Native, "as CoreCLR 3.1 on Unix"),
    reports_called_funclets: assumed(false, "as CoreCLR 3.1 on Unix, where it was observed"),
    compacts_as_induced: assumed(false, "as .NET 8 on Unix, where it was observed"),
    enters_a_catching_thrower_cooperatively: assumed(
        false,
        "as CoreCLR 3.1 on Windows; not looked up in Shared Source CLI",
    ),
    redirected_context_flags: assumed(
        0x10_000B,
        "as CoreCLR 3.1 on Windows; not looked up in Shared Source CLI",
    ),
    redirected_context_flags_lost: assumed(
        0x0,
        "as CoreCLR 3.1 on Windows; not looked up in Shared Source CLI",
    ),
    faulting_context_flags_lost: assumed(
        0x0,
        "as CoreCLR 3.1 on Windows; not looked up in Shared Source CLI",
    ),
    faulting_context_flags: assumed(
        0x10_005F,
        "as CoreCLR 3.1 on Windows; not looked up in Shared Source CLI",
    ),
    profiler_suspension: assumed(
        ProfilerSuspension::None,
        "ICorProfilerInfo10 came with .NET Core 3.0",
    ),
    suspends_before_finished: assumed(false, "as CoreCLR 3.1"),
    forgets_who_locked_threads: assumed(false, "EnumThreads does not exist"),
    locks_threads_twice: assumed(true, "EnumThreads does not exist"),
    looks_images_up_cooperatively: assumed(false, "there is no ReadyToRun code"),
    reads_two_slots: read(false, "clr/src/vm/codeman.cpp: EEJitManager::FindMethodCode"),
    suspends_only_in_callbacks: assumed(true, "SuspendRuntime does not exist"),
    looks_up_only_in_triggering_callbacks: assumed(true, "the methods do not exist"),
    forbids_code_info_2: read(
        true,
        "clr/src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::GetCodeInfo2Helper",
    ),
    refuses_thread_0: read(
        false,
        "clr/src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::GetThreadInfo",
    ),
    forces_gc_on_foreign_threads_only: read(
        true,
        "clr/src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::ForceGC",
    ),
    immutable_events: read(0x3EFC_CC80, "clr/src/inc/corprof.idl: COR_PRF_MONITOR_IMMUTABLE"),
    attachable_events: assumed(0x1001_02FE, "a profiler cannot attach"),
    profiler_info: read(
        2,
        "clr/src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::QueryInterface",
    ),
    runtime_version: documented(
        [2, 0, 50727, 0],
        "Environment.Version property, .NET Framework documentation",
    ),
    app_domain_name: assumed("DefaultDomain", "the name of the default domain in .NET Framework"),
};
