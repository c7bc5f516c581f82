//! CoreCLR 3.1 on Windows: 3.1.23 was recorded under wine; the source of 3.1.9 and 3.1.32 was read.

use super::answers::{
    Answers, CheckFailures, EmptyWalk, ExceptionHelper, Family, FrameIdentity, HijackArgsLayout,
    InlinedCallFrameLayout, InvokePath, Os, Product, ProfilerSuspension, SeedSize, StackCheck,
    StartPath, Version, WalkFault, assumed, observed, read,
};
use crate::profiling::CallbackMode;
use clr_unwind::compat::Rules;
use clr_walker::profiling::HResult;

/// The answers of this runtime.
pub(super) const ANSWERS: Answers = Answers {
    name: "coreclr-3.1-windows",
    family: Family {
        os: Os::Windows,
        product: Product::Core,
        version: Version(3, 1),
        legacy_exceptions: false,
    },
    unwind_rules: observed(Rules::CoreClr),
    has_detach: read(true, "src/vm/profdetach.cpp: ProfilingAPIDetach::RequestProfilerDetach"),
    releases_profiler_at_end: read(true, "src/vm/profilinghelper.cpp: TerminateProfiling"),
    missing_snapshot_flag: read(
        HResult::INCONSISTENT_WITH_FLAGS,
        "src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::DoStackSnapshot",
    ),
    passes_over_gc_special: read(true, "src/vm/proftoeeinterfaceimpl.inl: IsManagedThread"),
    reads_context_first: read(
        false,
        "src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::DoStackSnapshot",
    ),
    checks_redirection: read(
        true,
        "src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::DoStackSnapshot",
    ),
    refuses_to_wait: read(true, "src/vm/proftoeeinterfaceimpl.cpp: IsContextInManagedCode"),
    own_context_flags: observed(0xC010_000B),
    empty_walk: observed(EmptyWalk::FailsWithoutStop),
    stack_check: read(StackCheck::Bounds, "src/vm/stackwalk.cpp: StackFrameIterator::NextRaw"),
    walk_fault: observed(WalkFault::Unexpected),
    stops_at_resumable_frames: read(true, "src/vm/stackwalk.cpp: StackFrameIterator::NextRaw"),
    frames_have_cookies: observed(true),
    checks_cookies_below_rsp: read(true, "src/vm/stackwalk.cpp: CrawlFrame::CheckGSCookies"),
    context_size: observed(0x4D0),
    seed_size: read(SeedSize::whole(0x4D0), "src/inc/regdisp.h: FillRegDisplay"),
    frame_identity: observed(FrameIdentity::Vtable),
    inlined_call_frame: observed(InlinedCallFrameLayout::after(0x20)),
    hijack_args: observed(HijackArgsLayout::windows(8)),
    has_helper_method_frames: observed(true),
    has_gc_frames: observed(true),
    has_um_thunk_stub: read(true, "src/vm/amd64/UMThunkStub.asm: UMThunkStub"),
    copies_write_barrier: read(false, "src/vm/threads.cpp: InitThreadManager"),
    has_call_counting_stubs: read(false, "src/vm/callcounter.cpp: CallCounter::OnMethodCalled"),
    has_delegate_frames: read(true, "clrdefinitions.cmake: FEATURE_STUBS_AS_IL"),
    has_com_frames: read(true, "src/vm/frames.h: ComPlusMethodFrame"),
    has_resolve_helper_frames: assumed(false, "a Frame of .NET 11"),
    has_managed_entry_points: observed(false),
    has_tail_call_frames: read(true, "src/vm/jitinterface.cpp: CEEInfo::getTailCallCopyArgsThunk"),
    has_tail_call_dispatcher: read(
        false,
        "src/vm/jitinterface.cpp: CEEInfo::getTailCallCopyArgsThunk",
    ),
    p_invokes_are_methods: assumed(false, "as CoreCLR 3.1 on Unix, where it was observed"),
    has_flat_modules: assumed(false, "the system maps each section at its RVA"),
    has_suppressed_transitions: read(false, "src/vm/method.hpp: NDirectMethodDesc"),
    has_software_exception_frames: observed(false),
    hides_exception_handling: observed(false),
    exception_helper: observed(ExceptionHelper::NONE),
    tells_of_calls_of_handling: assumed(false, "native code dispatches exceptions"),
    unwind_enter_mode: observed(CallbackMode::Preemptive),
    unwind_leave_mode: observed(CallbackMode::Cooperative),
    frees_by_qcalls: observed(false),
    tells_of_assembly_unload_start: observed(false),
    tells_of_unloaded_functions: read(
        false,
        "src/vm/eetoprofinterfaceimpl.cpp: EEToProfInterfaceImpl::FunctionUnloadStarted",
    ),
    catches_in_reflection: read(
        true,
        "src/vm/reflectioninvocation.cpp: CallDescrWorkerReflectionWrapper",
    ),
    searches_behind_native_code: assumed(
        false,
        "exceptions pass native code on Windows: no pass ends there",
    ),
    invoke_path: assumed(InvokePath::Native, "as CoreCLR 3.1 on Unix, where it was observed"),
    thread_start_path: assumed(
        StartPath::ThreadStart,
        "as CoreCLR 3.1 on Unix, where it was observed",
    ),
    has_native_thread_pool: assumed(true, "as CoreCLR 3.1 on Unix, where it was observed"),
    later_tiers: assumed(1, "as CoreCLR 3.1 on Unix, where it was observed"),
    replaces_code_on_stack: assumed(false, "as CoreCLR 3.1 on Unix, where it was observed"),
    reuses_thread_objects: assumed(true, "as .NET 8 on Unix; only one later tier was seen"),
    runs_finalizers_in_class_library: assumed(
        false,
        "as CoreCLR 3.1 on Unix, where it was observed",
    ),
    handles_exit_in_class_library: assumed(true, "as CoreCLR 3.1 on Unix, where it was observed"),
    handles_unhandled_in_class_library: assumed(
        false,
        "as CoreCLR 3.1 on Unix, where it was observed",
    ),
    check_failures: assumed(CheckFailures::Native, "as CoreCLR 3.1 on Unix, where it was observed"),
    reports_called_funclets: assumed(false, "as on Unix, where it was observed"),
    compacts_as_induced: assumed(false, "as .NET 8 on Unix, where it was observed"),
    enters_a_catching_thrower_cooperatively: assumed(false, "not looked up in the recordings"),
    redirected_context_flags: observed(0x10_000B),
    redirected_context_flags_lost: assumed(0x0, "nothing read in src/vm of 3.1 takes bits away"),
    faulting_context_flags_lost: assumed(0x0, "nothing read in src/vm of 3.1 takes bits away"),
    faulting_context_flags: assumed(
        0x10_005F,
        "as .NET 8 on Windows, where it was observed: the flags come from Windows",
    ),
    profiler_suspension: read(
        ProfilerSuspension::MarkedBefore,
        "src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::SuspendRuntime",
    ),
    suspends_before_finished: read(
        false,
        "src/vm/threadsuspend.cpp: ThreadSuspend::SuspendRuntime",
    ),
    forgets_who_locked_threads: read(
        false,
        "src/vm/profilingenumerators.cpp: ProfilerThreadEnum::Init",
    ),
    locks_threads_twice: read(true, "src/vm/profilingenumerators.cpp: ProfilerThreadEnum::Init"),
    looks_images_up_cooperatively: observed(true),
    reads_two_slots: read(false, "src/vm/codeman.cpp: EEJitManager::FindMethodCode"),
    suspends_only_in_callbacks: read(
        true,
        "src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::SuspendRuntime",
    ),
    looks_up_only_in_triggering_callbacks: read(
        true,
        "src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::GetFunctionFromIP2",
    ),
    forbids_code_info_2: read(
        false,
        "src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::GetCodeInfo2",
    ),
    refuses_thread_0: read(
        true,
        "src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::GetThreadInfo",
    ),
    forces_gc_on_foreign_threads_only: read(
        false,
        "src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::ForceGC",
    ),
    immutable_events: read(0xEEF8_CC00, "src/inc/corprof.idl: COR_PRF_MONITOR_IMMUTABLE"),
    attachable_events: read(0x1005_02FE, "src/inc/corprof.idl: COR_PRF_ALLOWABLE_AFTER_ATTACH"),
    profiler_info: read(
        11,
        "src/vm/proftoeeinterfaceimpl.cpp: ProfToEEInterfaceImpl::QueryInterface",
    ),
    runtime_version: assumed([4, 0, 30319, 0], "as on Unix"),
    app_domain_name: assumed("clrhost", "as .NET 8 on Unix; a host may give another name"),
};
