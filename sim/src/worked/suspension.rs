//! Other threads: their life, their suspension, and whether their context may be used (contract
//! §2.2, rows 10 to 13).

use super::checks::{WHOLE, stage};
use super::{
    CALL_DESCR_WORKER, Example, ExampleCall, Target, has_suspend_runtime, is_framework_2,
    own_context_flags,
};
use crate::generation::Generation;
use crate::profiling::{HResult, Outcome};
use crate::runtime::{ContextSafety, FrameKind, ThreadLife};
use crate::stage::{MANAGED_WALKER, Stage};

pub(super) fn examples(generation: Generation) -> Vec<Example> {
    let mut examples = vec![
        not_running(generation, ThreadLife::Created),
        not_running(generation, ThreadLife::Dead),
        resisting(generation),
        unreadable_and_preemptive(generation),
        debugger_context(generation, true),
        debugger_context(generation, false),
        unreadable_for_debugger(generation),
        mode_changed(generation),
        frame_below_sp(generation, 0x1F_E2F8),
        frame_below_sp(generation, 0x1F_E300),
    ];
    examples.extend(unsafe_contexts(generation));
    examples
}

fn not_running(generation: Generation, life: ThreadLife) -> Example {
    let mut stage = Stage::new(generation).native("RtlUserThreadStart+0x21", 0x1F_E000);
    stage.life = life;
    let killed = Outcome::ProcessKilled { code: HResult::INVALID_TARGET_THREAD.0 };
    let mut calls = vec![
        ExampleCall::other("by a native walker").gives_on_windows(generation, "", killed),
        ExampleCall::by(MANAGED_WALKER, "by a managed walker")
            .gives_on_windows(generation, "", killed),
    ];
    if has_suspend_runtime(generation) {
        calls.push(
            ExampleCall::other("under SuspendRuntime (C-169)").suspended().gives("", HResult::FAIL),
        );
    }
    Example { id: "C-028", title: "A thread that does not run", stage, calls }
}

fn resisting(generation: Generation) -> Example {
    let mut stage = stage(generation);
    stage.resists_suspension = true;
    let mut calls = vec![
        ExampleCall::other("by a native walker").gives_on_windows(generation, "", HResult::UNSAFE),
        ExampleCall::other("with a seed").seeded("App.Foo").gives_on_windows(
            generation,
            "",
            HResult::UNSAFE,
        ),
        ExampleCall::own("by itself").seeded("App.Foo").gives(WHOLE, HResult::OK),
        ExampleCall::own("by itself, as thread 0")
            .on(Target::Null)
            .seeded("App.Foo")
            .gives(WHOLE, HResult::OK),
    ];
    if has_suspend_runtime(generation) {
        calls.push(
            ExampleCall::other("under SuspendRuntime it need not be (C-031)")
                .suspended()
                .context_flags(own_context_flags(generation))
                .gives_on_windows(generation, WHOLE, HResult::OK),
        );
    }
    Example { id: "C-027", title: "A thread that cannot be suspended", stage, calls }
}

/// Whether a cooperative thread's context may be used is looked at even if there is a seed (C-032).
fn unsafe_contexts(generation: Generation) -> Vec<Example> {
    [
        ContextSafety::InSystemCall,
        ContextSafety::InExceptionDispatch,
        ContextSafety::NotReported,
        ContextSafety::Unreadable,
    ]
    .into_iter()
    .map(|safety| {
        let mut stage = stage(generation);
        stage.safety = safety;
        let other = ExampleCall::other("unseeded");
        let seeded = ExampleCall::other("with a seed").seeded("App.Foo");
        let mut calls = if is_framework_2(generation) {
            // It asks for nothing but a context (C-035).
            let unseeded = if safety == ContextSafety::Unreadable {
                other.gives("", HResult::FAIL)
            } else {
                other.context_flags(own_context_flags(generation)).gives(WHOLE, HResult::OK)
            };
            vec![unseeded, seeded.gives(WHOLE, HResult::OK)]
        } else {
            vec![
                other.gives_on_windows(generation, "", HResult::UNSAFE),
                seeded.gives_on_windows(generation, "", HResult::UNSAFE),
            ]
        };
        calls.push(ExampleCall::own("by itself").seeded("App.Foo").gives(WHOLE, HResult::OK));
        Example { id: "C-032", title: "A context that is not safe", stage, calls }
    })
    .collect()
}

/// Only Framework 2 wants the context of a thread that it is not going to use (C-035).
fn unreadable_and_preemptive(generation: Generation) -> Example {
    let mut stage = Stage::new(generation)
        .native("NtWaitForSingleObject+0x14", 0x1F_E000)
        .jit("App.Foo+0x40", 0x1F_E300)
        .jit("App.Main+0x20", 0x1F_E340)
        .native(CALL_DESCR_WORKER, 0x1F_E380)
        .frame(FrameKind::PrestubMethod, 0x1F_E100, "App.Foo");
    stage.safety = ContextSafety::Unreadable;
    let (callbacks, outcome) =
        if is_framework_2(generation) { ("", HResult::FAIL) } else { (WHOLE, HResult::OK) };
    Example {
        id: "C-035",
        title: "A preemptive thread, the context of which cannot be read",
        stage,
        calls: vec![
            ExampleCall::other("unseeded").gives_on_windows(generation, callbacks, outcome),
            ExampleCall::other("with a seed, which is ignored")
                .seeded("App.Main")
                .context_flags(0)
                .gives_on_windows(generation, WHOLE, HResult::OK),
        ],
    }
}

/// A debugger's filter context makes a cooperative thread unsafe for others (§2.5), and is what an
/// unseeded walk starts from (§3.1).
fn debugger_context(generation: Generation, cooperative: bool) -> Example {
    let mut stage = stage(generation);
    stage.cooperative = cooperative;
    stage.debugger_context = true;
    let flags = own_context_flags(generation);
    let other = ExampleCall::other("unseeded").context_flags(flags);
    let refused = cooperative && !is_framework_2(generation);
    Example {
        id: "§3.1",
        title: "A debugger has a context of the thread",
        stage,
        calls: vec![
            ExampleCall::own("unseeded").context_flags(flags).gives(WHOLE, HResult::OK),
            if refused {
                other.gives_on_windows(generation, "", HResult::UNSAFE)
            } else {
                other.gives_on_windows(generation, WHOLE, HResult::OK)
            },
        ],
    }
}

fn unreadable_for_debugger(generation: Generation) -> Example {
    let mut stage = stage(generation);
    stage.debugger_context = true;
    stage.safety = ContextSafety::Unreadable;
    Example {
        id: "§3.8",
        title: "A debugger has a context of the thread, which cannot be read",
        stage,
        calls: vec![
            ExampleCall::own("unseeded").gives("", HResult::FAIL),
            ExampleCall::own("with a seed").seeded("App.Foo").gives(WHOLE, HResult::OK),
        ],
    }
}

fn mode_changed(generation: Generation) -> Example {
    let mut stage = stage(generation);
    stage.leaves_cooperative_mode = true;
    let flags = own_context_flags(generation);
    let (callbacks, outcome) =
        if is_framework_2(generation) { (WHOLE, HResult::OK) } else { ("", HResult::UNSAFE) };
    Example {
        id: "C-034",
        title: "A thread in managed code turns out to be preemptive",
        stage,
        calls: vec![
            ExampleCall::other("unseeded")
                .context_flags(flags)
                .gives_on_windows(generation, callbacks, outcome),
            ExampleCall::other("with a seed")
                .seeded("App.Foo")
                .gives_on_windows(generation, callbacks, outcome),
        ],
    }
}

/// Its rsp is 0x1FE300.
fn frame_below_sp(generation: Generation, frame: u64) -> Example {
    let stage = stage(generation).mark(FrameKind::DebuggerU2MCatchHandler, frame);
    let flags = own_context_flags(generation);
    let refused = frame < 0x1F_E300 && !is_framework_2(generation);
    let (callbacks, outcome) = if refused { ("", HResult::UNSAFE) } else { (WHOLE, HResult::OK) };
    Example {
        id: "C-033",
        title: if frame < 0x1F_E300 { "A Frame below rsp" } else { "A Frame at rsp" },
        stage,
        calls: vec![
            ExampleCall::other("unseeded")
                .context_flags(flags)
                .gives_on_windows(generation, callbacks, outcome),
            ExampleCall::other("with a seed")
                .seeded("App.Foo")
                .gives_on_windows(generation, callbacks, outcome),
            // It is dropped (C-056).
            ExampleCall::own("by itself").seeded("App.Foo").gives(WHOLE, HResult::OK),
        ],
    }
}
