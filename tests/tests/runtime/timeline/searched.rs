//! Test of a drawn interleaving that a search has found.

use super::*;
use crate::timeline::rows::drawn;
use clr_codegen::Program;
use clr_explore::{Budget, TestedProcess, Verdict, check};
use clr_runtime::generation::Generation;
use clr_world::stubs::Hooks;
use std::collections::BTreeMap;

#[test]
fn a_found_deadlock_has_a_timeline() {
    let generation = Generation::CoreClr31Windows;
    let process = TestedProcess::new(
        &Program::default(),
        &BTreeMap::new(),
        Hooks::default(),
        generation,
        &[],
    );
    let report = check(
        &process.unwrap(),
        &|profiler| {
            let (names, stacks) = (profiler.lock("names"), profiler.lock("stacks"));
            profiler.thread("sampler", move |me| {
                let _stacks = me.lock(stacks);
                let _names = me.lock(names);
            });
            profiler.thread("exporter", move |me| {
                let _names = me.lock(names);
                let _stacks = me.lock(stacks);
            });
        },
        &Budget::exhaustive(1000),
    );
    let failure = report.unwrap().failure.unwrap();
    let Verdict::Deadlock(edges) = &failure.verdict else { panic!("{:?}", failure.verdict) };
    let timeline = Timeline {
        history: &failure.history,
        title: "two locks",
        ending: "deadlock",
        edges,
        replay: None,
        facts: &[],
    };
    let rows = drawn(&timeline, RowOptions::default());
    for reported in [
        "sampler  ┄ waits for the profiler's lock \"names\", which is owned by ┄▷ exporter",
        "exporter ┄ waits for the profiler's lock \"stacks\", which is owned by ┄▷ sampler",
        "has to wait for the profiler's lock\n",
        "waits for the profiler's lock \"stacks\"  owns the profiler's lock \"names\"",
        "profiler: exporter",
    ] {
        assert!(rows.contains(reported), "{reported}:\n{rows}");
    }
    // Both threads wait at the end, each for the other.
    let page = timeline.page();
    assert!(page.contains(r#""edges":[[1,"#) && page.contains(r#""edges":[[0,"#), "{page}");
}
