//! Methods that are inlined, or called where the profiler or its events refuse that.

use super::*;
use crate::stubs::with_refusable;
use clr_codegen::RuntimeCallKind as Call;
use clr_runtime::profiling::CallbackKind as Kind;
use clr_walker::profiling::FunctionId;
use std::borrow::Cow;

const SMALL: FunctionIndex = FunctionIndex(2);

/// Returns the callbacks about JIT compilations, and the number of calls of a method that another one inlines.
fn run(generation: Generation, events: u32, refuses: bool) -> (Vec<Kind>, usize) {
    let jit = |name, body| function(name, CodeKind::Jit, body);
    let twice = vec![runtime(Call::FirstCall, Some(1)); 2];
    let functions = vec![
        jit("App.Main", twice),
        jit("App.Work", vec![Statement::Work(1)]),
        jit("App.Small", Vec::new()),
    ];
    let inlines = BTreeMap::from([(FunctionIndex(1), vec![SMALL])]);
    let program = Program { functions, ..Program::default() };
    let program = with_refusable(Cow::Borrowed(&program), &inlines);
    let build = Build::new(&program, &BTreeMap::new(), generation).unwrap().inlining(&inlines);
    let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
    world.report_entries([SMALL]);
    // JIT_COMPILATION
    let mask = EventMask(events | 0x20);
    world.runtime().change_process(|process| process.event_mask = mask);
    let (mut callbacks, mut calls) = (Vec::new(), 0);
    loop {
        match world.step(0).unwrap() {
            StepEvent::Callback(kind) => {
                callbacks.push(kind);
                if kind == Kind::JITInlining && refuses {
                    let of_callback = world.callback_arguments(0);
                    let versions = &world.runtime().code.il_versions;
                    versions.borrow_mut().refuse_inlining(of_callback.caller, of_callback.function);
                }
            }
            StepEvent::Entered(SMALL) => calls += 1,
            StepEvent::Ended => break,
            _ => {}
        }
    }
    let small = FunctionId(crate::stubs::method_id(build.expanded().placed[SMALL.index()]));
    let callers = world.runtime().code.il_versions.borrow().inliners(small).count();
    assert_eq!(callers, usize::from(calls == 0), "{generation}");
    (callbacks, calls)
}

const WORK: [Kind; 3] =
    [Kind::JITCompilationStarted, Kind::JITInlining, Kind::JITCompilationFinished];
const SMALL_ITSELF: [Kind; 2] = [Kind::JITCompilationStarted, Kind::JITCompilationFinished];

#[test]
fn a_refused_inlining_is_a_call() {
    for generation in Generation::ALL {
        assert_eq!(run(generation, 0, false), (WORK.to_vec(), 0), "{generation}");
        let refused = [&WORK[..], &SMALL_ITSELF].concat();
        assert_eq!(run(generation, 0, true), (refused, 2), "{generation}");
    }
}

#[test]
fn two_events_refuse_all_inlining() {
    for events in [0x20_0000, 0x40_0000] {
        let compiled = [SMALL_ITSELF, SMALL_ITSELF].concat();
        assert_eq!(run(Generation::Net8Unix, events, false), (compiled, 2));
    }
}
