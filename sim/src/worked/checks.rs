//! The checks before the walk (contract §2.2), one by one: rows 1 to 9 and 14.

use super::{
    CALL_DESCR_WORKER, Example, ExampleCall, Target, fault, has_suspend_runtime, is_framework_2,
    is_unix, own_context_flags,
};
use crate::generation::Generation;
use crate::profiling::{CallbackKind, HResult, Outcome};
use crate::runtime::{FrameKind, OsThreadId, ProfilerStatus, Suspension};
use crate::stage::{MANAGED_WALKER, NATIVE_WALKER, Stage};
use clr_walker::profiling::EventMask;

pub(super) fn examples(generation: Generation) -> Vec<Example> {
    vec![
        detaching(generation),
        not_started(generation),
        not_enabled(generation, ProfilerStatus::Active, EventMask(0x8FFF_FFFF & !0x1000_0000)),
        not_enabled(generation, ProfilerStatus::None, EventMask::ENABLE_STACK_SNAPSHOT),
        bad_flags(generation),
        native_caller(generation),
        gc_special(generation),
        no_gc(generation),
        suspension_in_progress(generation),
        forbidden(generation),
        writer(generation, true),
        writer(generation, false),
        wild(generation),
    ]
}

/// A thread that can be walked in every way.
pub(super) fn stage(generation: Generation) -> Stage {
    Stage::new(generation)
        .cooperative()
        .jit("App.Foo+0x40", 0x1F_E300)
        .jit("App.Main+0x20", 0x1F_E340)
        .native(CALL_DESCR_WORKER, 0x1F_E380)
}

pub(super) const WHOLE: &str = "\
    App.Foo+0x40, rsp 0x1fe300\n\
    App.Main+0x20, rsp 0x1fe340\n\
    marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe380\n";

/// Whoever calls, and whatever for, gets the same.
fn all_get(outcome: HResult) -> Vec<ExampleCall> {
    vec![
        ExampleCall::own("by itself").seeded("App.Foo").gives("", outcome),
        ExampleCall::other("by a native walker").gives("", outcome),
        ExampleCall::by(MANAGED_WALKER, "by a managed walker").gives("", outcome),
    ]
}

/// By itself with a seed, and by another thread without: both find the whole stack.
fn works(generation: Generation) -> Vec<ExampleCall> {
    vec![
        ExampleCall::own("by itself").seeded("App.Foo").gives(WHOLE, HResult::OK),
        ExampleCall::other("by a native walker")
            .context_flags(own_context_flags(generation))
            .gives_on_windows(generation, WHOLE, HResult::OK),
    ]
}

fn detaching(generation: Generation) -> Example {
    let mut stage = stage(generation);
    stage.process.profiler = ProfilerStatus::Detaching;
    let calls = if is_framework_2(generation) {
        works(generation)
    } else {
        all_get(HResult::PROFILER_DETACHING)
    };
    Example { id: "C-001", title: "The profiler is being detached", stage, calls }
}

fn not_started(generation: Generation) -> Example {
    let mut stage = stage(generation);
    stage.process.started = false;
    stage.process.profiler = ProfilerStatus::InitializingForStartup;
    let calls = all_get(HResult::UNSAFE);
    Example { id: "C-002", title: "In Initialize: the runtime has not started", stage, calls }
}

fn not_enabled(generation: Generation, profiler: ProfilerStatus, mask: EventMask) -> Example {
    let mut stage = stage(generation);
    stage.process.profiler = profiler;
    stage.process.event_mask = mask;
    let outcome = if is_framework_2(generation) {
        HResult::INVALID_ARGUMENT
    } else {
        HResult::INCONSISTENT_WITH_FLAGS
    };
    Example {
        id: if is_framework_2(generation) { "C-004" } else { "C-003" },
        title: "ENABLE_STACK_SNAPSHOT is not enabled",
        stage,
        calls: all_get(outcome),
    }
}

fn bad_flags(generation: Generation) -> Example {
    let mut calls: Vec<_> = [
        ("COR_PRF_SNAPSHOT_X86_OPTIMIZED", 2),
        ("with REGISTER_CONTEXT", 3),
        ("the highest bit", 0x8000_0000),
    ]
    .into_iter()
    .map(|(title, flags)| ExampleCall::own(title).flags(flags).gives("", HResult::INVALID_ARGUMENT))
    .collect();
    calls.push(
        ExampleCall::other("before it is seen that there is no thread (C-008)")
            .on(Target::Null)
            .flags(2)
            .gives("", HResult::INVALID_ARGUMENT),
    );
    Example { id: "C-007", title: "infoFlags of no meaning", stage: stage(generation), calls }
}

fn native_caller(generation: Generation) -> Example {
    Example {
        id: "C-010",
        title: "Thread 0 is the caller, if the runtime knows it",
        stage: stage(generation),
        calls: vec![
            ExampleCall::other("by a native walker").on(Target::Null).gives("", HResult::OK),
            ExampleCall::by(MANAGED_WALKER, "by a managed walker")
                .on(Target::Null)
                .gives("", HResult::FAIL),
        ],
    }
}

fn gc_special(generation: Generation) -> Example {
    let mut stage = stage(generation);
    stage.gc_special = true;
    let calls = if is_framework_2(generation) { works(generation) } else { all_get(HResult::OK) };
    Example { id: "C-011", title: "A thread of the GC", stage, calls }
}

fn no_gc(generation: Generation) -> Example {
    let mut stage = stage(generation);
    stage.process.gc_initialized = false;
    Example { id: "C-012", title: "There is no GC yet", stage, calls: all_get(HResult::OK) }
}

fn suspension_in_progress(generation: Generation) -> Example {
    let mut stage = stage(generation);
    stage.process.suspension = Suspension::Suspending(OsThreadId(9));
    let mut calls = works(generation);
    calls.push(ExampleCall::by(MANAGED_WALKER, "by a managed walker").gives("", HResult::UNSAFE));
    Example { id: "C-017", title: "Threads are being stopped", stage, calls }
}

fn forbidden(generation: Generation) -> Example {
    let mut stage = stage(generation);
    stage.forbid_suspend = 1;
    let calls = all_get(HResult::UNSAFE);
    Example { id: "C-018", title: "The thread must not be suspended", stage, calls }
}

/// Another thread writes to the code manager's tables. Whether a lookup waits for it depends on the
/// caller (§2.6); CoreCLR 3.1, and Framework 4 like it, give up instead outside of callbacks (C-036).
fn writer(generation: Generation, cooperative: bool) -> Example {
    let mut stage = stage(generation);
    stage.cooperative = cooperative;
    stage.process.code_manager_writer = Some(OsThreadId(9));
    let gives_up = matches!(
        generation,
        Generation::Framework4 | Generation::CoreClr31Windows | Generation::CoreClr31Unix
    );
    let walker: Outcome =
        if gives_up { HResult::ASYNCHRONOUS_UNSAFE.into() } else { Outcome::Blocked };
    let calls = if cooperative {
        vec![
            ExampleCall::own("by itself, with a seed").seeded("App.Foo").gives("", walker),
            ExampleCall::own("in a callback, with a seed")
                .within(CallbackKind::ObjectAllocated)
                .seeded("App.Foo")
                .gives("", Outcome::Blocked),
            ExampleCall::own("in a callback, unseeded: no lookup needs the lock")
                .within(CallbackKind::ObjectAllocated)
                .gives(WHOLE, HResult::OK),
            ExampleCall::other("by a native walker, which takes no lock")
                .context_flags(own_context_flags(generation))
                .gives_on_windows(generation, WHOLE, HResult::OK),
            ExampleCall::by(MANAGED_WALKER, "by a managed walker")
                .gives_on_windows(generation, "", walker),
            ExampleCall::by(MANAGED_WALKER, "by a managed walker in a callback")
                .within(CallbackKind::ThreadNameChanged)
                .gives_on_windows(generation, "", Outcome::Blocked),
        ]
    } else {
        vec![
            ExampleCall::other("by a native walker").gives_on_windows(
                generation,
                WHOLE,
                HResult::OK,
            ),
            ExampleCall::own("in a callback")
                .within(CallbackKind::ThreadNameChanged)
                .gives("", Outcome::Blocked),
        ]
    };
    // It lies above rsp, as Frames must (C-033).
    stage = stage.frame(FrameKind::FuncEval, 0x1F_E310, "App.Foo");
    Example { id: "C-036", title: "The code manager is being written to", stage, calls }
}

/// Any value but 0 is taken for a Thread object (C-159, C-169).
fn wild(generation: Generation) -> Example {
    let mut stage = stage(generation);
    stage.blocks = vec![(0x5_0000, 0x1000), (0x6_0000, 0x1000)];
    stage.overwritten = (0..0x200).map(|word| (0x6_0000 + 8 * word, u64::MAX)).collect();
    let value = |title, value| ExampleCall::other(title).on(Target::Value(value));
    let killed = Outcome::ProcessKilled { code: HResult::INVALID_TARGET_THREAD.0 };
    // Its flags say that it is a thread of the GC; what Framework 2 looks at is its lock.
    let ones = if is_framework_2(generation) { HResult::UNSAFE } else { HResult::OK };
    // What is read first: the flags, or there the lock.
    let first = if is_framework_2(generation) { 0x10 } else { 0 };
    let mut calls = vec![
        value("zeros: there is no such thread (C-028)", 0x5_0000)
            .gives_on_windows(generation, "", killed),
        value("0xFF bytes", 0x6_0000).gives("", ones),
    ];
    for address in [1, 8, 0x1000, 0x8000_0000_0000_0000] {
        let at = address + first;
        calls
            .push(value("what cannot be read", address).gives("", Outcome::AccessViolation { at }));
    }
    if has_suspend_runtime(generation) {
        // Its Frame chain begins at address 0.
        calls.push(
            value("zeros, under SuspendRuntime", 0x5_0000)
                .suspended()
                .gives("", fault(generation, 0)),
        );
    }
    calls.push(ExampleCall::by(NATIVE_WALKER, "the thread itself").gives_on_windows(
        generation,
        WHOLE,
        HResult::OK,
    ));
    let flags = own_context_flags(generation);
    if let Some(call) = calls.last_mut()
        && !is_unix(generation)
    {
        call.context_flags = flags;
    }
    Example { id: "C-159", title: "Thread ids that are none", stage, calls }
}
