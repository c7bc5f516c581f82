//! Checks of nodes that others exclude, need, or define twice. Problems are reported at the node
//! that comes later.

use crate::model::{RaisedBy, SeedSource};
use crate::text::document::{Literal, Node, named};
use crate::text::grammar::Level;
use crate::text::keywords::Keyword as _;
use crate::text::parse::Problems;
use crate::text::problem::ProblemKind;
use crate::{Scenario, ScenarioThread};
use clr_runtime::profiling::CallbackKind;
use std::collections::BTreeSet;

/// Checks the order and number of nodes, and adds the thread of a text that has none.
pub(super) fn check(scenario: &mut Scenario, nodes: &[Node<'_>], problems: &mut Problems) {
    kinds(scenario, nodes, problems);
    previous_stops(scenario, nodes, problems);
    for profiler in named(nodes, "profiler") {
        names_of_profiler(profiler, problems);
        callbacks(scenario, profiler, problems);
    }
    if scenario.threads.is_empty() && scenario.stack.is_none() {
        scenario.threads.push(ScenarioThread::main());
    }
}

/// Reports nodes of programs beside a stack, and calls on a stack that is not there.
fn kinds(scenario: &Scenario, nodes: &[Node<'_>], problems: &mut Problems) {
    let is_of_both = |name: &str| {
        matches!(name, "shows" | "tag" | "module" | "stack" | "snapshot" | "mixed-walk")
    };
    if scenario.stack.is_some() {
        let rule = |node: &Node<'_>| {
            let name = Level::Text.node(&node.name.text)?.name;
            (!is_of_both(name)).then_some((name, node.name.span))
        };
        if let Some((name, span)) = nodes.iter().find_map(rule) {
            problems.push((span, ProblemKind::Excluded("stack", name)));
        }
        return;
    }
    for node in named(nodes, "snapshot").chain(named(nodes, "mixed-walk")) {
        problems.push((node.name.span, ProblemKind::SnapshotOfNothing));
    }
}

/// Reports seeds from the previous stop of a thread that has none.
fn previous_stops(scenario: &Scenario, nodes: &[Node<'_>], problems: &mut Problems) {
    let mut stopped = BTreeSet::new();
    for (stop, node) in scenario.stops.iter().zip(named(nodes, "stop")) {
        for (call, node) in stop.snapshots.iter().zip(named(node.children(), "snapshot")) {
            let is_stale = call.seed.as_ref().is_some_and(|seed| seed.from == SeedSource::Stale);
            if let Some(walked) = stop.walks(call).filter(|_| is_stale)
                && (stop.place_of(walked).is_none() || !stopped.contains(&walked))
            {
                problems.push((node.name.span, ProblemKind::NoPreviousStop));
            }
        }
        stopped.insert(stop.thread);
    }
}

/// Reports names of the profiler that are empty or defined twice. Threads have names of their own.
fn names_of_profiler(profiler: &Node<'_>, problems: &mut Problems) {
    let mut names = BTreeSet::new();
    for node in profiler.children() {
        let kind = match &*node.name.text {
            "thread" => "thread",
            "lock" | "event" => "",
            _ => continue,
        };
        // Names of program threads are checked against these with the other rules.
        for name in node.args().filter_map(Literal::text) {
            if name.is_empty() || !names.insert((kind, name)) {
                problems.push((node.name.span, ProblemKind::ProfilerName));
            }
        }
    }
}

/// Reports callbacks that the profiler has twice, and those that nothing in the text raises.
fn callbacks(scenario: &Scenario, profiler: &Node<'_>, problems: &mut Problems) {
    let mut seen = BTreeSet::new();
    for node in named(profiler.children(), "on") {
        let word = node.args().next().and_then(Literal::text);
        let Some(kind) = word.and_then(CallbackKind::from_word) else { continue };
        if !seen.insert(kind.name()) {
            problems.push((node.name.span, ProblemKind::DuplicateCallback(kind.name())));
        }
        if let Some(needed) = RaisedBy::of(kind).filter(|needed| !needed.is_in(scenario)) {
            let callback = kind.name();
            problems.push((node.name.span, ProblemKind::NeverRaised { callback, needed }));
        }
    }
}
