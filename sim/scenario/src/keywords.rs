//! The words of the text format for the values of enums.

use super::expect::{UnwindErrorKind, WalkEnd};
use super::hand_stack::{PlacedThread, SuspensionState, ThreadMode};
use super::histories::{ScriptSeed, WaitKind};
use super::mixed::{MixedClaim, MixedFrameKind, ReasonKind};
use clr_codegen::{
    Allocation, CallForm, CallingConvention, CodeKind, ColdForm, EntryForm, EpilogueCfi, FrameSet,
    Realign, Release, ReturnForm, SaveArea, TailCallForm, UnwindData, Wrap,
};
use clr_explore::ProfilerRule;
use clr_runtime::MethodKind;
use clr_runtime::code_manager::StubKind;
use clr_runtime::profiling::CallbackKind;
use clr_runtime::{ContextSafety, FrameKind, Funclet, Pass, ProfilerStatus, ThreadLife};
use clr_walker::mixed::{Policy, SeenBy};
use clr_walker::registers::Gpr;
use clr_walker::unwind::{Rules, Trust};
use clr_world::StopBy;
use clr_world::stubs::Hooks;

/// A value that is written as one word.
pub trait Keyword: Copy + PartialEq + 'static {
    /// All words, in the order of the enum.
    const WORDS: &'static [&'static str];

    /// Returns the word of the value.
    fn word(self) -> &'static str;

    /// Returns the value of a word.
    fn from_word(word: &str) -> Option<Self>;
}

macro_rules! terms {
    ($($type:ty { $($word:literal => ($($value:tt)+),)+ })+) => {
        $(impl Keyword for $type {
            const WORDS: &'static [&'static str] = &[$($word),+];

            fn word(self) -> &'static str {
                match self {
                    $($($value)+ => $word,)+
                }
            }

            fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some($($value)+),)+
                    _ => None,
                }
            }
        })+
    };
}

terms! {
    CallingConvention {
        "windows-x64" => (CallingConvention::WindowsX64),
        "system-v" => (CallingConvention::SystemV),
    }
    Hooks {
        "none" => (Hooks::None),
        "slow" => (Hooks::Slow),
        "fast" => (Hooks::Fast),
    }
    StopBy {
        "redirection" => (StopBy::Redirection),
        "hijack" => (StopBy::Hijack),
    }
    MethodKind {
        "ordinary" => (MethodKind::Ordinary),
        "il-stub" => (MethodKind::IlStub),
        "dynamic" => (MethodKind::Dynamic),
        "exception-handling" => (MethodKind::ExceptionHandling),
    }
    CodeKind {
        "jit" => (CodeKind::Jit),
        "ready-to-run" => (CodeKind::ReadyToRun),
        "native" => (CodeKind::Native),
    }
    EntryForm {
        "call" => (EntryForm::Call),
        "interrupt" => (EntryForm::Interrupt),
        "interrupt-with-error-code" => (EntryForm::InterruptWithErrorCode),
        "signal" => (EntryForm::Signal),
    }
    SaveArea {
        "above-locals" => (SaveArea::AboveLocals),
        "below-locals" => (SaveArea::BelowLocals),
    }
    Allocation {
        "sub" => (Allocation::Sub),
        "sub-imm32" => (Allocation::SubImm32),
        "push" => (Allocation::Push),
        "probes" => (Allocation::Probes),
        "probe-loop" => (Allocation::ProbeLoop),
        "chkstk" => (Allocation::Chkstk),
    }
    Wrap {
        "whole" => (Wrap::Whole),
        "inside" => (Wrap::Inside),
        "apart" => (Wrap::Apart),
    }
    EpilogueCfi {
        "restored" => (EpilogueCfi::Restored),
        "continued" => (EpilogueCfi::Continued),
    }
    Realign {
        "no" => (Realign::No),
        "to-32" => (Realign::To32),
        "to-64" => (Realign::To64),
    }
    FrameSet {
        "behind-push" => (FrameSet::BehindPush),
        "before-allocation" => (FrameSet::BeforeAllocation),
        "after-allocation" => (FrameSet::AfterAllocation),
        "after-saves" => (FrameSet::AfterSaves),
    }
    Release {
        "add" => (Release::Add),
        "add-imm32" => (Release::AddImm32),
        "pop" => (Release::Pop),
        "lea" => (Release::Lea),
        "lea-disp32" => (Release::LeaDisp32),
        "r11" => (Release::R11),
        "mov" => (Release::Mov),
        "leave" => (Release::Leave),
    }
    UnwindData {
        "none" => (UnwindData::None),
        "version-1" => (UnwindData::Version1),
        "version-2" => (UnwindData::Version2),
        "version-2-without-epilogs" => (UnwindData::Version2WithoutEpilogs),
        "version-3" => (UnwindData::Version3),
    }
    ColdForm {
        "chained" => (ColdForm::Chained),
        "separate" => (ColdForm::Separate),
    }
    CallForm {
        "near" => (CallForm::Near),
        "register" => (CallForm::Register),
        "memory" => (CallForm::Memory),
        "plt" => (CallForm::Plt),
    }
    TailCallForm {
        "near" => (TailCallForm::Near),
        "register" => (TailCallForm::Register),
        "register-without-rex" => (TailCallForm::RegisterWithoutRex),
        "register-memory" => (TailCallForm::RegisterMemory),
        "memory" => (TailCallForm::Memory),
    }
    ReturnForm {
        "ret" => (ReturnForm::Ret),
        "ret-imm" => (ReturnForm::RetImm),
        "rep-ret" => (ReturnForm::RepRet),
        "bnd-ret" => (ReturnForm::BndRet),
        "rex-ret" => (ReturnForm::RexRet),
        "vzeroupper-ret" => (ReturnForm::VzeroupperRet),
    }
    Rules {
        "precise" => (Rules::Precise),
        "coreclr" => (Rules::CoreClr),
        "coreclr-unix" => (Rules::CoreClrUnix),
        "ntdll" => (Rules::Ntdll),
    }
    Trust {
        "body" => (Trust::Body),
        "prologue" => (Trust::Prologue),
        "epilogue-codes" => (Trust::EpilogueCodes),
        "epilogue-instructions" => (Trust::EpilogueInstructions),
        "cfi" => (Trust::Cfi),
        "compact" => (Trust::Compact),
        "followed-code" => (Trust::FollowedCode),
        "compact-assumed" => (Trust::CompactAssumed),
        "signal-frame" => (Trust::SignalFrame),
        "known-code" => (Trust::KnownCode),
        "leaf" => (Trust::Leaf),
        "stub" => (Trust::Stub),
        "stack-top" => (Trust::StackTop),
        "return-instruction" => (Trust::ReturnInstruction),
        "frame-pointer" => (Trust::FramePointer),
    }
    WalkEnd {
        "base" => (WalkEnd::Base),
        "any" => (WalkEnd::Any),
        "unknown-code" => (WalkEnd::Error(UnwindErrorKind::UnknownCode)),
        "caller-without-entry" => (WalkEnd::Error(UnwindErrorKind::CallerWithoutEntry)),
        "end-of-stack" => (WalkEnd::Error(UnwindErrorKind::EndOfStack)),
        "no-frame-information" => (WalkEnd::Error(UnwindErrorKind::NoFrameInformation)),
        "cfi" => (WalkEnd::Error(UnwindErrorKind::Cfi)),
        "compact-unwind" => (WalkEnd::Error(UnwindErrorKind::Compact)),
        "code-contradicts-table" => (WalkEnd::Error(UnwindErrorKind::CodeContradictsTable)),
        "stack" => (WalkEnd::Error(UnwindErrorKind::Stack)),
        "code-unmapped" => (WalkEnd::Error(UnwindErrorKind::CodeUnmapped)),
        "unwind-data-unmapped" => (WalkEnd::Error(UnwindErrorKind::UnwindDataUnmapped)),
        "unsupported-version" => (WalkEnd::Error(UnwindErrorKind::UnsupportedVersion)),
        "invalid-operation" => (WalkEnd::Error(UnwindErrorKind::InvalidOperation)),
        "payload-cut-off" => (WalkEnd::Error(UnwindErrorKind::PayloadCutOff)),
        "invalid-epilogue" => (WalkEnd::Error(UnwindErrorKind::InvalidEpilogue)),
        "unknown-frame-type" => (WalkEnd::Error(UnwindErrorKind::UnknownFrameType)),
        "no-frame-register" => (WalkEnd::Error(UnwindErrorKind::NoFrameRegister)),
        "chain-too-long" => (WalkEnd::Error(UnwindErrorKind::ChainTooLong)),
        "lost-register" => (WalkEnd::Error(UnwindErrorKind::LostRegister)),
        "no-progress" => (WalkEnd::Error(UnwindErrorKind::NoProgress)),
        "too-many-frames" => (WalkEnd::Error(UnwindErrorKind::TooManyFrames)),
    }
    ThreadMode {
        "preemptive" => (ThreadMode::Preemptive),
        "cooperative" => (ThreadMode::Cooperative),
    }
    ContextSafety {
        "safe" => (ContextSafety::Safe),
        "in-system-call" => (ContextSafety::InSystemCall),
        "in-exception-dispatch" => (ContextSafety::InExceptionDispatch),
        "not-reported" => (ContextSafety::NotReported),
        "unreadable" => (ContextSafety::Unreadable),
    }
    ThreadLife {
        "created" => (ThreadLife::Created),
        "running" => (ThreadLife::Running),
        "dead" => (ThreadLife::Dead),
    }
    ProfilerStatus {
        "none" => (ProfilerStatus::None),
        "detaching" => (ProfilerStatus::Detaching),
        "initializing-for-startup" => (ProfilerStatus::InitializingForStartup),
        "initializing-for-attach" => (ProfilerStatus::InitializingForAttach),
        "active" => (ProfilerStatus::Active),
        "pre-initializing" => (ProfilerStatus::PreInitializing),
    }
    SuspensionState {
        "suspending" => (SuspensionState::Suspending),
        "suspended" => (SuspensionState::Suspended),
    }
    PlacedThread {
        "self" => (PlacedThread::Own),
        "native-walker" => (PlacedThread::NativeWalker),
        "managed-walker" => (PlacedThread::ManagedWalker),
        "other" => (PlacedThread::Other),
    }
    StubKind {
        "jump-stub" => (StubKind::JumpStub),
        "precode" => (StubKind::Precode),
        "dynamic-helper" => (StubKind::DynamicHelper),
        "virtual-stub-dispatch" => (StubKind::VirtualStubDispatch),
        "stub-link" => (StubKind::StubLink),
        "call-counting" => (StubKind::CallCounting),
        "write-barrier" => (StubKind::WriteBarrier),
    }
    Funclet {
        "handler" => (Funclet::Handler),
        "filter" => (Funclet::Filter),
    }
    Pass {
        "first" => (Pass::First),
        "second" => (Pass::Second),
    }
    Gpr {
        "rax" => (Gpr::Rax),
        "rcx" => (Gpr::Rcx),
        "rdx" => (Gpr::Rdx),
        "rbx" => (Gpr::Rbx),
        "rsp" => (Gpr::Rsp),
        "rbp" => (Gpr::Rbp),
        "rsi" => (Gpr::Rsi),
        "rdi" => (Gpr::Rdi),
        "r8" => (Gpr::R8),
        "r9" => (Gpr::R9),
        "r10" => (Gpr::R10),
        "r11" => (Gpr::R11),
        "r12" => (Gpr::R12),
        "r13" => (Gpr::R13),
        "r14" => (Gpr::R14),
        "r15" => (Gpr::R15),
    }
    ScriptSeed {
        "none" => (ScriptSeed::None),
        "leaf" => (ScriptSeed::Leaf),
        "top-managed" => (ScriptSeed::TopManaged),
    }
    WaitKind {
        "lock" => (WaitKind::Lock),
        "suspended" => (WaitKind::Suspended),
        "to-stop" => (WaitKind::ToStop),
        "runtime-suspended" => (WaitKind::RuntimeSuspended),
        "collection" => (WaitKind::Collection),
        "join" => (WaitKind::Join),
        "code-manager-reader" => (WaitKind::CodeManagerReader),
        "interrupted-wait" => (WaitKind::InterruptedWait),
    }
    ProfilerRule {
        "suspender-ran-managed-code" => (ProfilerRule::SuspenderRanManagedCode),
        "allocation-while-suspended" => (ProfilerRule::AllocationWhileSuspended),
        "lock-while-suspended" => (ProfilerRule::LockWhileSuspended),
        "log-while-suspended" => (ProfilerRule::LogWhileSuspended),
        "loading-while-suspended" => (ProfilerRule::LoadingWhileSuspended),
        "lock-over-gc-trigger" => (ProfilerRule::LockOverGcTrigger),
        "callback-takes-targets-lock" => (ProfilerRule::CallbackTakesTargetsLock),
        "walk-outlives-thread" => (ProfilerRule::WalkOutlivesThread),
        "first-call-while-suspended" => (ProfilerRule::FirstCallWhileSuspended),
        "resume-forgotten" => (ProfilerRule::ResumeForgotten),
        "resume-doubled" => (ProfilerRule::ResumeDoubled),
    }
    Policy {
        "unseeded" => (Policy::Unseeded),
        "seeded" => (Policy::Seeded),
        "runtime-suspended" => (Policy::RuntimeSuspended),
        "signal" => (Policy::Signal),
        "signal-snapshot" => (Policy::SignalSnapshot),
        "synchronous" => (Policy::Synchronous),
        "frame-pointers" => (Policy::FramePointers),
    }
    SeenBy {
        "runtime" => (SeenBy::Snapshot),
        "unwinder" => (SeenBy::Unwinder),
        "both" => (SeenBy::Both),
    }
    MixedFrameKind {
        "managed" => (MixedFrameKind::Managed),
        "hidden" => (MixedFrameKind::Hidden),
        "native" => (MixedFrameKind::Native),
        "unknown" => (MixedFrameKind::Unknown),
    }
    ReasonKind {
        "not-stopped" => (ReasonKind::NotStopped),
        "stale-context" => (ReasonKind::StaleContext),
        "not-unwound" => (ReasonKind::NotUnwound),
        "frame-pointers" => (ReasonKind::FramePointers),
        "unknown-code" => (ReasonKind::Unwind(UnwindErrorKind::UnknownCode)),
        "caller-without-entry" => (ReasonKind::Unwind(UnwindErrorKind::CallerWithoutEntry)),
        "end-of-stack" => (ReasonKind::Unwind(UnwindErrorKind::EndOfStack)),
        "no-frame-information" => (ReasonKind::Unwind(UnwindErrorKind::NoFrameInformation)),
        "cfi" => (ReasonKind::Unwind(UnwindErrorKind::Cfi)),
        "compact-unwind" => (ReasonKind::Unwind(UnwindErrorKind::Compact)),
        "code-contradicts-table" => (ReasonKind::Unwind(UnwindErrorKind::CodeContradictsTable)),
        "stack" => (ReasonKind::Unwind(UnwindErrorKind::Stack)),
        "code-unmapped" => (ReasonKind::Unwind(UnwindErrorKind::CodeUnmapped)),
        "unwind-data-unmapped" => (ReasonKind::Unwind(UnwindErrorKind::UnwindDataUnmapped)),
        "unsupported-version" => (ReasonKind::Unwind(UnwindErrorKind::UnsupportedVersion)),
        "invalid-operation" => (ReasonKind::Unwind(UnwindErrorKind::InvalidOperation)),
        "payload-cut-off" => (ReasonKind::Unwind(UnwindErrorKind::PayloadCutOff)),
        "invalid-epilogue" => (ReasonKind::Unwind(UnwindErrorKind::InvalidEpilogue)),
        "unknown-frame-type" => (ReasonKind::Unwind(UnwindErrorKind::UnknownFrameType)),
        "no-frame-register" => (ReasonKind::Unwind(UnwindErrorKind::NoFrameRegister)),
        "chain-too-long" => (ReasonKind::Unwind(UnwindErrorKind::ChainTooLong)),
        "lost-register" => (ReasonKind::Unwind(UnwindErrorKind::LostRegister)),
        "no-progress" => (ReasonKind::Unwind(UnwindErrorKind::NoProgress)),
        "too-many-frames" => (ReasonKind::Unwind(UnwindErrorKind::TooManyFrames)),
        "not-a-call" => (ReasonKind::NotACall),
        "outside-stack" => (ReasonKind::OutsideStack),
        "disagreement" => (ReasonKind::Disagreement),
        "lookup" => (ReasonKind::Lookup),
        "seed-no-context" => (ReasonKind::SeedNoContext),
        "seed-outside-stack" => (ReasonKind::SeedOutsideStack),
        "seed-unaligned" => (ReasonKind::SeedUnaligned),
        "seed-lost-register" => (ReasonKind::SeedLostRegister),
        "seed-no-caller" => (ReasonKind::SeedNoCaller),
        "snapshot" => (ReasonKind::Snapshot),
        "suspend" => (ReasonKind::Suspend),
        "unreported" => (ReasonKind::Unreported),
        "buffer-full" => (ReasonKind::BufferFull),
    }
}

/// The words of [`MixedClaim`]: first those that are not reasons, then those of the reasons.
const CLAIMS: [&str; 3 + ReasonKind::WORDS.len()] = {
    let mut words = ["whole"; 3 + ReasonKind::WORDS.len()];
    words[1] = "reportable";
    words[2] = "without-leaf";
    let mut index = 3;
    while index < words.len() {
        words[index] = ReasonKind::WORDS[index - 3];
        index += 1;
    }
    words
};

impl Keyword for MixedClaim {
    const WORDS: &'static [&'static str] = &CLAIMS;

    fn word(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Reportable => "reportable",
            Self::WithoutLeaf => "without-leaf",
            Self::Partial(reason) => reason.word(),
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        match word {
            "whole" => Some(Self::Whole),
            "reportable" => Some(Self::Reportable),
            "without-leaf" => Some(Self::WithoutLeaf),
            reason => ReasonKind::from_word(reason).map(Self::Partial),
        }
    }
}

/// Names of the vector registers, by number.
pub(super) const XMM: [&str; 16] = [
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
    "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
];

/// Returns the number of a vector register.
pub(super) fn xmm_number(word: &str) -> Option<u8> {
    XMM.iter().position(|name| *name == word).map(|number| number as u8)
}

const FRAME_KINDS: [&str; FrameKind::ALL.len()] = {
    let mut names = [""; FrameKind::ALL.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = FrameKind::ALL[index].name();
        index += 1;
    }
    names
};

impl Keyword for FrameKind {
    const WORDS: &'static [&'static str] = &FRAME_KINDS;

    fn word(self) -> &'static str {
        self.name()
    }

    fn from_word(word: &str) -> Option<Self> {
        Self::from_name(word)
    }
}

const CALLBACK_KINDS: [&str; CallbackKind::ALL.len()] = {
    let mut names = [""; CallbackKind::ALL.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = CallbackKind::ALL[index].name();
        index += 1;
    }
    names
};

impl Keyword for CallbackKind {
    const WORDS: &'static [&'static str] = &CALLBACK_KINDS;

    fn word(self) -> &'static str {
        self.name()
    }

    fn from_word(word: &str) -> Option<Self> {
        Self::from_name(word)
    }
}
