//! Explicit Frames: where each kind leads, and what leads nowhere (contract §3.5).

use super::{CALL_DESCR_WORKER, Example, ExampleCall, fault, is_framework_2, is_new, is_unix};
use crate::generation::Generation;
use crate::profiling::{HResult, Outcome};
use crate::runtime::FrameKind;
use crate::runtime::frame::LazyFields;
use crate::runtime::frame::layout::{CAPTURE_DEPTH_2, EXACT_DEPTH};
use crate::stage::Stage;
use clr_walker::registers::Gpr;

pub(super) fn examples(generation: Generation) -> Vec<Example> {
    let mut examples = leading(generation);
    examples.extend(marks(generation));
    examples.extend([
        to_native_code(generation),
        reverse_call(generation),
        inactive_call(generation),
        method_of_call(generation, false),
        method_of_call(generation, true),
        marked_method(generation),
        unlinked(generation),
        no_frame(generation),
        circle(generation),
    ]);
    if generation != Generation::Net10Windows && generation != Generation::Net10Unix {
        examples.extend(lazy(generation));
        if is_unix(generation) {
            examples.push(unwound_value(generation));
        }
    }
    examples
}

const WHOLE: &str = "\
    App.Foo+0x40, rsp 0x1fe300\n\
    App.Main+0x20, rsp 0x1fe380\n\
    marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe3c0\n";

/// Foo saves what its caller had; the helper saves what Foo has.
fn stage(generation: Generation) -> Stage {
    Stage::new(generation)
        .native("Helper+0x80", 0x1F_D000)
        .saves(&[Gpr::Rbx, Gpr::R12])
        .jit("App.Foo+0x40", 0x1F_E300)
        .saves_all()
        .jit("App.Main+0x20", 0x1F_E380)
        .native(CALL_DESCR_WORKER, 0x1F_E3C0)
}

/// The kinds that lead on, and whether Framework 2 to .NET 9, .NET 9 and .NET 10 have them. Those
/// of COM are on Windows only.
const LEADING: [(FrameKind, bool, bool, bool); 23] = [
    (FrameKind::InlinedCall, true, true, true),
    (FrameKind::HelperMethod, true, true, false),
    (FrameKind::HelperMethod1Obj, true, true, false),
    (FrameKind::HelperMethod2Obj, true, true, false),
    (FrameKind::HelperMethod3Obj, true, true, false),
    (FrameKind::HelperMethodProtectObj, true, true, false),
    (FrameKind::PrestubMethod, true, true, true),
    (FrameKind::StubDispatch, true, true, true),
    (FrameKind::ExternalMethod, true, true, true),
    (FrameKind::DynamicHelper, true, true, true),
    (FrameKind::PInvokeCalli, true, true, true),
    (FrameKind::CallCountingHelper, false, true, true),
    (FrameKind::StubHelper, true, true, false),
    (FrameKind::SecureDelegate, true, true, false),
    (FrameKind::Multicast, true, true, false),
    (FrameKind::ComPlusMethod, true, true, true),
    (FrameKind::Hijack, true, true, true),
    (FrameKind::TailCall, true, true, false),
    (FrameKind::Resumable, true, true, true),
    (FrameKind::RedirectedThread, true, true, true),
    (FrameKind::FuncEval, true, true, true),
    (FrameKind::FaultingException, true, true, true),
    (FrameKind::SoftwareException, false, false, true),
];

/// ContextFlags of a Frame's CONTEXT, and of the contexts that callbacks get then (§3.7).
const fn flags(kind: FrameKind, generation: Generation) -> (u32, u32) {
    match (kind, generation) {
        (FrameKind::FaultingException, Generation::Net9Unix) => (0x810_0003, 0x810_0003),
        (FrameKind::FaultingException, Generation::Net9UnixLegacyExceptions) => {
            (0x810_004B, 0x810_000B)
        }
        (FrameKind::FaultingException, Generation::CoreClr31Unix) => (0x810_004B, 0x810_004B),
        (FrameKind::FaultingException, _) => (0x10_005F, 0x10_005F),
        (FrameKind::Resumable | FrameKind::RedirectedThread | FrameKind::FuncEval, _) => {
            (0x10_000B, 0x10_000B)
        }
        // Only registers are taken of its CONTEXT.
        (FrameKind::SoftwareException, _) => (0x10_000B, 0),
        _ => (0, 0),
    }
}

fn leading(generation: Generation) -> Vec<Example> {
    let kinds = LEADING.into_iter().filter(|(kind, old, net9, net10)| {
        let exists = match generation {
            Generation::Net9Unix | Generation::Net9UnixLegacyExceptions => *net9,
            Generation::Net10Windows | Generation::Net10Unix => *net10,
            _ => *old,
        };
        exists && (*kind != FrameKind::ComPlusMethod || !is_unix(generation))
    });
    kinds
        .map(|(kind, ..)| {
            let (in_frame, delivered) = flags(kind, generation);
            let mut own =
                ExampleCall::own("unseeded").context_flags(delivered).gives(WHOLE, HResult::OK);
            let other = ExampleCall::other("unseeded").context_flags(delivered);
            let resumable = matches!(kind, FrameKind::Resumable | FrameKind::RedirectedThread);
            // C-075: the call has suspended the thread.
            let mut other = if resumable && !is_framework_2(generation) {
                other.gives_on_windows(generation, "", HResult::FAIL)
            } else {
                other.gives_on_windows(generation, WHOLE, HResult::OK)
            };
            if kind == FrameKind::InlinedCall {
                own = own.stale(0);
                other = other.stale(0);
            }
            // A TailCallFrame ends where its caller's frame begins.
            let at = match (kind, is_unix(generation)) {
                (FrameKind::TailCall, false) => 0x1F_E2A0,
                (FrameKind::TailCall, true) => 0x1F_E2B0,
                _ => 0x1F_D800,
            };
            Example {
                id: "C-073",
                title: kind.name(),
                stage: stage(generation).frame(kind, at, "App.Foo").with_context_flags(in_frame),
                calls: vec![own, other],
            }
        })
        .collect()
}

/// Frames that lead nowhere change nothing (C-078).
fn marks(generation: Generation) -> Vec<Example> {
    let kinds = [
        FrameKind::ProtectValueClass,
        FrameKind::DebuggerClassInitMark,
        FrameKind::DebuggerExit,
        FrameKind::DebuggerU2MCatchHandler,
        FrameKind::ExceptionFilter,
    ];
    let old = [
        FrameKind::Gc,
        FrameKind::ContextTransition,
        FrameKind::ProtectByRefs,
        FrameKind::DebuggerSecurityCodeMark,
        FrameKind::AssumeByrefFromJitStack,
    ];
    let old = old.into_iter().filter(|_| !is_new(generation));
    kinds
        .into_iter()
        .chain(old)
        .map(|kind| Example {
            id: "C-078",
            title: kind.name(),
            stage: stage(generation)
                .mark(kind, 0x1F_D400)
                .frame(FrameKind::PrestubMethod, 0x1F_D800, "App.Foo")
                .mark(kind, 0x1F_E400),
            calls: vec![ExampleCall::own("unseeded").gives(WHOLE, HResult::OK)],
        })
        .collect()
}

fn to_native_code(generation: Generation) -> Example {
    Example {
        id: "C-079",
        title: "A Frame the return address of which is native code",
        stage: Stage::new(generation)
            .native("Inner+0x80", 0x1F_C000)
            .native("Helper+0x80", 0x1F_D000)
            .jit("App.Foo+0x40", 0x1F_E300)
            .jit("App.Main+0x20", 0x1F_E380)
            .native(CALL_DESCR_WORKER, 0x1F_E3C0)
            .frame(FrameKind::InlinedCall, 0x1F_C200, "Helper")
            .frame(FrameKind::ExternalMethod, 0x1F_C800, "Helper")
            .frame(FrameKind::PrestubMethod, 0x1F_D800, "App.Foo"),
        calls: vec![ExampleCall::own("unseeded: no marker").gives(WHOLE, HResult::OK)],
    }
}

/// A P/Invoke calls back without any native code of its own in between: the return address is the
/// P/Invoke's own, and it is for its Frame to tell of it (C-080).
fn reverse_call(generation: Generation) -> Example {
    // The kinds that there are elsewhere are those of COM.
    let kind = match generation {
        Generation::Net10Windows => FrameKind::ComMethod,
        Generation::Net10Unix => FrameKind::DebuggerU2MCatchHandler,
        _ => FrameKind::UMThkCall,
    };
    Example {
        id: "C-080",
        title: "An UnmanagedToManagedFrame right below a P/Invoke",
        stage: stage(generation).frame(kind, 0x1F_D400, "App.Foo").frame(
            FrameKind::InlinedCall,
            0x1F_D800,
            "App.Foo",
        ),
        calls: vec![ExampleCall::own("unseeded").stale(0).gives(WHOLE, HResult::OK)],
    }
}

fn inactive_call(generation: Generation) -> Example {
    Example {
        id: "C-071",
        title: "An InlinedCallFrame without a call",
        stage: stage(generation)
            .mark(FrameKind::InlinedCall, 0x1F_D400)
            .of_method("App.Target")
            .frame(FrameKind::PrestubMethod, 0x1F_D800, "App.Foo"),
        calls: vec![ExampleCall::own("unseeded").gives(WHOLE, HResult::OK)],
    }
}

/// An InlinedCallFrame has its method only while its call is active (§3.5): without one the walk
/// makes no internal stop (C-106), with one it makes one, of which nobody is told (C-108).
fn method_of_call(generation: Generation, active: bool) -> Example {
    let stage =
        Stage::new(generation).native("Inner+0x80", 0x1F_C000).native(CALL_DESCR_WORKER, 0x1F_E3C0);
    let stage = if active {
        stage.frame(FrameKind::InlinedCall, 0x1F_D000, "CallDescrWorkerInternal")
    } else {
        stage.mark(FrameKind::InlinedCall, 0x1F_D000)
    };
    let found = active || is_framework_2(generation);
    Example {
        id: if active { "C-108" } else { "C-106" },
        title: "An InlinedCallFrame with a method, and nothing else",
        stage: stage.of_method("App.Target"),
        calls: vec![
            ExampleCall::own("unseeded").gives("", if found { HResult::OK } else { HResult::FAIL }),
        ],
    }
}

/// A word with bit 0 set is no method (§3.5).
fn marked_method(generation: Generation) -> Example {
    let mut example = method_of_call(generation, true);
    example.title = "An InlinedCallFrame with a marked word, and nothing else";
    example.stage.overwritten.push((0x1F_D010, 0x7FF8_3000_0001));
    let outcome = if is_framework_2(generation) { HResult::OK } else { HResult::FAIL };
    example.calls = vec![ExampleCall::own("unseeded").gives("", outcome)];
    example
}

/// On Unix a HelperMethodFrame has a register's value, or a pointer to it (§3.5).
fn unwound_value(generation: Generation) -> Example {
    let mut stage = stage(generation).frame(FrameKind::HelperMethod, 0x1F_D800, "App.Foo");
    // r12, the first one: no pointer, and what App.Foo has in it.
    stage.overwritten.push((0x1F_D870, 0));
    stage.overwritten.push((0x1F_D8A8, 0xC0DE_020C));
    Example {
        id: "C-072",
        title: "A HelperMethodFrame with a register that lies in no memory",
        stage,
        calls: vec![ExampleCall::own("unseeded").gives(WHOLE, HResult::OK)],
    }
}

/// The chain leads to memory that is not there.
fn unlinked(generation: Generation) -> Example {
    let mut stage = stage(generation).frame(FrameKind::PrestubMethod, 0x1F_D800, "App.Foo");
    stage.overwritten.push((0x1F_D808, 0x7000_0000_0000));
    // After the managed frames it is compared with rsp, but not read; behind the marker it is.
    Example {
        id: "C-113",
        title: "A Frame chain that leads out of memory",
        stage,
        calls: vec![
            ExampleCall::own("unseeded: what was reported stays")
                .gives(WHOLE, fault(generation, 0x7000_0000_0000)),
        ],
    }
}

/// The chain leads to something that is no Frame: it is called through all the same.
fn no_frame(generation: Generation) -> Example {
    let mut stage = stage(generation).frame(FrameKind::PrestubMethod, 0x1F_D800, "App.Foo");
    stage.overwritten.push((0x1F_D808, 0x1F_E500));
    stage.overwritten.push((0x1F_E500, 0x6000_0000));
    Example {
        id: "C-111",
        title: "A Frame chain that leads to what is no Frame",
        stage,
        calls: vec![ExampleCall::own("unseeded").gives(WHOLE, fault(generation, 0x6000_0000))],
    }
}

/// No real call would come back.
fn circle(generation: Generation) -> Example {
    let mut stage = stage(generation)
        .mark(FrameKind::DebuggerU2MCatchHandler, 0x1F_D400)
        .mark(FrameKind::DebuggerExit, 0x1F_D800);
    stage.overwritten.push((0x1F_D808, 0x1F_D400));
    Example {
        id: "§3.3",
        title: "A Frame chain that goes round in a circle",
        stage,
        calls: vec![ExampleCall::own("unseeded").gives("", Outcome::Endless)],
    }
}

/// HelperMethodFrames that nobody has asked before: native frames are unwound until, or for as many
/// times as, their kind says (§8.6).
fn lazy(generation: Generation) -> Vec<Example> {
    let stage = || {
        Stage::new(generation)
            .native("AllocateObject+0x80", 0x1F_C000)
            .saves_all()
            .native("JIT_New+0x80", 0x1F_D000)
            .saves_all()
            .native("JIT_NewHelper+0x20", 0x1F_E200)
            .saves(&[Gpr::Rbx, Gpr::Rbp])
            .jit("App.Foo+0x40", 0x1F_E300)
            .saves_all()
            .jit("App.Main+0x20", 0x1F_E380)
            .native(CALL_DESCR_WORKER, 0x1F_E3C0)
    };
    let fcall = 0x7FF8_2000_0000;
    [
        ("A JIT helper: until managed code comes", "JIT_New", 0, 0, true),
        ("A JIT helper called by another", "AllocateObject", 0, 0, true),
        ("CAPTURE_DEPTH_2: exactly two", "JIT_New", 0, CAPTURE_DEPTH_2, true),
        ("An FCall with CAPTURE_DEPTH_2: exactly two", "JIT_New", fcall, CAPTURE_DEPTH_2, true),
        ("CAPTURE_DEPTH_2: two, which is not enough", "AllocateObject", 0, CAPTURE_DEPTH_2, false),
        ("An FCall: exactly one", "JIT_NewHelper", fcall, 0, true),
        ("An FCall: one, which is not enough", "JIT_New", fcall, 0, false),
        ("EXACT_DEPTH: exactly one", "JIT_NewHelper", 0, EXACT_DEPTH, true),
        ("EXACT_DEPTH: one, which is not enough", "JIT_New", 0, EXACT_DEPTH, false),
    ]
    .into_iter()
    .map(|(title, captured, fcall_entry, attributes, arrives)| {
        // Where it leads to native code nothing is found, which Framework 2 does not mind.
        let (callbacks, outcome) = match (arrives, is_framework_2(generation)) {
            (true, _) => (WHOLE, HResult::OK),
            (false, true) => ("", HResult::OK),
            (false, false) => ("", HResult::FAIL),
        };
        Example {
            id: "§8.6",
            title,
            stage: stage()
                .mark(FrameKind::HelperMethod, 0x1F_C800)
                .captured_in(captured, LazyFields { fcall_entry, attributes }),
            calls: vec![ExampleCall::own("unseeded").gives(callbacks, outcome)],
        }
    })
    .collect()
}
