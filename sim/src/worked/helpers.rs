//! Leaves in managed code and in helpers: E-1, E-4, E-5, E-11, E-13, E-19, E-20, E-21.

use super::{
    CALL_DESCR_WORKER, Example, ExampleCall, Seed, Target, has_suspend_runtime, helper_frame,
    is_framework_2, is_new, own_context_flags,
};
use crate::generation::Generation;
use crate::profiling::{CallbackKind, HResult};
use crate::runtime::FrameKind;
use crate::stage::Stage;

pub(super) fn examples(generation: Generation) -> Vec<Example> {
    vec![
        allocation(generation),
        jitted_leaf(generation),
        write_barrier(generation),
        cooperative_fcall(generation),
        blocked_fcall(generation),
        hijacked(generation),
        aborted(generation),
        tiers(generation),
        nested(generation),
    ]
}

/// A GCFrame, where the chain has such Frames: a Frame without function and return address.
fn gc_frame(stage: Stage, at: u64) -> Stage {
    if is_new(stage.generation) { stage } else { stage.mark(FrameKind::Gc, at) }
}

const ALLOCATION: &str = "\
    App.Foo+0x40, rsp 0x1fe300\n\
    App.Main+0x20, rsp 0x1fe340\n\
    marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe380\n";

fn allocation_stage(generation: Generation) -> Stage {
    let stage = Stage::new(generation)
        .cooperative()
        .native("JIT_New+0x80", 0x1F_E000)
        .jit("App.Foo+0x40", 0x1F_E300)
        .jit("App.Main+0x20", 0x1F_E340)
        .native(CALL_DESCR_WORKER, 0x1F_E380)
        .frame(helper_frame(generation), 0x1F_E1C0, "App.Foo");
    gc_frame(stage, 0x1F_E5C0)
}

fn allocation(generation: Generation) -> Example {
    let own = |title| ExampleCall::own(title).within(CallbackKind::ObjectAllocated);
    Example {
        id: "E-1",
        title: "A synchronous walk from ObjectAllocated",
        stage: allocation_stage(generation),
        calls: vec![
            own("thread 0").on(Target::Null).gives(ALLOCATION, HResult::OK),
            own("its own id (C-013)").gives(ALLOCATION, HResult::OK),
            own("without contexts (C-092)").flags(0).gives(
                "App.Foo+0x40\nApp.Main+0x20\nmarker: CallDescrWorkerInternal+0x7c\n",
                HResult::OK,
            ),
            own("without contexts, but with a seed (C-052)")
                .flags(0)
                .seeded("App.Main")
                .gives("App.Main+0x20\nmarker: CallDescrWorkerInternal+0x7c\n", HResult::OK),
        ],
    }
}

const JITTED_LEAF: &str = "\
    App.Foo+0x17, rsp 0x1fe000\n\
    App.Main+0x30, rsp 0x1fe050\n\
    marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe090\n";

fn jitted_leaf(generation: Generation) -> Example {
    let stage = Stage::new(generation)
        .cooperative()
        .jit("App.Foo+0x17", 0x1F_E000)
        .jit("App.Main+0x30", 0x1F_E050)
        .native(CALL_DESCR_WORKER, 0x1F_E090);
    let empty = if is_framework_2(generation) { HResult::OK } else { HResult::FAIL };
    let mut calls = vec![
        ExampleCall::other("unseeded: from the thread's own context (C-043)")
            .context_flags(own_context_flags(generation))
            .gives_on_windows(generation, JITTED_LEAF, HResult::OK),
        ExampleCall::other("with a seed").seeded("App.Foo").gives_on_windows(
            generation,
            JITTED_LEAF,
            HResult::OK,
        ),
        // The contract's Frame chain is a GCFrame alone: enough for Framework 2 (C-107).
        ExampleCall::own("hijacked, unseeded: no Frame is of use").gives("", empty),
        ExampleCall::own("hijacked, with a seed (C-047)")
            .seeded("App.Foo")
            .gives(JITTED_LEAF, HResult::OK),
    ];
    if has_suspend_runtime(generation) {
        calls.push(
            ExampleCall::other("under SuspendRuntime, still cooperative (C-020)")
                .suspended()
                .context_flags(own_context_flags(generation))
                .gives_on_windows(generation, JITTED_LEAF, HResult::OK),
        );
    }
    Example { id: "E-4", title: "A leaf in jitted code", stage: gc_frame(stage, 0x1F_E5C0), calls }
}

const WRITE_BARRIER: &str = "\
    App.Foo+0x55, rsp 0x1fe000\n\
    App.Main+0x30, rsp 0x1fe050\n\
    marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe090\n";

fn write_barrier(generation: Generation) -> Example {
    Example {
        id: "E-5",
        title: "A leaf in a helper without Frame",
        stage: Stage::new(generation)
            .cooperative()
            .native_leaf("JIT_WriteBarrier+0x8", 0x1F_DFF8)
            .jit("App.Foo+0x55", 0x1F_E000)
            .jit("App.Main+0x30", 0x1F_E050)
            .native(CALL_DESCR_WORKER, 0x1F_E090),
        calls: vec![
            ExampleCall::other("unseeded (C-044)").gives_on_windows(
                generation,
                "",
                HResult::UNMANAGED_CONTEXT,
            ),
            ExampleCall::other("with a seed at the helper's caller")
                .seeded("App.Foo")
                .gives_on_windows(generation, WRITE_BARRIER, HResult::OK),
            ExampleCall::other("with a seed in the helper")
                .seeded("JIT_WriteBarrier")
                .gives_on_windows(generation, "", HResult::UNMANAGED_CONTEXT),
            ExampleCall::own("with a seed at the helper's caller")
                .seeded("App.Foo")
                .gives(WRITE_BARRIER, HResult::OK),
            ExampleCall::own("with a seed in the helper (C-038)")
                .seeded("JIT_WriteBarrier")
                .gives("", HResult::UNMANAGED_CONTEXT),
            // No Frame, no managed start: even Framework 2 has nothing.
            ExampleCall::own("unseeded").gives("", HResult::FAIL),
        ],
    }
}

const FCALL: &str = "\
    App.Foo+0x40, rsp 0x1fe300\n\
    App.Main+0x20, rsp 0x1fe340\n\
    marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe380\n";

/// The FCall's method is the Frame's: an internal stop, of which nobody is told.
fn fcall_stage(generation: Generation) -> Stage {
    Stage::new(generation)
        .native("ObjectNative::GetHashCode+0x60", 0x1F_E000)
        .jit("App.Foo+0x40", 0x1F_E300)
        .jit("App.Main+0x20", 0x1F_E340)
        .native(CALL_DESCR_WORKER, 0x1F_E380)
        .frame(helper_frame(generation), 0x1F_E1C0, "App.Foo")
        .of_method("Object.GetHashCode")
}

fn cooperative_fcall(generation: Generation) -> Example {
    Example {
        id: "E-11",
        title: "An FCall with a Frame, in cooperative mode",
        stage: fcall_stage(generation).cooperative(),
        calls: vec![
            ExampleCall::other("unseeded, although the chain would do").gives_on_windows(
                generation,
                "",
                HResult::UNMANAGED_CONTEXT,
            ),
            ExampleCall::other("with a seed").seeded("App.Foo").gives_on_windows(
                generation,
                FCALL,
                HResult::OK,
            ),
            ExampleCall::own("from a callback")
                .within(CallbackKind::ObjectAllocated)
                .gives(FCALL, HResult::OK),
            ExampleCall::own("with a seed").seeded("App.Foo").gives(FCALL, HResult::OK),
        ],
    }
}

fn blocked_fcall(generation: Generation) -> Example {
    let mut calls = vec![
        ExampleCall::other("unseeded").gives_on_windows(generation, FCALL, HResult::OK),
        ExampleCall::own("unseeded").gives(FCALL, HResult::OK),
    ];
    if has_suspend_runtime(generation) {
        calls.push(
            ExampleCall::other("under SuspendRuntime (C-128)")
                .suspended()
                .gives(FCALL, HResult::OK),
        );
    }
    Example {
        id: "E-11",
        title: "An FCall with a Frame, blocked in preemptive mode",
        stage: fcall_stage(generation),
        calls,
    }
}

const HIJACKED: &str = "\
    App.Foo+0x20, rsp 0x1fe000\n\
    App.Main+0x20, rsp 0x1fe040\n\
    marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe080\n";

fn hijacked(generation: Generation) -> Example {
    let mut stage = Stage::new(generation)
        .cooperative()
        .jit("App.Foo+0x20", 0x1F_E000)
        .jit("App.Main+0x20", 0x1F_E040)
        .native(CALL_DESCR_WORKER, 0x1F_E080);
    stage.hijacked = Some("App.Foo".to_owned());
    Example {
        id: "E-13",
        title: "The GC has hijacked a return address",
        stage,
        calls: vec![
            ExampleCall::own("with a seed (C-077)").seeded("App.Foo").gives(HIJACKED, HResult::OK),
            ExampleCall::other("unseeded")
                .context_flags(own_context_flags(generation))
                .gives_on_windows(generation, HIJACKED, HResult::OK),
        ],
    }
}

fn aborted(generation: Generation) -> Example {
    let own = |title| ExampleCall::own(title).within(CallbackKind::ObjectAllocated);
    Example {
        id: "E-19",
        title: "The callback wants no more",
        stage: allocation_stage(generation),
        calls: vec![
            own("S_FALSE at the second callback (C-104, C-105)").stop_at(1).gives(
                "App.Foo+0x40, rsp 0x1fe300\nApp.Main+0x20, rsp 0x1fe340\n",
                HResult::ABORTED,
            ),
            own("S_FALSE at the last one").stop_at(2).gives(ALLOCATION, HResult::ABORTED),
        ],
    }
}

/// Versions of a method's code have its FunctionID, and other ips.
fn tiers(generation: Generation) -> Example {
    Example {
        id: "E-20",
        title: "Two tiers of a recursive method",
        stage: Stage::new(generation)
            .cooperative()
            .jit("App.Fib@tier1+0x30", 0x1F_E000)
            .jit("App.Fib@tier0+0x60", 0x1F_E040)
            .jit("App.Main+0x20", 0x1F_E0A0)
            .native(CALL_DESCR_WORKER, 0x1F_E0E0),
        calls: vec![ExampleCall::own("with a seed").seed(Seed::Row("App.Fib@tier1")).gives(
            "App.Fib@tier1+0x30, rsp 0x1fe000\n\
                 App.Fib@tier0+0x60, rsp 0x1fe040\n\
                 App.Main+0x20, rsp 0x1fe0a0\n\
                 marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe0e0\n",
            HResult::OK,
        )],
    }
}

/// What a call in the middle of a walk sees: the lock that the walk holds.
fn nested(generation: Generation) -> Example {
    let mut stage = allocation_stage(generation);
    stage.hijack_locked = true;
    Example {
        id: "E-21",
        title: "A walk of the thread is in progress",
        stage,
        calls: vec![
            ExampleCall::own("from its own callback (C-015)")
                .on(Target::Null)
                .within(CallbackKind::ObjectAllocated)
                .gives("", HResult::UNSAFE),
            // Before Unix can refuse.
            ExampleCall::other("by another walker (C-016)").gives("", HResult::UNSAFE),
        ],
    }
}
