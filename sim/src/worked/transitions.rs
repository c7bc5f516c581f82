//! Threads in preemptive mode, below a Frame: E-2, E-3, E-8, E-9, E-10, E-12.

use super::{
    CALL_DESCR_WORKER, Example, ExampleCall, Seed, has_suspend_runtime, is_framework_2, is_new,
};
use crate::generation::Generation;
use crate::profiling::{CallbackKind, HResult};
use crate::runtime::FrameKind;
use crate::stage::{MANAGED_WALKER, Stage};

pub(super) fn examples(generation: Generation) -> Vec<Example> {
    vec![
        inlined(generation),
        through_stub(generation),
        compiling(generation),
        compiling_the_first(generation),
        idle(generation),
        idle_with_marks(generation),
        redirected(generation),
    ]
}

/// Calls on a preemptive thread which all give the same, but where Unix refuses.
fn all_ways(
    generation: Generation,
    callback: CallbackKind,
    callbacks: &str,
    outcome: HResult,
) -> Vec<ExampleCall> {
    let mut calls = vec![
        ExampleCall::other("by a native walker").gives_on_windows(generation, callbacks, outcome),
        ExampleCall::by(MANAGED_WALKER, "by a managed walker")
            .gives_on_windows(generation, callbacks, outcome),
        ExampleCall::own("from a callback").within(callback).gives(callbacks, outcome),
    ];
    if has_suspend_runtime(generation) {
        let suspended = ExampleCall::other("under SuspendRuntime (C-128)").suspended();
        calls.push(suspended.gives(callbacks, outcome));
    }
    calls
}

const INLINED: &str = "\
    Lib.Work+0x90, rsp 0x1fe100\n\
    App.Main+0x30, rsp 0x1fe1a0\n\
    marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe1e0\n";

fn inlined(generation: Generation) -> Example {
    let transition = CallbackKind::ManagedToUnmanagedTransition;
    let mut calls = all_ways(generation, transition, INLINED, HResult::OK);
    // Not even read (C-037).
    for (title, seed) in [
        ("with a seed of no sense", Seed::Bytes(vec![0xFF; 0xC20])),
        ("with a seed that cannot be read", Seed::Bytes(Vec::new())),
        ("with a good seed", Seed::Row("App.Main")),
    ] {
        let other = ExampleCall::other(title).seed(seed.clone()).context_flags(0);
        calls.push(other.gives_on_windows(generation, INLINED, HResult::OK));
        let own = ExampleCall::own(title).seed(seed).context_flags(0);
        calls.push(own.gives(INLINED, HResult::OK));
    }
    Example {
        id: "E-2",
        title: "An inlined P/Invoke",
        // The contract has the Frame at 0x1FE140, where it leaves no room for the registers that
        // such a method saves (C-099).
        stage: Stage::new(generation)
            .native("NtDelayExecution+0x14", 0x1F_DF00)
            .native("SleepEx+0x9e", 0x1F_DF80)
            .ready_to_run("Lib.Work+0x90", 0x1F_E100)
            .saves_all()
            .jit("App.Main+0x30", 0x1F_E1A0)
            .native(CALL_DESCR_WORKER, 0x1F_E1E0)
            .frame(FrameKind::InlinedCall, 0x1F_E110, "Lib.Work"),
        calls: calls.into_iter().map(|call| call.stale(0)).collect(),
    }
}

fn through_stub(generation: Generation) -> Example {
    Example {
        id: "E-3",
        title: "A P/Invoke through an IL stub",
        stage: Stage::new(generation)
            .native("SleepEx+0x9e", 0x1F_DF80)
            .il_stub("IL_STUB_PInvoke+0x90", 0x1F_E100)
            .saves_all()
            .jit("App.Caller+0x44", 0x1F_E1A0)
            .jit("App.Main+0x30", 0x1F_E1E0)
            .native(CALL_DESCR_WORKER, 0x1F_E220)
            .frame(FrameKind::InlinedCall, 0x1F_E110, "IL_STUB_PInvoke"),
        calls: all_ways(
            generation,
            CallbackKind::ManagedToUnmanagedTransition,
            "App.Caller+0x44, rsp 0x1fe1a0\n\
             App.Main+0x30, rsp 0x1fe1e0\n\
             marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe220\n",
            HResult::OK,
        ),
    }
}

fn compiling(generation: Generation) -> Example {
    Example {
        id: "E-8",
        title: "A method is being compiled",
        stage: Stage::new(generation)
            .native("ThePreStub+0x55", 0x1F_D000)
            .jit("App.Main+0x30", 0x1F_E100)
            .native(CALL_DESCR_WORKER, 0x1F_E140)
            .frame(FrameKind::PrestubMethod, 0x1F_DF00, "App.Main")
            .of_method("App.Foo"),
        calls: all_ways(
            generation,
            CallbackKind::JITCompilationStarted,
            "App.Main+0x30, rsp 0x1fe100\n\
             marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe140\n",
            HResult::OK,
        ),
    }
}

fn compiling_the_first(generation: Generation) -> Example {
    Example {
        id: "E-9",
        title: "A thread's first method is being compiled",
        stage: Stage::new(generation)
            .native("ThePreStub+0x55", 0x1F_D000)
            .native(CALL_DESCR_WORKER, 0x1F_E100)
            .frame(FrameKind::PrestubMethod, 0x1F_DF00, "CallDescrWorkerInternal")
            .of_method("App.Main"),
        calls: all_ways(generation, CallbackKind::JITCompilationStarted, "", HResult::OK),
    }
}

fn idle(generation: Generation) -> Example {
    Example {
        id: "E-10",
        title: "An idle thread",
        stage: Stage::new(generation).native("NtWaitForSingleObject+0x14", 0x1F_E000),
        calls: all_ways(generation, CallbackKind::ThreadCreated, "", HResult::FAIL),
    }
}

fn idle_with_marks(generation: Generation) -> Example {
    let stage = Stage::new(generation).native("NtWaitForSingleObject+0x14", 0x1F_E000);
    let stage = if is_new(generation) { stage } else { stage.mark(FrameKind::Gc, 0x1F_E100) };
    // Any Frame will do for Framework 2 (C-107).
    let outcome = if is_framework_2(generation) { HResult::OK } else { HResult::FAIL };
    Example {
        id: "E-10",
        title: "An idle thread with Frames that lead nowhere",
        stage: stage.mark(FrameKind::DebuggerU2MCatchHandler, 0x1F_E200),
        calls: all_ways(generation, CallbackKind::ThreadNameChanged, "", outcome),
    }
}

const REDIRECTED: &str = "\
    App.Foo+0x33, rsp 0x1fe000\n\
    App.Main+0x20, rsp 0x1fe050\n\
    marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe090\n";

/// ContextFlags as the Frame has them, observed on CoreCLR 3.1 and .NET 9 on Unix.
const fn redirected_flags(generation: Generation) -> u32 {
    match generation {
        Generation::Net9Unix | Generation::Net9UnixLegacyExceptions => 0x10_004B,
        _ => 0x10_000B,
    }
}

fn redirected(generation: Generation) -> Example {
    let flags = redirected_flags(generation);
    // Framework 2 has nothing against walking on (C-075).
    let stops = !is_framework_2(generation);
    let (callbacks, outcome) = if stops { ("", HResult::FAIL) } else { (REDIRECTED, HResult::OK) };
    let mut calls = vec![
        ExampleCall::other("unseeded: the call suspends the thread")
            .context_flags(flags)
            .gives_on_windows(generation, callbacks, outcome),
        ExampleCall::other("a seed is no help: it is ignored")
            .seeded("App.Foo")
            .context_flags(flags)
            .gives_on_windows(generation, callbacks, outcome),
        ExampleCall::own("by itself (C-076)").context_flags(flags).gives(REDIRECTED, HResult::OK),
    ];
    if has_suspend_runtime(generation) {
        calls.push(
            ExampleCall::other("under SuspendRuntime (C-076)")
                .suspended()
                .context_flags(flags)
                .gives(REDIRECTED, HResult::OK),
        );
    }
    Example {
        id: "E-12",
        title: "The GC has redirected the thread",
        stage: Stage::new(generation)
            .native("RedirectedHandledJITCase+0x60", 0x1F_D000)
            .jit("App.Foo+0x33", 0x1F_E000)
            .jit("App.Main+0x20", 0x1F_E050)
            .native(CALL_DESCR_WORKER, 0x1F_E090)
            .frame(FrameKind::RedirectedThread, 0x1F_D800, "App.Foo")
            .with_context_flags(flags),
        calls,
    }
}
