//! How walks end: the bounds of the stack, GS cookies, a callback that is not there, and what a walk
//! reports of its registers.

use super::checks::WHOLE;
use super::{CALL_DESCR_WORKER, Example, ExampleCall, fault, is_framework_2, is_new};
use crate::generation::Generation;
use crate::profiling::{HResult, Outcome};
use crate::runtime::FrameKind;
use crate::stage::Stage;

pub(super) fn examples(generation: Generation) -> Vec<Example> {
    let mut examples = vec![null_callback(generation), dropped_frames(generation)];
    examples.extend(bounds(generation));
    examples.extend(cookies(generation));
    examples
}

fn stage(generation: Generation) -> Stage {
    Stage::new(generation)
        .cooperative()
        .jit("App.Foo+0x40", 0x1F_E300)
        .jit("App.Main+0x20", 0x1F_E340)
        .native(CALL_DESCR_WORKER, 0x1F_E380)
}

fn null_callback(generation: Generation) -> Example {
    let empty = ExampleCall::own("nothing is found").without_callback();
    Example {
        id: "C-024",
        title: "A NULL callback matters when it is to be called",
        stage: stage(generation),
        calls: vec![
            empty.gives("", HResult::FAIL),
            ExampleCall::own("a frame is found")
                .seeded("App.Foo")
                .without_callback()
                .gives("", fault(generation, 0)),
        ],
    }
}

/// rsp must lie in [limit, base) after each step (C-109); Framework 2 does not ask for that.
fn bounds(generation: Generation) -> Vec<Example> {
    let leaf = "App.Foo+0x40, rsp 0x1fe300\n";
    let main = "App.Foo+0x40, rsp 0x1fe300\nApp.Main+0x20, rsp 0x1fe340\n";
    [
        ("rsp comes to lie at the limit", (0x1F_E340, 0x20_0000), WHOLE, HResult::OK),
        ("rsp comes to lie below the limit", (0x1F_E341, 0x20_0000), leaf, HResult::FAIL),
        ("rsp comes to lie below the base", (0x10_0000, 0x1F_E381), WHOLE, HResult::OK),
        ("rsp comes to lie at the base", (0x10_0000, 0x1F_E380), main, HResult::FAIL),
        ("rsp comes to lie above the base", (0x10_0000, 0x1F_E340), leaf, HResult::FAIL),
    ]
    .into_iter()
    .map(|(title, bounds, callbacks, outcome)| {
        let mut stage = stage(generation);
        stage.stack = bounds;
        let (callbacks, outcome) =
            if is_framework_2(generation) { (WHOLE, HResult::OK) } else { (callbacks, outcome) };
        Example {
            id: "C-109",
            title,
            stage,
            calls: vec![
                ExampleCall::own("with a seed").seeded("App.Foo").gives(callbacks, outcome),
            ],
        }
    })
    .collect()
}

/// What lies below the first managed frame's caller SP is dropped (C-056), the rest is not: it is
/// met behind the marker.
fn dropped_frames(generation: Generation) -> Example {
    let outer = "\
        App.Foo+0x40, rsp 0x1fe300\n\
        marker: UMThunkStub+0x8f, rsp 0x1fe340\n\
        App.Main+0x20, rsp 0x1fe400\n\
        marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe440\n";
    Example {
        id: "C-056",
        title: "A Frame right below a caller SP, and one at it",
        stage: Stage::new(generation)
            .cooperative()
            .jit("App.Foo+0x40", 0x1F_E300)
            .native("UMThunkStub+0x8f", 0x1F_E340)
            .jit("App.Main+0x20", 0x1F_E400)
            .native(CALL_DESCR_WORKER, 0x1F_E440)
            .mark(FrameKind::DebuggerExit, 0x1F_E310)
            .frame(FrameKind::PrestubMethod, 0x1F_E340, "App.Main"),
        calls: vec![
            ExampleCall::own("with a seed").seeded("App.Foo").gives(outer, HResult::OK),
            ExampleCall::own("unseeded").gives(
                "App.Main+0x20, rsp 0x1fe400\n\
                 marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe440\n",
                HResult::OK,
            ),
        ],
    }
}

const COOKIE: u64 = 0x2B99_2DDF_A232_1234;

/// Cookies lie below every Frame, but in .NET 9 and later, and in frames of methods with buffers
/// (§3.2, C-112).
fn cookies(generation: Generation) -> Vec<Example> {
    let killed = Outcome::ProcessKilled { code: 0xC000_0409 };
    let whole = "\
        App.Foo+0x40, rsp 0x1fe300\n\
        App.Main+0x20, rsp 0x1fe340\n\
        marker: UMThunkStub+0x8f, rsp 0x1fe380\n\
        App.Outer+0x20, rsp 0x1fe500\n\
        marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe540\n";
    let below = |lines: usize| -> String {
        whole.lines().take(lines).flat_map(|line| [line, "\n"]).collect()
    };
    // Where a cookie is broken, and after how many callbacks that is noticed.
    [
        ("All cookies are right", 0, None),
        // The first Frame's is looked at before anything else.
        ("That of the first Frame is wrong", 0x1F_E0F8, (!is_new(generation)).then_some(0)),
        // App.Foo drops the first Frame, and comes to the next one.
        (
            "That of a Frame that leads nowhere is wrong",
            0x1F_E3F8,
            (!is_new(generation)).then_some(0),
        ),
        // It is come to behind the marker.
        ("That of the last Frame is wrong", 0x1F_E418, (!is_new(generation)).then_some(3)),
        ("That of a method is wrong", 0x1F_E368, Some(1)),
    ]
    .into_iter()
    .map(|(title, broken, noticed)| {
        let mut stage = Stage::new(generation)
            .cooperative()
            .jit("App.Foo+0x40", 0x1F_E300)
            .jit("App.Main+0x20", 0x1F_E340)
            .gs_cookie(0x18)
            .native("UMThunkStub+0x8f", 0x1F_E380)
            .jit("App.Outer+0x20", 0x1F_E500)
            .native(CALL_DESCR_WORKER, 0x1F_E540)
            .mark(FrameKind::DebuggerExit, 0x1F_E100)
            .mark(FrameKind::DebuggerU2MCatchHandler, 0x1F_E400)
            .frame(FrameKind::PrestubMethod, 0x1F_E420, "App.Outer");
        stage.process.gs_cookie = Some(COOKIE);
        if broken != 0 {
            stage.overwritten.push((broken, COOKIE ^ 1));
        }
        let call = ExampleCall::own("with a seed").seeded("App.Foo");
        let call = match noticed {
            None => call.gives(whole, HResult::OK),
            Some(callbacks) => call.gives(&below(callbacks), killed),
        };
        Example { id: "C-112", title, stage, calls: vec![call] }
    })
    .collect()
}
