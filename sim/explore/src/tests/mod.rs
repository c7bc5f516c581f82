mod accesses;
mod actions;
mod contents;
mod counting;
mod detached;
mod determinism;
mod drawn;
mod endings;
mod events;
mod exports;
mod faults;
mod footprints;
mod kernels;
mod noted;
mod objects;
mod parts;
mod places;
mod priorities;
mod program;
mod questions;
mod reasons;
mod reports;
mod rules;
mod schedules;
mod searches;
mod signals;
mod states;
mod threads;
mod turns;
mod unwinding;
mod verdicts;
mod waiting;

use crate::explorer::Explorer;
use crate::kernel::Kernel;
use crate::lock::LockState;
use crate::state::{Activity, State, Thread, Waiting};
use crate::tests::kernels::{ONE, THREE, TWO, begin, coroutine, only, wait};
use crate::tests::states::{activity, build, kernel};
use crate::{
    BlockReason, Budget, Choice, ConditionVariable, Contents, Coverage, CurrentThread, Edge,
    Ending, EventObject, Exhaustive, Failure, Footprint, Guided, History, HistoryDetail,
    Interleavings, Interruption, Limits, LockKind, LockName, NotALine, NotedHistory, NotingSearch,
    Observer, Pct, ProcessState, ProfilerLock, ProfilerRule, Progress, Random, RemoteSearch,
    ReplaySearch, Report, ScheduleString, Search, Setup, Step, Strategy, TestedProcess,
    ThreadIndex, ThreadKind, Turn, TurnEvent, Verdict, answer, check,
};
use clr_codegen::{
    CallingConvention, CodeKind, Exit, Function, FunctionIndex, FunctionShape, Program, ReturnForm,
    RuntimeCall, RuntimeCallKind, Statement,
};
use clr_coroutine::{Id, Stacks, scope};
use clr_generate::Seeded;
use clr_runtime::generation::Generation;
use clr_runtime::profiling::CallbackKind;
use clr_runtime::{Lock, OsThreadId, Outcome, Suspension, Wait};
use clr_walker::profiling::{
    CallError, CodeRange, EventMask, HResult, ProfilerInfo as _, SnapshotCallback, SnapshotFlags,
    SnapshotFrame, SnapshotRequest, StackRoot, TargetThread, ThreadId,
};
use clr_world::ThreadStart;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Creates a process without a program.
fn nothing() -> TestedProcess {
    of(&Program::default(), &[])
}

fn of(program: &Program, threads: &[(&str, ThreadStart)]) -> TestedProcess {
    on(Generation::CoreClr31Windows, program, threads)
}

fn on(generation: Generation, program: &Program, threads: &[(&str, ThreadStart)]) -> TestedProcess {
    let (methods, hooks) = Default::default();
    TestedProcess::new(program, &methods, hooks, generation, threads).unwrap()
}

fn function(name: &str, body: Vec<Statement>) -> Function {
    Function {
        name: name.to_owned(),
        kind: CodeKind::Jit,
        shape: FunctionShape::default(),
        body,
        end: Some(Exit::Return(ReturnForm::Ret)),
    }
}

/// Creates a process with a thread for each of these function bodies.
fn executing(bodies: &[(&str, Vec<Statement>)]) -> TestedProcess {
    executing_on(Generation::CoreClr31Windows, bodies)
}

fn executing_on(generation: Generation, bodies: &[(&str, Vec<Statement>)]) -> TestedProcess {
    let functions = bodies.iter().map(|(name, body)| function(name, body.clone())).collect();
    let starts = bodies.iter().enumerate();
    let starts: Vec<_> = starts
        .map(|(index, (name, _))| (*name, ThreadStart::Managed(FunctionIndex(index as u32))))
        .collect();
    let convention = if generation.is_unix() {
        CallingConvention::SystemV
    } else {
        CallingConvention::default()
    };
    on(generation, &Program { convention, functions, ..Program::default() }, &starts)
}

type Load<'p> = dyn Fn(&mut Setup<'p>) + 'p;

fn search(load: &Load<'_>, budget: &Budget) -> Report {
    check(&nothing(), load, budget).unwrap()
}

/// Returns the verdict of the first interleaving of profiler code that fails, or `None` if all interleavings
/// succeed.
fn verdict(load: &Load<'_>) -> Option<Verdict> {
    let report = search(load, &Budget::exhaustive(100_000));
    assert!(report.failure.is_some() || report.covered.unwrap().everything);
    report.failure.map(|failure| failure.verdict)
}

/// Returns the edges of a deadlock as pairs of the waiting thread and the thread waited for.
fn cycle(verdict: Option<Verdict>) -> Vec<(u32, u32)> {
    let Some(Verdict::Deadlock(edges)) = verdict else { panic!("{verdict:?}") };
    let mut pairs: Vec<_> = edges.iter().map(|edge| (edge.waits.0, edge.for_whom.0)).collect();
    pairs.sort_unstable();
    pairs
}

/// Explores all interleavings to the end, whatever their outcomes. Returns the numbers of complete and
/// of abandoned interleavings.
fn all(
    process: &TestedProcess,
    load: &Load<'_>,
    mut search: impl Search,
    mut ended: impl FnMut(Ending),
) -> (u64, u64) {
    let mut explorer = Explorer::new(process).unwrap();
    let (mut count, mut cut) = (0, 0);
    while search.begin(count) {
        let ending = explorer.run(load, &mut search, Limits::default(), HistoryDetail::Nothing);
        search.end(&ending);
        let now = search.progress().covered.unwrap().cut;
        if now == cut {
            ended(ending);
        }
        cut = now;
        count += 1;
        assert!(count < 3_000_000, "too many");
    }
    (count - cut, cut)
}

/// Returns the number of interleavings, up to the order of independent steps.
fn count(load: &Load<'_>) -> u64 {
    all(&nothing(), load, Exhaustive::new(None).to_each_end(), drop).0
}

/// Returns the outcomes of all interleavings in the words of `tell`: `each_step` searches for steps, not for interleavings.
fn outcomes(
    load: &Load<'_>,
    each_step: bool,
    tell: impl Fn(Option<Verdict>) -> String,
) -> BTreeSet<String> {
    if each_step {
        outcomes_of(Exhaustive::new(None).to_each_end(), load, tell).0
    } else {
        outcomes_of(Interleavings::new(None), load, tell).0
    }
}

/// Returns the outcomes of a search, and the number of its interleavings.
fn outcomes_of(
    search: impl Search,
    load: &Load<'_>,
    tell: impl Fn(Option<Verdict>) -> String,
) -> (BTreeSet<String>, u64) {
    let mut found = BTreeSet::new();
    let (whole, cut) = all(&nothing(), load, search, |ending| {
        found.insert(tell(ending.verdict));
    });
    (found, whole + cut)
}
