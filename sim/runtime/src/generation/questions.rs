//! What differs between the generations: questions, each with its answers.

use super::Generation;
use Generation::{
    CoreClr31Unix, CoreClr31Windows, Framework2, Framework4, Net9Unix, Net9UnixLegacyExceptions,
    Net10Unix, Net10Windows,
};
use clr_walker::profiling::HResult;
use clr_walker::unwind::Rules;

/// A question about a runtime.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The name of its method on [`Generation`].
    pub name: &'static str,
    /// What it asks, with the clauses that tell.
    pub meaning: &'static str,
    /// The answer of a generation, in words.
    pub answer: fn(Generation) -> String,
}

/// What a walk without a start in managed code and without a stop gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EmptyWalk {
    /// `E_FAIL` without an internal stop (C-106).
    FailsWithoutStop,
    /// `E_FAIL` only if there is no Frame at all (C-107).
    FailsWithoutFrame,
}

/// How it is seen that an unwound frame is no frame of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StackCheck {
    /// rsp must lie within the thread's stack (C-109).
    Bounds,
    /// The slot of the return address, and what it points to, must be readable (C-110).
    Readable,
}

/// What an access violation within the walk leads to (C-111).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WalkFault {
    /// `E_UNEXPECTED`.
    Unexpected,
    /// The process dies.
    Kills,
}

/// How SuspendRuntime marks that it was the profiler who asked (contract §5.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProfilerSuspension {
    /// There is no such method.
    None,
    /// The mark is set before threads are stopped.
    MarkedBefore,
    /// The mark is set when they have been stopped (C-168).
    MarkedAfter,
}

/// How the runtime knows what kind of Frame it meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameIdentity {
    /// By its vtable's address.
    Vtable,
    /// By a number.
    Number,
}

/// Offsets within an InlinedCallFrame, in bytes (contract §3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlinedCallFrameLayout {
    /// `m_pCallSiteSP`.
    pub call_site_sp: u64,
    /// `m_pCallerReturnAddress`: 0 unless the call is active.
    pub return_address: u64,
    /// `m_pCalleeSavedFP`.
    pub frame_pointer: u64,
}

impl InlinedCallFrameLayout {
    const fn after(call_site_sp: u64) -> Self {
        Self { call_site_sp, return_address: call_site_sp + 8, frame_pointer: call_site_sp + 16 }
    }
}

/// A question is a method, and a row of the table.
macro_rules! questions {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty { $($pattern:pat => $answer:expr,)+ })*) => {
        impl Generation {
            $(
                $(#[doc = $doc])+
                #[must_use]
                pub const fn $name(self) -> $type {
                    match self { $($pattern => $answer,)+ }
                }
            )*
        }

        /// All questions.
        pub const QUESTIONS: &[Question] = &[$(Question {
            name: stringify!($name),
            meaning: concat!($($doc,)+),
            answer: |generation| generation.$name().in_words(),
        },)*];
    };
}

questions! {
    /// Whether it runs on Unix: the System V convention decides what is callee-saved, and single
    /// threads cannot be suspended (C-019).
    is_unix: bool {
        CoreClr31Unix | Net9Unix | Net9UnixLegacyExceptions | Net10Unix => true,
        Framework2 | Framework4 | CoreClr31Windows | Net10Windows => false,
    }

    /// Whether it is CoreCLR, not the Framework's runtime.
    is_core: bool { Framework2 | Framework4 => false, _ => true, }

    /// The rules by which it unwinds managed code (contract §8).
    unwind_rules: Rules {
        CoreClr31Unix | Net9Unix | Net9UnixLegacyExceptions | Net10Unix => Rules::CoreClrUnix,
        Framework2 | Framework4 | CoreClr31Windows | Net10Windows => Rules::Windows,
    }

    /// Whether a profiler can be detached (C-001).
    has_detach: bool { Framework2 => false, _ => true, }

    /// What a call gets without ENABLE_STACK_SNAPSHOT in the event mask (C-003, C-004).
    missing_snapshot_flag: HResult {
        Framework2 => HResult::INVALID_ARGUMENT,
        _ => HResult::INCONSISTENT_WITH_FLAGS,
    }

    /// Whether a GC-special thread counts as one without managed frames (C-011).
    passes_over_gc_special: bool { Framework2 => false, _ => true, }

    /// Whether the context of an unseeded target is read before its mode is looked at, and fails
    /// with E_FAIL (C-035).
    reads_context_first: bool { Framework2 => true, _ => false, }

    /// Whether it is checked that a cooperative target's context is safe to redirect, that its mode
    /// goes with its ip, and its Frames with its rsp (C-032 to C-034).
    checks_redirection: bool { Framework2 => false, _ => true, }

    /// Whether a lookup of code that would have to wait for a lock ends an asynchronous call with
    /// ASYNCHRONOUS_UNSAFE (C-036).
    refuses_to_wait: bool { Framework4 | CoreClr31Windows | CoreClr31Unix => true, _ => false, }

    /// ContextFlags of the context that the runtime itself takes of a suspended target: that of
    /// CONTEXT_FULL, with what EXCEPTION_REQUEST adds (contract §3.7).
    own_context_flags: u32 { Framework2 => 0x10_000B, _ => 0xC010_000B, }

    /// What a walk without internal stops gives (C-106, C-107).
    empty_walk: EmptyWalk {
        Framework2 => EmptyWalk::FailsWithoutFrame,
        _ => EmptyWalk::FailsWithoutStop,
    }

    /// How an unwound frame is checked (C-109, C-110).
    stack_check: StackCheck { Framework2 => StackCheck::Readable, _ => StackCheck::Bounds, }

    /// What an access violation within the walk or the callback leads to (C-111).
    walk_fault: WalkFault {
        CoreClr31Unix | Net9Unix | Net9UnixLegacyExceptions | Net10Unix => WalkFault::Kills,
        Framework2 | Framework4 | CoreClr31Windows | Net10Windows => WalkFault::Unexpected,
    }

    /// Whether a resumable Frame ends the walk of a thread that the call has suspended (C-075).
    stops_at_resumable_frames: bool { Framework2 => false, _ => true, }

    /// Whether Frames have a GS cookie below them (contract §3.2).
    frames_have_cookies: bool {
        Framework2 | Framework4 | CoreClr31Windows | CoreClr31Unix => true,
        Net9Unix | Net9UnixLegacyExceptions | Net10Windows | Net10Unix => false,
    }

    /// Whether a method's GS cookie is looked at although rsp is above it: in an epilogue the frame that
    /// it was in is gone (dotnet/runtime#40637 of .NET 5).
    checks_cookies_below_rsp: bool {
        Framework2 | Framework4 | CoreClr31Windows | CoreClr31Unix => true,
        Net9Unix | Net9UnixLegacyExceptions | Net10Windows | Net10Unix => false,
    }

    /// sizeof(CONTEXT) in bytes (C-102, C-103, C-161).
    context_size: u32 {
        Net9Unix | Net9UnixLegacyExceptions | Net10Unix => 0xC20,
        _ => 0x4D0,
    }

    /// Whether the bytes of a seed that are read depend on its ContextFlags (C-162).
    seed_size_depends_on_flags: bool {
        Net9Unix | Net9UnixLegacyExceptions | Net10Unix => true,
        _ => false,
    }

    /// How the kind of a Frame is told (contract §3.5).
    frame_identity: FrameIdentity {
        Net10Windows | Net10Unix => FrameIdentity::Number,
        _ => FrameIdentity::Vtable,
    }

    /// Where the fields of an InlinedCallFrame are: newer ones lack `m_StubSecretArg` (contract §3.5).
    inlined_call_frame: InlinedCallFrameLayout {
        Framework2 | Framework4 | CoreClr31Windows | CoreClr31Unix => {
            InlinedCallFrameLayout::after(0x20)
        },
        Net9Unix | Net9UnixLegacyExceptions | Net10Windows | Net10Unix => {
            InlinedCallFrameLayout::after(0x18)
        },
    }

    /// Whether helpers and FCalls put up HelperMethodFrames; newer ones use transition Frames
    /// (contract §3.5, §11).
    has_helper_method_frames: bool { Net10Windows | Net10Unix => false, _ => true, }

    /// Whether the Frame chain has GCFrames and ContextTransitionFrames (contract §3.5).
    has_gc_frames: bool {
        Framework2 | Framework4 | CoreClr31Windows | CoreClr31Unix => true,
        Net9Unix | Net9UnixLegacyExceptions | Net10Windows | Net10Unix => false,
    }

    /// Whether native code calls managed code through UMThunkStub, which switches the mode; in newer
    /// ones the stub of the reverse P/Invoke is called directly (C-170: observed on U9; kept for
    /// .NET 10, of which no such walk was recorded).
    has_um_thunk_stub: bool {
        Framework2 | Framework4 | CoreClr31Windows | CoreClr31Unix => true,
        Net9Unix | Net9UnixLegacyExceptions | Net10Windows | Net10Unix => false,
    }

    /// Whether delegates of several and wrapped ones are called by assembled stubs that link Frames, not
    /// by IL stubs (contract §3.5).
    has_delegate_frames: bool {
        Framework2 | Framework4 | CoreClr31Windows => true,
        _ => false,
    }

    /// Whether the tail call helper links a TailCallFrame (contract §3.5).
    has_tail_call_frames: bool {
        Framework2 | Framework4 | CoreClr31Windows => true,
        _ => false,
    }

    /// Whether tail calls by helper go through a managed dispatcher. Without it and the helper they are
    /// ordinary calls.
    has_tail_call_dispatcher: bool {
        Net9Unix | Net9UnixLegacyExceptions | Net10Windows | Net10Unix => true,
        _ => false,
    }

    /// Whether a P/Invoke can do without its transition (contract §4.1).
    has_suppressed_transitions: bool {
        Net9Unix | Net9UnixLegacyExceptions | Net10Windows | Net10Unix => true,
        _ => false,
    }

    /// Whether software exceptions are described by a SoftwareExceptionFrame (contract §3.5).
    has_software_exception_frames: bool { Net10Windows | Net10Unix => true, _ => false, }

    /// Whether exceptions are dispatched by managed code, whose frames no profiler sees (C-087,
    /// C-163).
    hides_exception_handling: bool {
        Net9Unix | Net10Windows | Net10Unix => true,
        Framework2
        | Framework4
        | CoreClr31Windows
        | CoreClr31Unix
        | Net9UnixLegacyExceptions => false,
    }

    /// Whether handles are created and destroyed, and dynamic methods destroyed, by QCalls, where older
    /// ones have FCalls with a Frame (observed).
    frees_by_qcalls: bool {
        Net9Unix | Net9UnixLegacyExceptions | Net10Windows | Net10Unix => true,
        _ => false,
    }

    /// Whether AssemblyUnloadStarted is raised: .NET Core 3.1 only tells of the end (observed).
    tells_of_assembly_unload_start: bool { CoreClr31Windows | CoreClr31Unix => false, _ => true, }

    /// Whether FunctionUnloadStarted is raised (contract §6).
    tells_of_unloaded_functions: bool { Framework2 => true, _ => false, }

    /// Whether new code heaps are told to the code manager under its writer lock; newer ones have a map
    /// that needs none for that (contract §2.6, §8.4).
    adds_code_under_lock: bool {
        Framework2 | Framework4 | CoreClr31Windows | CoreClr31Unix => true,
        Net9Unix | Net9UnixLegacyExceptions | Net10Windows | Net10Unix => false,
    }

    /// Whether the runtime's native code that calls methods by reflection catches what they throw
    /// (C-166): observed on U31, and not so with legacy handling on .NET 9; elsewhere by sources.
    catches_in_reflection: bool {
        Framework2 | Framework4 | CoreClr31Windows | CoreClr31Unix => true,
        Net9Unix | Net9UnixLegacyExceptions | Net10Windows | Net10Unix => false,
    }

    /// Whether ExceptionUnwindFunctionEnter is cooperative of a method that throws and itself catches:
    /// the first frame of its second pass is the last one, too. Observed on U31 and with legacy handling
    /// on .NET 9 (hardware faults, failed casts, an index out of range: 66 walks); not met on W31.
    enters_a_catching_thrower_cooperatively: bool {
        CoreClr31Unix | Net9UnixLegacyExceptions => true,
        _ => false,
    }

    /// ContextFlags of the CONTEXT of a thread that was redirected (contract §3.7).
    redirected_context_flags: u32 {
        Net9Unix | Net9UnixLegacyExceptions | Net10Unix => 0x10_004B,
        _ => 0x10_000B,
    }

    /// ContextFlags that a FaultingExceptionFrame's CONTEXT has, but callbacks do not get
    /// (contract §3.7).
    faulting_context_flags_lost: u32 { Net9UnixLegacyExceptions => 0x40, _ => 0, }

    /// ContextFlags of the CONTEXT in a FaultingExceptionFrame (contract §3.7).
    faulting_context_flags: u32 {
        CoreClr31Unix | Net9UnixLegacyExceptions => 0x810_004B,
        Net9Unix | Net10Unix => 0x810_0003,
        Framework2 | Framework4 | CoreClr31Windows | Net10Windows => 0x10_005F,
    }

    /// Whether there are SuspendRuntime and ResumeRuntime, and when the mark of the profiler's
    /// suspension is set (contract §5.9, C-168).
    profiler_suspension: ProfilerSuspension {
        Framework2 | Framework4 => ProfilerSuspension::None,
        CoreClr31Windows | CoreClr31Unix => ProfilerSuspension::MarkedBefore,
        Net9Unix | Net9UnixLegacyExceptions | Net10Windows | Net10Unix => {
            ProfilerSuspension::MarkedAfter
        },
    }

    /// Whether EnumThreads in a callback about a suspension lets the runtime forget who has locked the
    /// list of threads, on which the suspending thread then waits for itself (G17,
    /// dotnet/runtime#110062; later ones do not lock it twice, #110548).
    forgets_who_locked_threads: bool {
        Net9Unix | Net9UnixLegacyExceptions => true,
        _ => false,
    }

    /// Whether EnumThreads locks the list of threads even if its caller has locked it
    /// (dotnet/runtime#110548).
    locks_threads_twice: bool {
        Net10Windows | Net10Unix => false,
        _ => true,
    }

    /// Whether looking up ready-to-run code makes a thread of the runtime cooperative, so that it waits
    /// behind a suspension (C-157).
    looks_images_up_cooperatively: bool {
        CoreClr31Windows => true,
        _ => false,
    }

    /// Whether SuspendRuntime and ResumeRuntime need a callback in which a GC may be triggered, on
    /// threads that the runtime knows; elsewhere only callbacks without are refused (C-167).
    suspends_only_in_callbacks: bool {
        Net9Unix | Net9UnixLegacyExceptions | Net10Windows | Net10Unix => false,
        _ => true,
    }

    /// `COR_PRF_MONITOR_IMMUTABLE`: events that cannot be asked for, or waived, after startup.
    immutable_events: u32 {
        Framework2 | Framework4 => 0xEEFC_CC00,
        _ => 0xEEF8_CC00,
    }

    /// `COR_PRF_ALLOWABLE_AFTER_ATTACH`: events that a profiler may ask for that was attached to a
    /// running process.
    attachable_events: u32 {
        Framework2 | Framework4 => 0x1001_02FE,
        _ => 0x1005_02FE,
    }

    /// Whether there are ICorProfilerInfo3 and 4: EnumThreads, InitializeCurrentThread,
    /// GetFunctionFromIP2, GetCodeInfo3.
    has_profiler_info4: bool { Framework2 => false, _ => true, }

    /// Whether there is ICorProfilerInfo9: GetFunctionFromIP3, GetCodeInfo4 (C-118).
    has_profiler_info9: bool { Framework2 | Framework4 => false, _ => true, }
}

/// An answer as the table has it.
trait InWords {
    fn in_words(&self) -> String;
}

impl InWords for bool {
    fn in_words(&self) -> String {
        if *self { "yes" } else { "no" }.to_owned()
    }
}

impl InWords for u32 {
    fn in_words(&self) -> String {
        format!("{self:#x}")
    }
}

macro_rules! debug_in_words {
    ($($type:ty,)*) => {
        $(impl InWords for $type {
            fn in_words(&self) -> String {
                format!("{self:?}")
            }
        })*
    };
}

debug_in_words! { Rules, HResult, EmptyWalk, StackCheck, WalkFault, ProfilerSuspension, FrameIdentity, }

impl InWords for InlinedCallFrameLayout {
    fn in_words(&self) -> String {
        let Self { call_site_sp, return_address, frame_pointer } = self;
        format!("SP {call_site_sp:#x}, return address {return_address:#x}, FP {frame_pointer:#x}")
    }
}
