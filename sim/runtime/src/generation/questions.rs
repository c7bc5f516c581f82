//! The differences between the generations, as questions.

use super::Generation;
use super::answers::{Answer, Family, Known};
use super::values::{
    CheckFailures, EmptyWalk, ExceptionHelper, FrameIdentity, HijackArgsLayout, InWords as _,
    InlinedCallFrameLayout, InvokePath, ProfilerSuspension, SeedSize, StackCheck, StartPath,
    WalkFault,
};
use crate::profiling::CallbackMode;
use clr_unwind::compat::Rules;
use clr_walker::profiling::HResult;

/// A question about a runtime.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// Name of the question's method on [`Generation`].
    pub name: &'static str,
    /// Meaning of the answer, with the clauses it is based on.
    pub meaning: &'static str,
    /// Function that returns the answer for a generation, in words.
    pub answer: fn(Generation) -> String,
    /// Function that returns how the answer for a generation is known.
    pub known: fn(Generation) -> Known,
}

impl Question {
    /// Returns the question with this name.
    pub fn from_name(name: &str) -> Option<&'static Self> {
        QUESTIONS.iter().find(|question| question.name == name)
    }
}

/// Defines each question as a field of [`Answers`], a method of [`Generation`] and a row of the table.
macro_rules! questions {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty,)*) => {
        /// The answers of a runtime to all questions. It has no default: a runtime's file names
        /// each field.
        #[derive(Debug)]
        pub(super) struct Answers {
            /// Name of the runtime, which recordings and texts use too.
            pub(super) name: &'static str,
            /// Place of the runtime among the others.
            pub(super) family: Family,
            $($(#[doc = $doc])+ pub(super) $name: Answer<$type>,)*
        }

        impl Generation {
            $(
                $(#[doc = $doc])+
                pub const fn $name(self) -> $type {
                    self.answers().$name.value
                }
            )*
        }

        /// All questions.
        pub const QUESTIONS: &[Question] = &[$(Question {
            name: stringify!($name),
            meaning: concat!($($doc,)+),
            answer: |generation| generation.$name().in_words(),
            known: |generation| generation.answers().$name.known,
        },)*];
    };
}

questions! {
    /// Returns the rules by which the runtime unwinds managed code (contract §8). On Windows it calls
    /// the system's `RtlVirtualUnwind`, whose later changes ([`Rules::Ntdll`]) no recording shows.
    unwind_rules: Rules,

    /// Returns true if a profiler can be detached (C-001).
    has_detach: bool,

    /// Returns true if the runtime detaches the profiler after `Shutdown`, and releases its object unless another thread is in
    /// its code; others keep it for what still calls it while the process ends.
    releases_profiler_at_end: bool,

    /// Returns the result of a call without ENABLE_STACK_SNAPSHOT in the event mask (C-003, C-004).
    missing_snapshot_flag: HResult,

    /// Returns true if a GC-special thread counts as a thread without managed frames (C-011).
    passes_over_gc_special: bool,

    /// Returns true if the context of an unseeded target is read before its mode is checked, and a
    /// failure gives E_FAIL (C-035).
    reads_context_first: bool,

    /// Returns true if the runtime checks that a cooperative target's context is safe to redirect,
    /// that its mode matches its ip, and its Frames match its rsp (C-032 to C-034).
    checks_redirection: bool,

    /// Returns true if a lookup of code that would have to wait for a lock ends an asynchronous
    /// call with ASYNCHRONOUS_UNSAFE (C-036).
    refuses_to_wait: bool,

    /// Returns the ContextFlags of the context that the runtime itself takes of a suspended target:
    /// those of CONTEXT_FULL, and the bits added by EXCEPTION_REQUEST (contract §3.7).
    own_context_flags: u32,

    /// Returns the result of a walk without internal stops (C-106, C-107).
    empty_walk: EmptyWalk,

    /// Returns the check of unwound frames (C-109, C-110).
    stack_check: StackCheck,

    /// Returns the result of an access violation within the walk or the callback (C-111).
    walk_fault: WalkFault,

    /// Returns true if a resumable Frame ends the walk of a thread that the call has suspended
    /// (C-075).
    stops_at_resumable_frames: bool,

    /// Returns true if Frames have a GS cookie below them (contract §3.2).
    frames_have_cookies: bool,

    /// Returns true if a method's GS cookie is checked although rsp is above it: in an epilogue the
    /// frame that contained it is gone (dotnet/runtime#40637 of .NET 5).
    checks_cookies_below_rsp: bool,

    /// Returns sizeof(CONTEXT) in bytes (C-102, C-103, C-161).
    context_size: u32,

    /// Returns the number of bytes read of a seed (C-053, C-162).
    seed_size: SeedSize,

    /// Returns the identification of a Frame's kind (contract §3.5).
    frame_identity: FrameIdentity,

    /// Returns the offsets of the fields of an InlinedCallFrame: newer ones lack `m_StubSecretArg`
    /// (contract §3.5).
    inlined_call_frame: InlinedCallFrameLayout,

    /// Returns the layout of HijackArgs (contract §3.5).
    hijack_args: HijackArgsLayout,

    /// Returns true if helpers and FCalls link HelperMethodFrames; newer runtimes use transition
    /// Frames (contract §3.5, §11).
    has_helper_method_frames: bool,

    /// Returns true if the Frame chain has GCFrames and ContextTransitionFrames (contract §3.5).
    has_gc_frames: bool,

    /// Returns true if native code calls managed code through UMThunkStub, which switches the mode;
    /// in newer runtimes the stub of the reverse P/Invoke is called directly (C-170: observed on
    /// U9; assumed for .NET 10, of which no such walk was recorded).
    has_um_thunk_stub: bool,

    /// Returns true if code executes a copy of the write barrier in memory outside of any image,
    /// which has no unwind data: so it is where code is never writable and executable at once. Of
    /// Unix, Linux is meant: CoreCLR 3.1 makes the copy on macOS alone.
    copies_write_barrier: bool,

    /// Returns the number of times that a method is compiled again by tiered compilation (contract §6).
    later_tiers: u8,

    /// Returns true if code of a method whose loop runs long is replaced on the stack: the method is compiled again on its own
    /// thread (contract §6).
    replaces_code_on_stack: bool,

    /// Returns true if the thread of tiered compilation has the ThreadID of the one before it, which has ended (contract §6).
    /// Observed on Linux alone, where these threads were told to end at once (`TC_BackgroundWorkerTimeoutMs=0`); that it is
    /// so after the time that they wait otherwise is assumed.
    reuses_thread_objects: bool,

    /// Returns true if the finalizer's thread runs finalizers by `System.GC.RunFinalizers`, which walks report (C-058).
    runs_finalizers_in_class_library: bool,

    /// Returns true if the calls of a method that may be compiled again are counted by a stub; older
    /// runtimes count them in the prestub, and very old ones not at all.
    has_call_counting_stubs: bool,

    /// Returns true if multicast and wrapper delegates are called by assembled stubs that link
    /// Frames, not by IL stubs (contract §3.5).
    has_delegate_frames: bool,

    /// Returns true if calls between managed code and COM link Frames of their own; elsewhere IL stubs make them, as those of
    /// P/Invokes do (contract §3.5).
    has_com_frames: bool,

    /// Returns true if the resolver of a virtual call that is not resolved yet links a ResolveHelperFrame when it is called by a
    /// stub without a cell (contract §3.5).
    has_resolve_helper_frames: bool,

    /// Returns true if the runtime calls managed code by methods of the class library with `UnmanagedCallersOnlyAttribute`, which
    /// walks report (C-058): the entry point of the program, class constructors, handlers of first-chance exceptions.
    has_managed_entry_points: bool,

    /// Returns true if the tail call helper links a TailCallFrame (contract §3.5).
    has_tail_call_frames: bool,

    /// Returns true if tail calls by helper go through a managed dispatcher. Without the dispatcher
    /// and the helper they are ordinary calls.
    has_tail_call_dispatcher: bool,

    /// Returns true if the code of a P/Invoke with marshalling belongs to its own method, which walks report, as they do the
    /// methods that it calls; elsewhere it is an IL stub (C-058, C-067).
    p_invokes_are_methods: bool,

    /// Returns true if a module without precompiled code lies in memory as in its file (COR_PRF_MODULE_FLAT_LAYOUT): RVAs are not
    /// offsets from its base.
    has_flat_modules: bool,

    /// Returns true if a P/Invoke can omit its transition (contract §4.1).
    has_suppressed_transitions: bool,

    /// Returns true if software exceptions are described by a SoftwareExceptionFrame (contract
    /// §3.5).
    has_software_exception_frames: bool,

    /// Returns true if exceptions are dispatched by managed code, whose frames are hidden from
    /// profilers (C-087, C-163).
    hides_exception_handling: bool,

    /// Returns the datum of InlinedCallFrames around calls of the runtime by managed exception handling: unmanaged code that
    /// such a call enters has no marker (C-085, C-087, C-163).
    exception_helper: ExceptionHelper,

    /// Returns true if the first pass of an exception is a reverse call into managed code of which the profiler is notified as of
    /// others: a transition before ExceptionThrown, and one before ExceptionSearchCatcherFound (contract §6).
    tells_of_calls_of_handling: bool,

    /// Returns the mode of ExceptionUnwindFunctionEnter (C-164, contract §6). Exceptions to it are
    /// handled where the callback is made.
    unwind_enter_mode: CallbackMode,

    /// Returns the mode of ExceptionUnwindFunctionLeave (C-164, contract §6).
    unwind_leave_mode: CallbackMode,

    /// Returns true if QCalls create and destroy handles and destroy dynamic methods, where older
    /// runtimes have FCalls with a Frame (observed).
    frees_by_qcalls: bool,

    /// Returns true if AssemblyUnloadStarted is raised: .NET Core 3.1 reports only the end
    /// (observed).
    tells_of_assembly_unload_start: bool,

    /// Returns true if FunctionUnloadStarted is raised (contract §6).
    tells_of_unloaded_functions: bool,

    /// Returns true if new code heaps are added to the code manager under its writer lock; newer
    /// runtimes have a map that does not need the lock (contract §2.6, §8.4).

    /// Returns true if the runtime's native code that calls methods by reflection catches their
    /// exceptions (C-166): observed on U31, and observed not to happen with legacy handling on .NET
    /// 9; elsewhere known from sources.
    catches_in_reflection: bool,

    /// Returns true if the first pass of an exception looks for a catch behind native code that lets no exception pass: its
    /// callbacks are made, and the process ends in the second pass.
    searches_behind_native_code: bool,

    /// Returns the way that a call by reflection takes from the second call of the method on.
    invoke_path: InvokePath,

    /// Returns the methods of the class library below the first method of a thread that a program has started.
    thread_start_path: StartPath,

    /// Returns true if the runtime itself starts the threads of its pool; elsewhere the class library does, as those of a program.
    has_native_thread_pool: bool,

    /// Returns true if the method of the class library that calls the handlers of the end of the process has a frame below them.
    handles_exit_in_class_library: bool,

    /// Returns true if a method of the class library that calls the handlers of unhandled exceptions has a frame below them.
    handles_unhandled_in_class_library: bool,

    /// Returns the code that throws when the check of an index or a cast fails.
    check_failures: CheckFailures,

    /// Returns true if a method is reported again, as left and entered, for each of its funclets that it has called itself and that an
    /// exception leaves. Others report a method once, with its funclets.
    reports_called_funclets: bool,

    /// Returns true if a GC that the program wants to move objects counts as induced.
    compacts_as_induced: bool,

    /// Returns true if ExceptionUnwindFunctionEnter is cooperative for a method that both throws
    /// and catches: the first frame of its second pass is also the last one. Observed on U31 and
    /// with legacy handling on .NET 9 (hardware faults, failed casts, an index out of range: 66
    /// walks); not observed on W31.
    enters_a_catching_thrower_cooperatively: bool,

    /// Returns the ContextFlags of the CONTEXT of a redirected thread (contract §3.7). On Windows those that wine's
    /// `GetThreadContext` gives were recorded; a thread that is stopped by `QueueUserAPC2`, from .NET 9 on where Windows has
    /// that, has those of the call's CONTEXT, which nobody has seen (`fixtures/gallery/suspension/stopped-by-an-apc.kdl`).
    redirected_context_flags: u32,

    /// Returns the ContextFlags that a redirected thread's CONTEXT has, but callbacks do not get (contract §3.7).
    redirected_context_flags_lost: u32,

    /// Returns the ContextFlags that a FaultingExceptionFrame's CONTEXT has, but callbacks do not
    /// get (contract §3.7).
    faulting_context_flags_lost: u32,

    /// Returns the ContextFlags of the CONTEXT in a FaultingExceptionFrame (contract §3.7).
    faulting_context_flags: u32,

    /// Returns how SuspendRuntime marks the suspension as the profiler's, if there are
    /// SuspendRuntime and ResumeRuntime (contract §5.9, C-168).
    profiler_suspension: ProfilerSuspension,

    /// Returns true if RuntimeSuspendFinished is made when the suspension is no longer in progress, so that
    /// walks of other threads are not refused for that (C-017, C-168).
    suspends_before_finished: bool,

    /// Returns true if EnumThreads in a suspension callback makes the runtime lose the owner of the
    /// thread list's lock, so that the suspending thread then waits for itself (G17,
    /// dotnet/runtime#110062; later runtimes do not lock the list twice, #110548).
    forgets_who_locked_threads: bool,

    /// Returns true if EnumThreads locks the list of threads even if its caller has locked it
    /// (dotnet/runtime#110548).
    locks_threads_twice: bool,

    /// Returns true if looking up ready-to-run code makes a thread of the runtime cooperative, so
    /// that it waits during a suspension (C-157): the table of the image's entry points is a
    /// `HashMap`, whose `LookupValue` does so.
    looks_images_up_cooperatively: bool,

    /// Returns true if a look-up in a code heap reads two slots of 256 bytes, that of the address and the one before, and
    /// finds no method if neither leads to one; others go back to the nearest start (C-041, C-147).
    reads_two_slots: bool,

    /// Returns true if SuspendRuntime and ResumeRuntime need a callback in which a GC may be
    /// triggered, on threads that the runtime knows; other runtimes refuse only callbacks in which
    /// none may be triggered (C-167).
    suspends_only_in_callbacks: bool,

    /// Returns true if GetFunctionFromIP2 and 3 and GetCodeInfo3 and 4 need a callback in which a GC
    /// may be triggered; other runtimes accept any callback (C-119, C-173).
    looks_up_only_in_triggering_callbacks: bool,

    /// Returns true if GetCodeInfo2 refuses a thread in a forbid-suspend region, as GetCodeInfo does (C-116).
    forbids_code_info_2: bool,

    /// Returns true if GetThreadInfo and GetHandleFromThread refuse thread 0; another runtime reads a Thread at address 0
    /// (C-121).
    refuses_thread_0: bool,

    /// Returns true if ForceGC refuses each thread that the runtime knows, with E_FAIL; other runtimes refuse those in
    /// callbacks and those with Frames (C-174, C-175).
    forces_gc_on_foreign_threads_only: bool,

    /// Returns `COR_PRF_MONITOR_IMMUTABLE`: the events that cannot be enabled or disabled after
    /// startup.
    immutable_events: u32,

    /// Returns `COR_PRF_ALLOWABLE_AFTER_ATTACH`: the events that a profiler may enable after it was
    /// attached to a running process.
    attachable_events: u32,

    /// Returns the number of the newest ICorProfilerInfo: 4 has EnumThreads, InitializeCurrentThread,
    /// GetFunctionFromIP2 and GetCodeInfo3, 8 GetFunctionFromIP3 (C-118), 9 GetCodeInfo4.
    profiler_info: u8,

    /// Returns the four parts of the version that GetRuntimeInformation reports.
    runtime_version: [u16; 4],

    /// Returns the name of the AppDomain, which the program that starts the runtime gives: here
    /// `dotnet`.
    app_domain_name: &'static str,
}
