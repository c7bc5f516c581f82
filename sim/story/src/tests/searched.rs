//! Tests of the hazards of interleavings that a search finds.

use super::*;
use crate::failure_story;
use clr_codegen::{
    CodeKind, Exit, Function, FunctionIndex, FunctionShape, Program, ReturnForm, Statement,
};
use clr_explore::{Failure, Limits};
use clr_runtime::generation::Generation;
use clr_walker::profiling::{
    ProfilerInfo as _, SnapshotFlags, SnapshotFrame, SnapshotRequest, TargetThread as _,
};
use clr_world::ThreadStart;

/// Creates a process without a program.
pub(super) fn nothing() -> TestedProcess {
    of(Generation::CoreClr31Windows, &Program::default(), &[])
}

fn of(generation: Generation, program: &Program, threads: &[(&str, ThreadStart)]) -> TestedProcess {
    let (methods, hooks) = Default::default();
    TestedProcess::new(program, &methods, hooks, generation, threads).unwrap()
}

/// Creates a process whose main thread executes this.
fn executing(body: Vec<Statement>) -> TestedProcess {
    let main = Function {
        name: "Main".to_owned(),
        kind: CodeKind::Jit,
        shape: FunctionShape::default(),
        body,
        end: Some(Exit::Return(ReturnForm::Ret)),
    };
    let program = Program { functions: vec![main], ..Program::default() };
    let main = ("Main", ThreadStart::Managed(FunctionIndex(0)));
    of(Generation::CoreClr31Windows, &program, &[main])
}

#[test]
fn what_a_profiler_reports_fails_with_its_hazard() {
    type Reports = fn(&CurrentThread<'_, '_>);
    let reports: [(Reports, &str, Hazard); 3] = [
        (
            |me| me.report_false_frame(),
            "a reported frame is not on the stack",
            Hazard::StaleContext,
        ),
        (
            |me| me.report_wrong_seed(),
            "a frame of a walk from a seed is not on the stack",
            Hazard::BogusSeed,
        ),
        (
            |me| me.report_false_claim(),
            "a walk claims to have the whole stack, and has not",
            Hazard::ValueInSlot,
        ),
    ];
    for (report, words, hazard) in reports {
        let load = |setup: &mut Setup<'_>| setup.thread("sampler", report);
        let failure = check(&nothing(), &load, &Budget::random(0, 1)).unwrap().failure.unwrap();
        let expected = Verdict::Failed { by: MAIN, words: words.to_owned() };
        assert_eq!(failure.verdict, expected);
        assert_eq!(Hazard::of(&failure.verdict, &failure.history), Some(hazard));
    }
}

/// Walks the main thread. The callback leaves the walk by a jump if it `escapes`.
fn walks(me: &CurrentThread<'_, '_>, escapes: bool) -> bool {
    let id = me.target(MAIN).unwrap().id();
    let mut callback = |_: &mut SnapshotFrame<'_>| {
        if !escapes {
            return HResult::OK;
        }
        me.escape();
        assert!(me.escapes());
        HResult::FALSE
    };
    let (callback, flags) = (Some(&mut callback as _), SnapshotFlags::DEFAULT);
    id.0 != 0 && me.info().do_stack_snapshot(&SnapshotRequest::of(id, flags), callback) == Ok(())
}

#[test]
fn a_thread_whose_walk_was_left_by_a_jump_stays_suspended() {
    let process = executing(vec![Statement::Work(60)]);
    let failures = |escapes: bool| {
        let load = move |setup: &mut Setup<'_>| {
            setup.thread("sampler", move |me| {
                // Outside of a callback there is nothing to leave.
                me.escape();
                assert!(!me.escapes());
                me.point();
                let walked = walks(me, escapes);
                assert!(!walked || !escapes);
                me.escape();
                assert!(!me.escapes(), "the callback is over");
            });
        };
        let limits = Limits { instructions: 5, ..Limits::default() };
        let budget = Budget { keep_going: true, limits, ..Budget::random(1, 100) };
        let report = check(&process, &load, &budget).unwrap();
        let hazard = |failure: &Failure| Hazard::of(&failure.verdict, &failure.history);
        report.failures().filter_map(hazard).collect::<Vec<_>>()
    };
    assert!(failures(true).contains(&Hazard::CallbackEscapes));
    assert!(!failures(false).contains(&Hazard::CallbackEscapes));
}

#[test]
fn an_unwinder_in_a_handler_that_interrupts_it_is_the_hazard_of_handlers() {
    let process = of(Generation::Net9Unix, &Program::default(), &[]);
    let load = |setup: &mut Setup<'_>| {
        setup.on_signal(|me| me.unwind());
        setup.thread("unwinds", |me| me.unwind());
        setup.thread("sends", |me| me.signal(MAIN));
    };
    let failure = check(&process, &load, &Budget::random(0, 200)).unwrap().failure.unwrap();
    assert_eq!(Hazard::of(&failure.verdict, &failure.history), Some(Hazard::SignalHandler));
}

/// The story of a broken rule ends where it was broken, and not where the interleaving ends.
#[test]
fn stories_of_broken_rules_end_there() {
    let load = |setup: &mut Setup<'_>| {
        setup.thread("worker", |me| me.point());
        setup.thread("sampler", |me| {
            let worker = me.target(MAIN).unwrap();
            if worker.suspend().is_ok() {
                me.allocate();
                worker.resume().unwrap();
                me.log();
            }
        });
    };
    let budget = Budget::exhaustive(1_000).with_rules();
    let text = failure_story(&check(&nothing(), &load, &budget).unwrap());
    let breach = "breaks a rule: no memory may be allocated while a thread is suspended";
    let (_, after) = text.split_once(&format!(" {breach}\n")).unwrap();
    let (steps, _) = after.split_once("stack: ").unwrap();
    assert!(text.contains("suspends worker") && text.matches(breach).count() == 2, "{text}");
    assert!(!steps.contains("resumes") && !steps.contains("logs"), "{text}");
}
