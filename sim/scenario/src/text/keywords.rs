//! The words of the text format for the values of enums.

use crate::model::profiler_methods;
use crate::model::{MixedClaim, MixedFrameKind, ReasonKind};
use crate::model::{PlacedThread, SuspensionState, ThreadMode};
use crate::model::{ProfilerMethod, ScriptSeed, WaitKind};
use crate::model::{UnwindErrorKind, WalkEnd};
use crate::text::codec::{Data, Value};
use crate::text::grammar::Kind;
use clr_codegen::{
    Allocation, CallForm, CallingConvention, CodeKind, ColdForm, EntryForm, EpilogueCfi, FrameSet,
    Realign, Release, ReturnForm, SaveArea, TailCallForm, UnwindData, Wrap,
};
use clr_explore::ProfilerRule;
use clr_runtime::MethodKind;
use clr_runtime::code_manager::StubKind;
use clr_runtime::metadata::FieldKind;
use clr_runtime::profiling::{CallbackKind, Policy};
use clr_runtime::{ContextSafety, FrameKind, Funclet, Pass, ProfilerStatus, ThreadLife};
use clr_unwind::compat::Rules;
use clr_unwind::{Gpr, Trust};
use clr_walker::mixed::SeenBy;
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

/// Implements [`Data`] for types that have a word.
macro_rules! data_of {
    ($($type:ty)+) => {
        $(impl Data for $type {
            const KIND: Kind = Kind::Word(<$type>::WORDS);

            fn of(value: Value) -> Option<Self> {
                match value {
                    Value::Word(word) => Self::from_word(word),
                    _ => None,
                }
            }

            fn value(&self) -> Option<Value> {
                Some(Value::Word(self.word()))
            }
        })+
    };
}

/// Gives each value of an enum its word. The words of another enum can follow, for the values of a
/// variant that has one.
macro_rules! keywords {
    ($($type:ident { $($value:ident $word:literal),+ $(,)? $(; $outer:ident($inner:ident))? })+) => {
        data_of! { $($type)+ }

        $(impl Keyword for $type {
            const WORDS: &'static [&'static str] =
                &joined::<{ [$($word),+].len() $(+ $inner::WORDS.len())? }>(
                    &[&[$($word),+] $(, $inner::WORDS)?],
                );

            fn word(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                    $(Self::$outer(inner) => inner.word(),)?
                }
            }

            fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$value),)+
                    _ => None $(.or_else(|| $inner::from_word(word).map(Self::$outer)))?,
                }
            }
        })+
    };
}

/// The same for enums whose values have names already.
macro_rules! named_keywords {
    ($($type:ident)+) => {
        data_of! { $($type)+ }

        $(impl Keyword for $type {
            const WORDS: &'static [&'static str] = {
                const NAMES: [&str; $type::ALL.len()] = {
                    let mut names = [""; $type::ALL.len()];
                    let mut index = 0;
                    while index < names.len() {
                        names[index] = $type::ALL[index].name();
                        index += 1;
                    }
                    names
                };
                &NAMES
            };

            fn word(self) -> &'static str {
                self.name()
            }

            fn from_word(word: &str) -> Option<Self> {
                Self::from_name(word)
            }
        })+
    };
}

named_keywords! { FrameKind CallbackKind }

data_of! { ProfilerMethod }

keywords! {
    CallingConvention { WindowsX64 "windows-x64", SystemV "system-v" }
    Hooks { None "none", Slow "slow", Fast "fast" }
    StopBy { Redirection "redirection", Hijack "hijack" }
    MethodKind {
        Ordinary "ordinary", IlStub "il-stub", Dynamic "dynamic",
        ExceptionHandling "exception-handling", UnmanagedCallersOnly "unmanaged-callers-only",
        EntryPoint "entry-point", ClassLibrary "class-library",
    }
    FieldKind { Int "int", Long "long", String "string", Object "object" }
    CodeKind { Jit "jit", ReadyToRun "ready-to-run", Native "native" }
    EntryForm {
        Call "call", Interrupt "interrupt", InterruptWithErrorCode "interrupt-with-error-code",
        Signal "signal",
    }
    SaveArea { AboveLocals "above-locals", BelowLocals "below-locals" }
    Allocation {
        Sub "sub", SubImm32 "sub-imm32", Push "push", Probes "probes", ProbeLoop "probe-loop",
        Chkstk "chkstk",
    }
    Wrap { Whole "whole", Inside "inside", Apart "apart" }
    EpilogueCfi { Restored "restored", Continued "continued" }
    Realign { No "no", To32 "to-32", To64 "to-64" }
    FrameSet {
        BehindPush "behind-push", BeforeAllocation "before-allocation",
        AfterAllocation "after-allocation", AfterSaves "after-saves",
    }
    Release {
        Add "add", AddImm32 "add-imm32", Pop "pop", Lea "lea", LeaDisp32 "lea-disp32", R11 "r11",
        Mov "mov", Leave "leave",
    }
    UnwindData {
        None "none", Version1 "version-1", Version2 "version-2",
        Version2WithoutEpilogs "version-2-without-epilogs", Version3 "version-3",
    }
    ColdForm { Chained "chained", Separate "separate" }
    CallForm { Near "near", Register "register", Memory "memory", Plt "plt" }
    TailCallForm {
        Near "near", Register "register", RegisterWithoutRex "register-without-rex",
        RegisterMemory "register-memory", Memory "memory",
    }
    ReturnForm {
        Ret "ret", RetImm "ret-imm", RepRet "rep-ret", BndRet "bnd-ret", RexRet "rex-ret",
        VzeroupperRet "vzeroupper-ret",
    }
    Rules { Precise "precise", CoreClr "coreclr", CoreClrUnix "coreclr-unix", Ntdll "ntdll" }
    Trust {
        Body "body", Prologue "prologue", EpilogueCodes "epilogue-codes",
        EpilogueInstructions "epilogue-instructions", Cfi "cfi", Compact "compact",
        FollowedCode "followed-code", CompactAssumed "compact-assumed",
        SignalFrame "signal-frame", KnownCode "known-code", Leaf "leaf", Stub "stub",
        StackTop "stack-top", ReturnInstruction "return-instruction",
        FramePointer "frame-pointer",
    }
    WalkEnd { Base "base", Any "any"; Error(UnwindErrorKind) }
    UnwindErrorKind {
        UnknownCode "unknown-code", CallerWithoutEntry "caller-without-entry",
        EndOfStack "end-of-stack", NoFrameInformation "no-frame-information", Cfi "cfi",
        Compact "compact-unwind", CodeContradictsTable "code-contradicts-table", Stack "stack",
        CodeUnmapped "code-unmapped", UnwindDataUnmapped "unwind-data-unmapped",
        UnsupportedVersion "unsupported-version", InvalidOperation "invalid-operation",
        PayloadCutOff "payload-cut-off", InvalidEpilogue "invalid-epilogue",
        UnknownFrameType "unknown-frame-type", NoFrameRegister "no-frame-register",
        ChainTooLong "chain-too-long", LostRegister "lost-register", NoProgress "no-progress",
        TooManyFrames "too-many-frames",
    }
    ThreadMode { Preemptive "preemptive", Cooperative "cooperative" }
    ContextSafety {
        Safe "safe", InSystemCall "in-system-call", InExceptionDispatch "in-exception-dispatch",
        NotReported "not-reported", Unreadable "unreadable",
    }
    ThreadLife { Created "created", Running "running", Dead "dead" }
    ProfilerStatus {
        None "none", Detaching "detaching", InitializingForStartup "initializing-for-startup",
        InitializingForAttach "initializing-for-attach", Active "active",
        PreInitializing "pre-initializing",
    }
    SuspensionState { Suspending "suspending", Suspended "suspended" }
    PlacedThread {
        Own "self", NativeWalker "native-walker", ManagedWalker "managed-walker", Other "other",
    }
    StubKind {
        JumpStub "jump-stub", Precode "precode", DynamicHelper "dynamic-helper",
        VirtualStubDispatch "virtual-stub-dispatch", StubLink "stub-link",
        CallCounting "call-counting", WriteBarrier "write-barrier",
    }
    Funclet { Handler "handler", Filter "filter" }
    Pass { First "first", Second "second" }
    Gpr {
        Rax "rax", Rcx "rcx", Rdx "rdx", Rbx "rbx", Rsp "rsp", Rbp "rbp", Rsi "rsi", Rdi "rdi",
        R8 "r8", R9 "r9", R10 "r10", R11 "r11", R12 "r12", R13 "r13", R14 "r14", R15 "r15",
    }
    ScriptSeed { None "none", Leaf "leaf", TopManaged "top-managed" }
    WaitKind {
        Lock "lock", Suspended "suspended", ToStop "to-stop",
        RuntimeSuspended "runtime-suspended", Collection "collection", Join "join", WakeUp "wake-up",
        CodeManagerReader "code-manager-reader", InterruptedWait "interrupted-wait",
    }
    ProfilerRule {
        SuspenderRanManagedCode "suspender-ran-managed-code",
        AllocationWhileSuspended "allocation-while-suspended",
        LockWhileSuspended "lock-while-suspended", LogWhileSuspended "log-while-suspended",
        LoadingWhileSuspended "loading-while-suspended",
        AllocationInHandler "allocation-in-handler", LockInHandler "lock-in-handler",
        LogInHandler "log-in-handler", LoadingInHandler "loading-in-handler",
        LockOverGcTrigger "lock-over-gc-trigger",
        CallbackTakesTargetsLock "callback-takes-targets-lock",
        WalkOutlivesThread "walk-outlives-thread",
        FirstCallWhileSuspended "first-call-while-suspended", ResumeForgotten "resume-forgotten",
        ResumeDoubled "resume-doubled",
    }
    Policy {
        Unseeded "unseeded", Seeded "seeded", RuntimeSuspended "runtime-suspended",
        Signal "signal", SignalSnapshot "signal-snapshot", Synchronous "synchronous",
        FramePointers "frame-pointers",
    }
    SeenBy { Snapshot "runtime", Unwinder "unwinder", Both "both" }
    MixedFrameKind { Managed "managed", Hidden "hidden", Native "native", Unknown "unknown" }
    ReasonKind {
        NotStopped "not-stopped", StaleContext "stale-context", NotUnwound "not-unwound",
        FramePointers "frame-pointers", NotACall "not-a-call", OutsideStack "outside-stack",
        Disagreement "disagreement", Lookup "lookup", SeedNoContext "seed-no-context",
        SeedOutsideStack "seed-outside-stack", SeedUnaligned "seed-unaligned",
        SeedLostRegister "seed-lost-register", SeedNoCaller "seed-no-caller", Snapshot "snapshot",
        Suspend "suspend", Unreported "unreported", BufferFull "buffer-full"
        ; Unwind(UnwindErrorKind)
    }
    MixedClaim {
        Whole "whole", Reportable "reportable", WithoutLeaf "without-leaf", Guessed "guessed"
        ; Partial(ReasonKind)
    }
}

/// Names of the vector registers, by number.
const XMM: [&str; 16] = [
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
    "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
];

/// The words of integer and vector registers.
pub(crate) const REGISTERS: &[&str] = &joined::<32>(&[Gpr::WORDS, &XMM]);

/// The words of what a home slot has: a register, or nothing.
pub(crate) const SLOTS: &[&str] = &joined::<17>(&[Gpr::WORDS, &[FREE_SLOT]]);

/// The words of registers that a prologue may save. RSP is not saved, as the position of the frame
/// gives it.
pub(crate) const SAVED: &[&str] = &{
    let mut words = joined::<17>(&[Gpr::WORDS, &[ALL_SAVED]]);
    let mut index = Gpr::Rsp as usize;
    while index + 1 < words.len() {
        words[index] = words[index + 1];
        index += 1;
    }
    words
};

/// The word for a home slot in which nothing is stored.
pub(crate) const FREE_SLOT: &str = "none";

/// The word for all nonvolatile registers.
pub(crate) const ALL_SAVED: &str = "all";

/// Joins lists of words.
const fn joined<const COUNT: usize>(lists: &[&[&'static str]]) -> [&'static str; COUNT] {
    let mut words = [""; COUNT];
    let (mut list, mut index, mut count) = (0, 0, 0);
    while list < lists.len() {
        if index < lists[list].len() {
            words[count] = lists[list][index];
            (index, count) = (index + 1, count + 1);
        } else {
            (list, index) = (list + 1, 0);
        }
    }
    words
}

/// Returns the name of a vector register.
pub(crate) fn xmm(number: u8) -> &'static str {
    XMM.get(usize::from(number)).copied().unwrap_or("xmm")
}

/// Returns the number of a vector register.
pub(crate) fn xmm_number(word: &str) -> Option<u8> {
    XMM.iter().position(|name| *name == word).map(|number| number as u8)
}

/// Gives the methods their words: their names.
macro_rules! method_words {
    (|$($value:ident),*| $($(#[$doc:meta])* $method:ident => $call:expr;)*) => {
        impl Keyword for ProfilerMethod {
            const WORDS: &'static [&'static str] = &[$(stringify!($method)),*];

            fn word(self) -> &'static str {
                match self { $(Self::$method => stringify!($method),)* }
            }

            fn from_word(word: &str) -> Option<Self> {
                $(if word == stringify!($method) { return Some(Self::$method); })*
                None
            }
        }
    };
}

profiler_methods!(method_words);
