//! Tests that sleeping steps leave out no order of a call of the runtime and a program's steps.

use super::executing_on;
use crate::{
    CurrentThread, Exhaustive, Explorer, HistoryDetail, Limits, Search as _, Setup, TestedProcess,
    ThreadIndex,
};
use clr_codegen::{RuntimeCall, RuntimeCallKind, Statement};
use clr_runtime::generation::Generation;
use clr_walker::profiling::{
    HResult, ProfilerInfo as _, SnapshotFlags, SnapshotFrame, TargetThread as _,
};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

const MAIN: ThreadIndex = ThreadIndex(0);

/// The results of a profiler's calls, which depend on the order.
type Results = Rc<RefCell<Vec<u64>>>;

/// Returns the results of all histories, by a search with or without sleeping steps.
fn results(
    process: &TestedProcess,
    instructions: u32,
    sleeping: bool,
    calls: fn(&CurrentThread<'_, '_>, &Results),
) -> BTreeSet<Vec<u64>> {
    let log = Results::default();
    let load = |setup: &mut Setup<'_>| {
        log.take();
        let log = Rc::clone(&log);
        setup.thread("sampler", move |me| calls(me, &log));
    };
    let mut explorer = Explorer::new(process).unwrap();
    // With bounded preemptions nothing sleeps.
    let mut search = Exhaustive::new((!sleeping).then_some(u32::MAX));
    let limits = Limits { instructions, ..Limits::default() };
    let (mut found, mut cut, mut number) = (BTreeSet::new(), 0, 0);
    while search.begin(number) {
        let ending = explorer.run(&load, &mut search, limits, HistoryDetail::Nothing);
        assert_eq!(ending.verdict, None);
        let now = search.covered().unwrap().cut;
        if now == cut {
            found.insert(log.borrow().clone());
        }
        cut = now;
        number += 1;
        assert!(number < 200_000, "too many");
    }
    found
}

/// Checks that both searches find the same results, and more than one.
#[track_caller]
fn same(process: &TestedProcess, instructions: u32, calls: fn(&CurrentThread<'_, '_>, &Results)) {
    let all = results(process, instructions, false, calls);
    assert!(all.len() > 1, "{all:?}");
    assert_eq!(results(process, instructions, true, calls), all);
}

/// Returns the result of a walk of the program's thread: the ips of its frames.
fn walk(me: &CurrentThread<'_, '_>, log: &Results) {
    let id = me.target(MAIN).unwrap().id();
    let mut callback = |frame: &mut SnapshotFrame<'_>| {
        log.borrow_mut().push(frame.ip);
        HResult::OK
    };
    let flags = SnapshotFlags::DEFAULT;
    let walked = me.info().do_stack_snapshot(id, Some(&mut callback), flags, 0, None, 0);
    log.borrow_mut().push(walked.is_ok().into());
}

/// A thread is walked at each of its places.
pub(super) fn walks() {
    let work = vec![Statement::Work(6)];
    let process = executing_on(Generation::CoreClr31Windows, &[("Main", work)]);
    same(&process, 40, walk);
}

#[test]
fn a_walk_depends_on_the_steps_of_its_target() {
    walks();
}

/// The runtime is suspended before or after a thread has returned to managed code.
pub(super) fn suspensions() {
    let sleep = RuntimeCall { kind: RuntimeCallKind::Sleep, target: None };
    let body = vec![Statement::Runtime(sleep)];
    let process = executing_on(Generation::Net9Unix, &[("Main", body)]);
    same(&process, 2_000, |me, log| {
        if me.info().suspend_runtime().is_ok() {
            let top = me.target(MAIN).unwrap().top_managed();
            log.borrow_mut().push(top.map_or(0, |registers| registers.rip));
            me.info().resume_runtime().unwrap();
        }
    });
}

#[test]
fn a_suspension_of_the_runtime_depends_on_the_steps_of_all_threads() {
    suspensions();
}
