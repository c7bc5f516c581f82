//! Exceptions: E-14, E-15, E-16, and the clauses about handlers and unwound stack.

use super::{
    CALL_DESCR_WORKER, Example, ExampleCall, handles_exceptions_in_managed_code, is_framework_2,
    own_context_flags, throw_frame,
};
use crate::generation::Generation;
use crate::profiling::HResult;
use crate::runtime::frame::LazyFields;
use crate::runtime::{ExceptionState, ExceptionTracker, FrameKind, Funclet, Pass, RunningFunclet};
use crate::stage::Stage;

pub(super) fn examples(generation: Generation) -> Vec<Example> {
    let mut examples = vec![
        in_catch(generation),
        in_nested_catch(generation),
        in_filter(generation),
        in_finally(generation),
        handler_without_tracker(generation),
        second_pass(generation, false),
        second_pass(generation, true),
        inner_exception_in_first_pass(generation),
        preemptive_second_pass(generation),
        inconsistent(generation),
        unwound_frame(generation),
        parent_not_found(generation),
    ];
    if throw_frame(generation) == FrameKind::HelperMethod {
        examples.push(unasked_frame_in_skip(generation));
    }
    examples.extend(unwound_bounds(generation));
    if handles_exceptions_in_managed_code(generation) {
        examples.push(managed_handling(generation));
        examples.push(only_managed_handling(generation));
    }
    examples
}

fn trackers(mut stage: Stage, trackers: &[ExceptionTracker]) -> Stage {
    stage.exceptions = ExceptionState { trackers: trackers.to_vec(), inconsistent: false };
    stage
}

/// An exception whose handler runs.
fn handled(caller_sp: u64, parent_caller_sp: Option<u64>) -> ExceptionTracker {
    ExceptionTracker {
        pass: Pass::Second,
        entered_managed_code: true,
        unwound: None,
        funclet: Some(RunningFunclet { caller_sp, parent_caller_sp }),
    }
}

/// What lies between a handler and the method that threw: native code, or, where managed code
/// handles exceptions, that with the P/Invoke by which it calls handlers.
fn dispatcher(stage: Stage, sp: u64) -> Stage {
    if handles_exceptions_in_managed_code(stage.generation) {
        stage
            .native("CallCatchFunclet+0x5c", sp)
            .exception_handling("System.Runtime.EH.DispatchEx+0x200", sp + 0x200)
            .saves_all()
            .native("IL_Throw+0x90", sp + 0x400)
    } else {
        stage.native("IL_Throw+0x90", sp)
    }
}

fn dispatcher_frames(stage: Stage, sp: u64, at: u64, thrower: &str) -> Stage {
    let kind = throw_frame(stage.generation);
    let stage = if handles_exceptions_in_managed_code(stage.generation) {
        stage.frame(FrameKind::InlinedCall, sp + 0x240, "System.Runtime.EH.DispatchEx")
    } else {
        stage
    };
    stage.frame(kind, at, thrower)
}

fn in_catch(generation: Generation) -> Example {
    let stage = Stage::new(generation)
        .cooperative()
        .jit("App.Log+0x20", 0x1F_8000)
        .jit("App.Main@catch+0x40", 0x1F_8040)
        .in_funclet(Funclet::Handler);
    let stage = dispatcher(stage, 0x1F_8080)
        .jit("App.Thrower+0x33", 0x1F_B000)
        .jit("App.Main+0x2c", 0x1F_B040)
        .native(CALL_DESCR_WORKER, 0x1F_B0A0);
    let stage = dispatcher_frames(stage, 0x1F_8080, 0x1F_A800, "App.Thrower");
    let callbacks = "\
        App.Log+0x20, rsp 0x1f8000\n\
        App.Main+0x2c, rsp 0x1fb040\n\
        marker: CallDescrWorkerInternal+0x7c, rsp 0x1fb0a0\n";
    Example {
        id: "E-14",
        title: "Inside a catch handler",
        stage: trackers(stage, &[handled(0x1F_8080, Some(0x1F_B0A0))]),
        calls: vec![
            ExampleCall::own("with a seed (C-081 to C-083)")
                .seeded("App.Log")
                .gives(callbacks, HResult::OK),
            ExampleCall::own("with a seed in the handler").seeded("App.Main@catch").gives(
                "App.Main+0x2c, rsp 0x1fb040\n\
                 marker: CallDescrWorkerInternal+0x7c, rsp 0x1fb0a0\n",
                HResult::OK,
            ),
            ExampleCall::other("unseeded")
                .context_flags(own_context_flags(generation))
                .gives_on_windows(generation, callbacks, HResult::OK),
        ],
    }
}

fn in_nested_catch(generation: Generation) -> Example {
    let stage = Stage::new(generation)
        .cooperative()
        .jit("App.Log+0x20", 0x1F_4000)
        .jit("App.Main@inner+0x40", 0x1F_4040)
        .in_funclet(Funclet::Handler);
    let stage = dispatcher(stage, 0x1F_4080)
        .jit("App.Thrower+0x33", 0x1F_7000)
        .jit("App.Main@outer+0x50", 0x1F_7040)
        .in_funclet(Funclet::Handler)
        .native("SecondDispatch+0x70", 0x1F_7080)
        .jit("App.Thrower+0x33", 0x1F_B000)
        .jit("App.Main+0x2c", 0x1F_B040)
        .native(CALL_DESCR_WORKER, 0x1F_B0A0);
    let stage = dispatcher_frames(stage, 0x1F_4080, 0x1F_6800, "App.Thrower");
    let stage = stage.frame(throw_frame(generation), 0x1F_A800, "App.Thrower");
    Example {
        id: "E-14",
        title: "Inside a catch handler that a catch handler has called",
        stage: trackers(
            stage,
            &[handled(0x1F_4080, Some(0x1F_7080)), handled(0x1F_7080, Some(0x1F_B0A0))],
        ),
        calls: vec![ExampleCall::own("with a seed").seeded("App.Log").gives(
            "App.Log+0x20, rsp 0x1f4000\n\
             App.Main+0x2c, rsp 0x1fb040\n\
             marker: CallDescrWorkerInternal+0x7c, rsp 0x1fb0a0\n",
            HResult::OK,
        )],
    }
}

fn in_filter(generation: Generation) -> Example {
    let marker = if handles_exceptions_in_managed_code(generation) {
        ""
    } else {
        "marker: ProcessCLRException+0x80, rsp 0x1f8080\n"
    };
    let callbacks = format!(
        "App.Positive+0x20, rsp 0x1f8000\n\
         App.Main@filter+0x40, rsp 0x1f8040\n\
         {marker}\
         App.Thrower+0x33, rsp 0x1fb000\n\
         App.Main+0x2c, rsp 0x1fb040\n\
         marker: CallDescrWorkerInternal+0x7c, rsp 0x1fb0a0\n"
    );
    let stage = Stage::new(generation)
        .cooperative()
        .jit("App.Positive+0x20", 0x1F_8000)
        .jit("App.Main@filter+0x40", 0x1F_8040)
        .in_funclet(Funclet::Filter)
        .native("ProcessCLRException+0x80", 0x1F_8080)
        .native("IL_Throw+0x90", 0x1F_A000)
        .jit("App.Thrower+0x33", 0x1F_B000)
        .jit("App.Main+0x2c", 0x1F_B040)
        .native(CALL_DESCR_WORKER, 0x1F_B0A0)
        .frame(throw_frame(generation), 0x1F_A800, "App.Thrower");
    Example {
        id: "E-15",
        title: "Inside a filter",
        // Nothing is skipped for a filter, even if the exception knows its parent.
        stage: trackers(
            stage,
            &[ExceptionTracker { pass: Pass::First, ..handled(0x1F_8080, Some(0x1F_B0A0)) }],
        ),
        calls: vec![
            ExampleCall::own("with a seed (C-085)")
                .seeded("App.Positive")
                .gives(&callbacks, HResult::OK),
        ],
    }
}

fn in_finally(generation: Generation) -> Example {
    Example {
        id: "E-16",
        title: "Inside a finally handler that its method has called itself",
        stage: Stage::new(generation)
            .cooperative()
            .jit("App.Log+0x20", 0x1F_E000)
            .jit("App.Main@finally+0x40", 0x1F_E040)
            .in_funclet(Funclet::Handler)
            .jit("App.Main+0x61", 0x1F_E080)
            .native(CALL_DESCR_WORKER, 0x1F_E0E0),
        calls: vec![ExampleCall::own("with a seed (C-084)").seeded("App.Log").gives(
            "App.Log+0x20, rsp 0x1fe000\n\
             App.Main+0x61, rsp 0x1fe080\n\
             marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe0e0\n",
            HResult::OK,
        )],
    }
}

fn handler_without_tracker(generation: Generation) -> Example {
    let stage = Stage::new(generation)
        .cooperative()
        .jit("App.Log+0x20", 0x1F_8000)
        .jit("App.Main@catch+0x40", 0x1F_8040)
        .in_funclet(Funclet::Handler)
        .native("CallHandler+0x30", 0x1F_8080)
        .native("IL_Throw+0x90", 0x1F_A000)
        .jit("App.Thrower+0x33", 0x1F_B000)
        .jit("App.Main+0x2c", 0x1F_B040)
        .native(CALL_DESCR_WORKER, 0x1F_B0A0)
        .frame(throw_frame(generation), 0x1F_A800, "App.Thrower");
    Example {
        id: "C-154",
        title: "A handler of which no exception tells",
        // One tells of another handler.
        stage: trackers(stage, &[handled(0x1F_8090, Some(0x1F_B0A0))]),
        calls: vec![ExampleCall::own("with a seed").seeded("App.Log").gives(
            "App.Log+0x20, rsp 0x1f8000\n\
             App.Main@catch+0x40, rsp 0x1f8040\n\
             marker: CallHandler+0x30, rsp 0x1f8080\n\
             App.Thrower+0x33, rsp 0x1fb000\n\
             App.Main+0x2c, rsp 0x1fb040\n\
             marker: CallDescrWorkerInternal+0x7c, rsp 0x1fb0a0\n",
            HResult::OK,
        )],
    }
}

const THROWING: &str = "\
    App.Thrower+0x33, rsp 0x1fe300\n\
    App.Main+0x2c, rsp 0x1fe340\n\
    marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe380\n";

fn throwing(generation: Generation) -> Stage {
    Stage::new(generation)
        .cooperative()
        .native("IL_Throw+0x90", 0x1F_D000)
        .jit("App.Thrower+0x33", 0x1F_E300)
        .jit("App.Main+0x2c", 0x1F_E340)
        .native(CALL_DESCR_WORKER, 0x1F_E380)
        .frame(throw_frame(generation), 0x1F_DA00, "App.Thrower")
}

/// An exception in its second pass; `entered`: its clause has entered managed code.
fn second_pass(generation: Generation, entered: bool) -> Example {
    let second = ExceptionTracker {
        pass: Pass::Second,
        entered_managed_code: entered,
        ..ExceptionTracker::default()
    };
    let (unseeded, outcome) =
        if entered { (THROWING, HResult::OK) } else { ("", HResult::UNMANAGED_CONTEXT) };
    let mut calls = vec![
        ExampleCall::own("unseeded").gives(unseeded, outcome),
        ExampleCall::own("with a seed (C-049)").seeded("App.Thrower").gives(THROWING, HResult::OK),
    ];
    let mut stage = trackers(throwing(generation), &[second]);
    if !entered {
        // Its registers are the seed of a walk by another thread.
        stage.rows.remove(0);
        stage.frames.clear();
        calls.push(
            ExampleCall::other("unseeded, by another thread")
                .context_flags(own_context_flags(generation))
                .gives_on_windows(generation, THROWING, HResult::OK),
        );
    }
    Example {
        id: "C-048",
        title: if entered {
            "A second pass that has entered a handler"
        } else {
            "A second pass that has entered no handler"
        },
        stage,
        calls,
    }
}

/// Only the current exception counts.
fn inner_exception_in_first_pass(generation: Generation) -> Example {
    let second = ExceptionTracker { pass: Pass::Second, ..ExceptionTracker::default() };
    Example {
        id: "C-048",
        title: "An exception in its first pass, inside another's second pass",
        stage: trackers(throwing(generation), &[ExceptionTracker::default(), second]),
        calls: vec![ExampleCall::own("unseeded").gives(THROWING, HResult::OK)],
    }
}

/// As in ExceptionUnwindFunctionEnter: a seed is ignored there.
fn preemptive_second_pass(generation: Generation) -> Example {
    let second = ExceptionTracker { pass: Pass::Second, ..ExceptionTracker::default() };
    let mut stage = trackers(throwing(generation), &[second]);
    stage.cooperative = false;
    Example {
        id: "C-049",
        title: "A second pass that has entered no handler, in preemptive mode",
        stage,
        calls: vec![
            ExampleCall::own("unseeded").gives("", HResult::UNMANAGED_CONTEXT),
            ExampleCall::own("with a seed")
                .seeded("App.Thrower")
                .gives("", HResult::UNMANAGED_CONTEXT),
            ExampleCall::other("by another thread").gives_on_windows(
                generation,
                "",
                HResult::UNMANAGED_CONTEXT,
            ),
        ],
    }
}

fn inconsistent(generation: Generation) -> Example {
    let mut stage = throwing(generation);
    stage.rows.remove(0);
    stage.exceptions.inconsistent = true;
    Example {
        id: "C-050",
        title: "Between the end of an exception and going on behind its catch",
        stage,
        calls: vec![
            ExampleCall::own("unseeded").gives("", HResult::UNSAFE),
            ExampleCall::own("with a seed").seeded("App.Thrower").gives("", HResult::UNSAFE),
            ExampleCall::other("unseeded, by another thread").gives_on_windows(
                generation,
                "",
                HResult::UNSAFE,
            ),
        ],
    }
}

/// What lies in (lower, upper] is hidden. Foo's caller SP is 0x1FE050.
fn unwound_bounds(generation: Generation) -> Vec<Example> {
    let leaf = "App.Foo+0x40, rsp 0x1fe000\n";
    let rest = "\
        marker: UMThunkStub+0x8f, rsp 0x1fe050\n\
        App.Outer+0x90, rsp 0x1fe100\n\
        marker: CallDescrWorkerInternal+0x7c, rsp 0x1fe1a0\n";
    [
        ("Unwound up to a frame: it begins with a marker (C-153)", 0x1F_E000, 0x1F_E050, true),
        ("Unwound up to just below a frame's end", 0x1F_E000, 0x1F_E04F, false),
        ("Unwound from a frame's end on", 0x1F_E050, 0x1F_E058, false),
        ("Unwound from just below a frame's end on", 0x1F_E04F, 0x1F_E058, true),
    ]
    .into_iter()
    .flat_map(|(title, lower, upper, hides)| {
        [Pass::First, Pass::Second].map(|pass| {
            let unwinding = ExceptionTracker {
                pass,
                entered_managed_code: true,
                unwound: Some((lower, upper)),
                funclet: None,
            };
            let stage = Stage::new(generation)
                .cooperative()
                .jit("App.Foo+0x40", 0x1F_E000)
                .native("UMThunkStub+0x8f", 0x1F_E050)
                .saves_all()
                .ready_to_run("App.Outer+0x90", 0x1F_E100)
                .saves_all()
                .native(CALL_DESCR_WORKER, 0x1F_E1A0)
                .frame(FrameKind::InlinedCall, 0x1F_E110, "App.Outer");
            let hides = hides && pass == Pass::Second;
            let callbacks = if hides { rest.to_owned() } else { format!("{leaf}{rest}") };
            Example {
                id: "C-086",
                title,
                stage: trackers(stage, &[unwinding]),
                calls: vec![
                    ExampleCall::own("with a seed")
                        .seeded("App.Foo")
                        .stale(if hides { 1 } else { 2 })
                        .gives(&callbacks, HResult::OK),
                ],
            }
        })
    })
    .collect()
}

/// Frames are hidden as well: without an internal stop nothing is found (C-106).
fn unwound_frame(generation: Generation) -> Example {
    let unwinding = ExceptionTracker {
        pass: Pass::Second,
        entered_managed_code: true,
        unwound: Some((0x1F_DEFF, 0x1F_DF00)),
        funclet: None,
    };
    let stage = Stage::new(generation)
        .native("ThePreStub+0x55", 0x1F_D000)
        .native(CALL_DESCR_WORKER, 0x1F_E100)
        .frame(FrameKind::PrestubMethod, 0x1F_DF00, "CallDescrWorkerInternal")
        .of_method("App.Main");
    let outcome = if is_framework_2(generation) { HResult::OK } else { HResult::FAIL };
    Example {
        id: "C-086",
        title: "A Frame with a method has been unwound",
        stage: trackers(stage, &[unwinding]),
        calls: vec![ExampleCall::own("unseeded").gives("", outcome)],
    }
}

/// Between a handler and its parent nothing is a stop, Frames with methods neither.
fn parent_not_found(generation: Generation) -> Example {
    let stage = Stage::new(generation)
        .cooperative()
        .jit("App.Main@catch+0x40", 0x1F_8040)
        .in_funclet(Funclet::Handler)
        .native("CallHandler+0x30", 0x1F_8080)
        .jit("App.Thrower+0x33", 0x1F_B000)
        .native(CALL_DESCR_WORKER, 0x1F_B040)
        .frame(FrameKind::PrestubMethod, 0x1F_A800, "App.Thrower")
        .of_method("App.Target");
    // For Framework 2 a start in managed code is enough (C-107).
    let outcome = if is_framework_2(generation) { HResult::OK } else { HResult::FAIL };
    Example {
        id: "C-081",
        title: "A handler the method of which is not on the stack",
        stage: trackers(stage, &[handled(0x1F_8080, Some(0x1F_F000))]),
        calls: vec![ExampleCall::own("with a seed").seeded("App.Main@catch").gives("", outcome)],
    }
}

/// A HelperMethodFrame that is passed over is asked where it leads to all the same.
fn unasked_frame_in_skip(generation: Generation) -> Example {
    let stage = Stage::new(generation)
        .cooperative()
        .jit("App.Main@catch+0x40", 0x1F_8040)
        .in_funclet(Funclet::Handler)
        .native("IL_Throw+0x90", 0x1F_8080)
        .jit("App.Thrower+0x33", 0x1F_B000)
        .jit("App.Main+0x2c", 0x1F_B040)
        .native(CALL_DESCR_WORKER, 0x1F_B0A0)
        .mark(FrameKind::HelperMethod, 0x1F_A800)
        .captured_in("IL_Throw", LazyFields::default());
    Example {
        id: "C-081",
        title: "A handler below a Frame that nobody has asked",
        stage: trackers(stage, &[handled(0x1F_8080, Some(0x1F_B0A0))]),
        calls: vec![ExampleCall::own("with a seed").seeded("App.Main@catch").gives(
            "App.Main+0x2c, rsp 0x1fb040\n\
             marker: CallDescrWorkerInternal+0x7c, rsp 0x1fb0a0\n",
            HResult::OK,
        )],
    }
}

fn managed_handling(generation: Generation) -> Example {
    let stage = Stage::new(generation)
        .cooperative()
        .exception_handling("System.Runtime.EH.RhThrowEx+0x80", 0x1F_D000)
        .native("IL_Throw+0x90", 0x1F_D200)
        .jit("App.Thrower+0x33", 0x1F_E300)
        .jit("App.Main+0x2c", 0x1F_E340)
        .native(CALL_DESCR_WORKER, 0x1F_E380)
        // One that lies below the caller SP is dropped, as with any managed frame.
        .mark(FrameKind::DebuggerU2MCatchHandler, 0x1F_D100)
        .frame(throw_frame(generation), 0x1F_DA00, "App.Thrower");
    Example {
        id: "C-163",
        title: "Managed code handles an exception",
        stage,
        calls: vec![
            ExampleCall::own("unseeded").gives(THROWING, HResult::OK),
            ExampleCall::own("with a seed in it: neither it nor its caller is told of")
                .seeded("System.Runtime.EH.RhThrowEx")
                .gives(THROWING, HResult::OK),
        ],
    }
}

fn only_managed_handling(generation: Generation) -> Example {
    Example {
        id: "C-163",
        title: "Nothing but managed code that handles an exception",
        stage: Stage::new(generation)
            .cooperative()
            .exception_handling("System.Runtime.EH.RhThrowEx+0x80", 0x1F_D000)
            .native(CALL_DESCR_WORKER, 0x1F_E380),
        calls: vec![
            ExampleCall::own("with a seed: it counts as an internal stop")
                .seeded("System.Runtime.EH.RhThrowEx")
                .gives("", HResult::OK),
        ],
    }
}
