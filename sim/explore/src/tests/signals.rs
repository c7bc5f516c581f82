//! Tests of signals that find a thread in a wait of the runtime.

use super::{function, on};
use crate::{
    BlockReason, Budget, Hazard, Report, Setup, TestedProcess, ThreadIndex, Verdict, check,
};
use clr_codegen::{
    CallingConvention, CodeKind, Function, FunctionIndex, Program, RuntimeCall, RuntimeCallKind,
    Statement,
};
use clr_runtime::generation::Generation;
use clr_walker::profiling::ProfilerInfo as _;
use clr_world::ThreadStart;

const MAIN: ThreadIndex = ThreadIndex(0);

/// Creates a process in which a thread makes a GC while another one computes.
fn collecting(generation: Generation) -> TestedProcess {
    // The table of a ready-to-run image is looked up in cooperative mode.
    let collect = RuntimeCall { kind: RuntimeCallKind::Collect, target: None };
    let work = vec![Statement::Loop(200, vec![Statement::Work(50)])];
    let main = Function { kind: CodeKind::ReadyToRun, ..function("Main", work) };
    let collects = function("Gc", vec![Statement::Runtime(collect)]);
    let threads = [("main", 0), ("gc", 1)];
    let threads = threads.map(|(name, start)| (name, ThreadStart::Managed(FunctionIndex(start))));
    let functions = vec![main, collects];
    let convention = CallingConvention::SystemV;
    on(generation, &Program { convention, functions, ..Program::default() }, &threads)
}

/// Searches with a handler of signals that asks the runtime, or that asks nothing.
fn search(process: &TestedProcess, asks: bool) -> Report {
    let load = move |setup: &mut Setup<'_>| {
        setup.on_signal(move |me| {
            if asks {
                let main = me.target(MAIN).unwrap().top_managed();
                let _ = me.info().get_function_from_ip(main.map_or(0, |main| main.rip));
            } else {
                me.say("handled");
            }
        });
        setup.thread("sampler", |me| {
            for _ in 0..5 {
                me.sleep(1_000);
                me.signal(MAIN);
            }
        });
    };
    let histories = if asks { 1_000 } else { 50 };
    check(process, &load, &Budget::random(0, histories)).unwrap()
}

/// A handler that needs the end of the suspension waits for itself.
#[track_caller]
fn waits_for_itself(generation: Generation) {
    let process = collecting(generation);
    assert!(search(&process, false).survives(), "{generation}");
    let failure = search(&process, true).failure.unwrap();
    let hazard = Hazard::of(&failure.verdict, &failure.history);
    assert_eq!(hazard, Some(Hazard::AskedInHandler), "{generation}");
    let Verdict::Deadlock(edges) = failure.verdict else { panic!("{:?}", failure.verdict) };
    let edges: Vec<_> = edges.iter().map(|edge| (edge.waits, edge.why, edge.for_whom)).collect();
    assert_eq!(edges, [(MAIN, BlockReason::InterruptedWait, MAIN)], "{generation}");
}

pub(super) fn in_a_suspension() {
    waits_for_itself(Generation::Net9Unix);
}

#[test]
fn a_handler_that_asks_the_runtime_in_a_suspension_waits_for_itself() {
    for generation in Generation::ALL.into_iter().filter(|generation| generation.is_unix()) {
        waits_for_itself(generation);
    }
}
