//! Seeds: E-18, and what else may be given as one.

use super::{
    CALL_DESCR_WORKER, Example, ExampleCall, SEED_FLAGS, Seed, fault, is_framework_2, is_unix,
};
use crate::generation::{Generation, Generations};
use crate::profiling::{HResult, Outcome};
use crate::runtime::FrameKind;
use crate::runtime::code::StubKind;
use crate::stage::Stage;

pub(super) fn examples(generation: Generation) -> Vec<Example> {
    vec![
        bogus(generation),
        readable_elsewhere(generation),
        in_stubs(generation),
        in_padding(generation),
        hidden_leaf(generation, "DynMethod"),
        hidden_leaf(generation, "IL_STUB_Delegate"),
        short(generation),
    ]
}

const REST: &str = "\
    App.Outer+0x90, rsp 0x1fe200\n\
    marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe2a0\n";

/// App.Foo's frame takes 0x50 bytes, the last eight being its return address.
fn stage(generation: Generation) -> Stage {
    let mut stage = Stage::new(generation)
        .cooperative()
        .jit("App.Foo+0x40", 0x1F_E000)
        .jit("App.Main+0x20", 0x1F_E050)
        .native("UMThunkStub+0x8f", 0x1F_E090)
        .saves_all()
        .ready_to_run("App.Outer+0x90", 0x1F_E200)
        .saves_all()
        .native(CALL_DESCR_WORKER, 0x1F_E2A0)
        .frame(FrameKind::InlinedCall, 0x1F_E210, "App.Outer");
    stage.blocks.push((0x5_0000, 0x1000));
    stage
}

const fn at(rsp: u64) -> Seed {
    Seed::At { row: "App.Foo", ip: "App.Foo+0x40", rsp }
}

fn bogus(generation: Generation) -> Example {
    let mut stage = stage(generation);
    // What the wrong rsp makes the return address of App.Foo.
    stage.overwritten.push((0x1F_E058, 0x1234));
    // Framework 2 looks whether code can be read there (C-110).
    let (wrong_slot, end) = if is_framework_2(generation) {
        ("App.Foo+0x40, rsp 0x1fe010\n".to_owned(), HResult::FAIL)
    } else {
        let first = "App.Foo+0x40, rsp 0x1fe010\nmarker: 0x1234, rsp 0x1fe060\n";
        (format!("{first}{REST}"), HResult::OK)
    };
    Example {
        id: "E-18",
        title: "Bogus seeds",
        stage,
        calls: vec![
            ExampleCall::own("rsp lies in no memory (C-054)")
                .seed(at(0x7000_0000_0000))
                .gives("", fault(generation, 0x7000_0000_0048)),
            ExampleCall::own("rsp lies outside the stack (C-055)")
                .seed(at(0x5_0000))
                .gives("App.Foo+0x40, rsp 0x50000\n", HResult::FAIL),
            ExampleCall::own("rsp lies in the wrong place on the stack (H-17)")
                .seed(at(0x1F_E010))
                .stale(2)
                .gives(&wrong_slot, end),
            // Every Frame below it is dropped, so nothing comes behind the marker.
            ExampleCall::own("rsp is far too high, but on the stack")
                .seed(at(0x1F_F000))
                .gives("App.Foo+0x40, rsp 0x1ff000\n", HResult::FAIL)
                .gives_unless_framework_2(
                    generation,
                    "App.Foo+0x40, rsp 0x1ff000\nmarker: 0x0, rsp 0x1ff050\n",
                    HResult::OK,
                ),
            ExampleCall::own("zeros (C-042)")
                .seed(Seed::Bytes(vec![0; 0xC20]))
                .gives("", HResult::UNMANAGED_CONTEXT),
        ],
    }
}

impl ExampleCall {
    fn gives_unless_framework_2(
        self,
        generation: Generation,
        callbacks: &str,
        outcome: HResult,
    ) -> Self {
        if is_framework_2(generation) { self } else { self.gives(callbacks, outcome) }
    }
}

/// A wrong stack that goes on in managed code: only Framework 2 does not notice that it is none.
fn readable_elsewhere(generation: Generation) -> Example {
    let mut stage = stage(generation);
    stage.overwritten.push((0x5_0048, 0x7FF8_0000_0020));
    Example {
        id: "C-110",
        title: "A wrong stack with a return address in managed code",
        stage,
        calls: vec![
            ExampleCall::own("rsp lies outside the stack")
                .seed(at(0x5_0000))
                .gives("App.Foo+0x40, rsp 0x50000\nApp.Foo+0x20, rsp 0x50050\n", HResult::FAIL)
                .gives_unless_framework_2(generation, "App.Foo+0x40, rsp 0x50000\n", HResult::FAIL),
        ],
    }
}

fn in_stubs(generation: Generation) -> Example {
    let seed = |ip| Seed::At { row: "App.Foo", ip, rsp: 0x1F_E000 };
    let mut stage = stage(generation);
    let stubs = [
        ("in a precode", "precode", StubKind::Precode),
        ("in a jump stub", "jump stub", StubKind::JumpStub),
        ("in a dynamic helper", "dynamic helper", StubKind::DynamicHelper),
        ("in a stub of virtual stub dispatch", "VSD stub", StubKind::VirtualStubDispatch),
        ("in a stub of the stub linker", "linked stub", StubKind::StubLink),
    ];
    for (_, name, kind) in stubs {
        stage = stage.stub(name, kind);
    }
    let native = ("in native code", "UMThunkStub+0x8f");
    let calls = stubs.map(|(title, name, _)| (title, name)).into_iter().chain([native]);
    Example {
        id: "C-039",
        title: "What is no managed code",
        stage,
        calls: calls
            .map(|(title, ip)| {
                ExampleCall::own(title).seed(seed(ip)).gives("", HResult::UNMANAGED_CONTEXT)
            })
            .collect(),
    }
}

/// Padding has no entry in the heap's table, so it is a leaf (§8.3); an image's entries have no end.
fn in_padding(generation: Generation) -> Example {
    Example {
        id: "C-041",
        title: "The padding behind a method belongs to it",
        stage: stage(generation),
        calls: vec![
            ExampleCall::own("of a jitted method (C-146)")
                .seed(Seed::At { row: "App.Main", ip: "App.Foo+0x3d0", rsp: 0x1F_E048 })
                .stale(3)
                .gives(
                    &format!(
                        "App.Foo+0x3d0, rsp 0x1fe048\n\
                         App.Main+0x20, rsp 0x1fe050\n\
                         marker: UMThunkStub+0x8f, rsp 0x1fe090\n\
                         {REST}"
                    ),
                    HResult::OK,
                ),
            ExampleCall::own("of a precompiled method")
                .seed(Seed::At { row: "App.Outer", ip: "App.Outer+0x3d0", rsp: 0x1F_E200 })
                .gives(
                    "App.Outer+0x3d0, rsp 0x1fe200\n\
                     marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe2a0\n",
                    HResult::OK,
                ),
        ],
    }
}

/// A dynamic method or an IL stub is managed code, though nobody is told of it (C-040).
fn hidden_leaf(generation: Generation, leaf: &'static str) -> Example {
    let row = format!("{leaf}+0x20");
    let new = || Stage::new(generation).cooperative();
    let stage = if leaf == "DynMethod" {
        new().dynamic(&row, 0x1F_E000)
    } else {
        new().il_stub(&row, 0x1F_E000)
    };
    Example {
        id: if leaf == "DynMethod" { "C-066" } else { "C-067" },
        title: "A leaf that nobody is told of",
        stage: stage.native("UMThunkStub+0x8f", 0x1F_E050),
        calls: vec![
            ExampleCall::own("with a seed in it (C-064)")
                .seeded(leaf)
                .gives("marker: UMThunkStub+0x8f, rsp 0x1fe050\n", HResult::OK),
        ],
    }
}

/// How much of a seed is read, whatever contextSize says (C-053, C-162).
fn short(generation: Generation) -> Example {
    let whole = "\
        App.Foo+0x40, rsp 0x1fe000\n\
        App.Main+0x20, rsp 0x1fe050\n\
        marker: UMThunkStub+0x8f, rsp 0x1fe090\n";
    let depends = Generations::NEW.contains(generation) && is_unix(generation);
    let xstate = SEED_FLAGS | 0x40;
    // ContextFlags, XStateFeaturesMask, and what that makes the size.
    let sizes = [
        ("no XSTATE in ContextFlags", SEED_FLAGS, 0xE4, 0x4D8),
        ("XSTATE in ContextFlags", xstate, 4, 0x5E0),
        ("XSTATE, and a mask with AVX-512", xstate, 0xE4, 0xC20),
        ("XSTATE, and a mask with one bit of AVX-512", xstate, 0x20, 0xC20),
    ];
    let mut calls = Vec::new();
    for (title, flags, features, size) in sizes {
        let size = if depends { size } else { 0x4D0 };
        for readable in [size, size - 1] {
            let seed = Seed::Cut { row: "App.Foo", flags, features, readable };
            let call = ExampleCall::own(title).seed(seed).stale(3);
            calls.push(if readable == size {
                call.gives(&format!("{whole}{REST}"), HResult::OK)
            } else {
                call.gives("", fault(generation, readable as u64))
            });
        }
    }
    // rip is read where nothing guards it (§2.8).
    let seed = Seed::Cut { row: "App.Foo", flags: 0, features: 0, readable: 0xFF };
    calls.push(
        ExampleCall::own("not even rip can be read")
            .seed(seed)
            .gives("", Outcome::AccessViolation { at: 0xFF }),
    );
    Example { id: "C-162", title: "Seeds that are too short", stage: stage(generation), calls }
}
