//! Managed code below native code below managed code: E-6, E-7, E-17.

use super::{CALL_DESCR_WORKER, Example, ExampleCall, has_suspend_runtime, is_unix};
use crate::generation::Generation;
use crate::profiling::HResult;
use crate::runtime::FrameKind;
use crate::stage::Stage;

pub(super) fn examples(generation: Generation) -> Vec<Example> {
    let mut examples = vec![callback(generation), two_markers(generation)];
    // COM is a thing of Windows.
    if !is_unix(generation) {
        examples.push(com(generation));
    }
    examples
}

/// In .NET 9 on Unix native code calls a reverse P/Invoke stub directly (C-170): there is no thunk
/// between them.
const fn has_thunks(generation: Generation) -> bool {
    !matches!(generation, Generation::Net9Unix | Generation::Net9UnixLegacyExceptions)
}

fn callback(generation: Generation) -> Example {
    let thunk = has_thunks(generation);
    let stage = Stage::new(generation)
        .cooperative()
        .native_leaf("JIT_WriteBarrier+0x8", 0x1F_A000)
        .jit("App.Compare+0x33", 0x1F_A008)
        .il_stub("IL_STUB_ReversePInvoke+0x60", 0x1F_A050);
    let stage = if thunk { stage.native("UMThunkStub+0x8f", 0x1F_A0A0) } else { stage };
    let stage = stage
        .native("qsort+0x123", if thunk { 0x1F_A160 } else { 0x1F_A0A0 })
        .il_stub("IL_STUB_PInvoke+0x90", 0x1F_A300)
        .saves_all()
        .jit("App.Sort+0x21", 0x1F_A3A0)
        .jit("App.Main+0x30", 0x1F_A3E0)
        .native(CALL_DESCR_WORKER, 0x1F_A420)
        .frame(FrameKind::InlinedCall, 0x1F_A310, "IL_STUB_PInvoke");
    let lossy = "\
        App.Sort+0x21, rsp 0x1fa3a0\n\
        App.Main+0x30, rsp 0x1fa3e0\n\
        marker: CallDescrWorkerInternal+0x7c, rsp 0x1fa420\n";
    let native = if thunk { "UMThunkStub+0x8f" } else { "qsort+0x123" };
    let whole = format!("App.Compare+0x33, rsp 0x1fa008\nmarker: {native}, rsp 0x1fa0a0\n{lossy}");
    Example {
        id: "E-6",
        title: "The lossy case: a callback from native code",
        stage,
        calls: vec![
            ExampleCall::other("unseeded").gives_on_windows(
                generation,
                "",
                HResult::UNMANAGED_CONTEXT,
            ),
            ExampleCall::own("hijacked, unseeded: frames are lost without a sign (C-046)")
                .gives(lossy, HResult::OK),
            ExampleCall::own("with a seed at the leaf-most managed frame (C-047)")
                .seeded("App.Compare")
                .gives(&whole, HResult::OK),
            ExampleCall::other("with a seed at the leaf-most managed frame")
                .seeded("App.Compare")
                .gives_on_windows(generation, &whole, HResult::OK),
        ],
    }
}

fn two_markers(generation: Generation) -> Example {
    let thunk = has_thunks(generation);
    let stage = Stage::new(generation)
        .cooperative()
        .jit("App.A+0x40", 0x1F_8000)
        .il_stub("IL_STUB_ReversePInvoke2+0x60", 0x1F_8050);
    let stage = if thunk { stage.native("UMThunkStub2+0x8f", 0x1F_80A0) } else { stage };
    let stage = stage
        .native("lib1+0x11", if thunk { 0x1F_8160 } else { 0x1F_80A0 })
        .il_stub("IL_STUB_PInvoke2+0x90", 0x1F_8300)
        .saves_all()
        .dynamic("DynMethod+0x20", 0x1F_83A0)
        .il_stub("IL_STUB_ReversePInvoke+0x60", 0x1F_83E0);
    let stage = if thunk { stage.native("UMThunkStub+0x8f", 0x1F_8430) } else { stage };
    let stage = stage
        .native("lib2+0x22", if thunk { 0x1F_84F0 } else { 0x1F_8430 })
        .il_stub("IL_STUB_PInvoke+0x90", 0x1F_8700)
        .saves_all()
        .jit("App.B+0x21", 0x1F_87A0)
        .native(CALL_DESCR_WORKER, 0x1F_87E0)
        .frame(FrameKind::InlinedCall, 0x1F_8310, "IL_STUB_PInvoke2")
        .frame(FrameKind::InlinedCall, 0x1F_8710, "IL_STUB_PInvoke");
    let (first, second) =
        if thunk { ("UMThunkStub2+0x8f", "UMThunkStub+0x8f") } else { ("lib1+0x11", "lib2+0x22") };
    let outer = format!(
        "marker: {second}, rsp 0x1f8430\n\
         App.B+0x21, rsp 0x1f87a0\n\
         marker: CallDescrWorkerInternal+0x7c, rsp 0x1f87e0\n"
    );
    let whole = format!("App.A+0x40, rsp 0x1f8000\nmarker: {first}, rsp 0x1f80a0\n{outer}");
    Example {
        id: "E-7",
        title: "Two markers in a row: all managed code between two native runs is hidden",
        stage,
        calls: vec![
            ExampleCall::own("with a seed (C-063)").seeded("App.A").gives(&whole, HResult::OK),
            ExampleCall::other("with a seed").seeded("App.A").gives_on_windows(
                generation,
                &whole,
                HResult::OK,
            ),
            ExampleCall::own("hijacked, unseeded: it begins with a marker (C-064)")
                .gives(&outer, HResult::OK),
        ],
    }
}

fn com(generation: Generation) -> Example {
    let callbacks = "\
        App.M2+0x21, rsp 0x1f83a0\n\
        marker: COMToCLRDispatchHelper+0x39, rsp 0x1f8430\n\
        App.M1+0x21, rsp 0x1f87a0\n\
        marker: CallDescrWorkerInternal+0x7c, rsp 0x1f87e0\n";
    let mut calls = vec![
        ExampleCall::other("unseeded").gives(callbacks, HResult::OK),
        ExampleCall::own("unseeded").gives(callbacks, HResult::OK),
    ];
    if has_suspend_runtime(generation) {
        calls.push(
            ExampleCall::other("under SuspendRuntime").suspended().gives(callbacks, HResult::OK),
        );
    }
    Example {
        id: "E-17",
        title: "COM both ways",
        stage: Stage::new(generation)
            .native("server2+0x33", 0x1F_8200)
            .il_stub("IL_STUB_CLRtoCOM2+0x90", 0x1F_8300)
            .saves_all()
            .jit("App.M2+0x21", 0x1F_83A0)
            .il_stub("IL_STUB_COMtoCLR+0x60", 0x1F_83E0)
            .native("COMToCLRDispatchHelper+0x39", 0x1F_8430)
            .native("client+0x22", 0x1F_8600)
            .il_stub("IL_STUB_CLRtoCOM+0x90", 0x1F_8700)
            .saves_all()
            .jit("App.M1+0x21", 0x1F_87A0)
            .native(CALL_DESCR_WORKER, 0x1F_87E0)
            .frame(FrameKind::InlinedCall, 0x1F_8310, "IL_STUB_CLRtoCOM2")
            .frame(FrameKind::ComMethod, 0x1F_8500, "client")
            .frame(FrameKind::InlinedCall, 0x1F_8710, "IL_STUB_CLRtoCOM"),
        calls,
    }
}
