//! Traces of the recorder (`mode=calls`, `walker/recorder/src/calls`), and their differences.

use super::*;
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// A callback of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Callback {
    /// The name of the callback, and its subject.
    pub(crate) title: String,
    /// Number of calls that were made in it.
    pub(crate) calls: usize,
    /// The walks that are written for it.
    walks: Vec<String>,
    /// The answers of other calls that are written for it: call, answer.
    answers: Vec<(String, String)>,
}

impl Callback {
    fn name(&self) -> &str {
        self.title.split(' ').next().unwrap_or_default()
    }
}

/// Reads a trace.
pub(crate) fn read(text: &str) -> Vec<Callback> {
    let mut callbacks: Vec<Callback> = Vec::new();
    for line in text.lines() {
        let Some(line) = line.strip_prefix("  ") else {
            let (title, calls) = line.split_once(" (").expect("a callback");
            let calls = calls.strip_suffix(" calls)").unwrap().parse().unwrap();
            let title = title.to_owned();
            callbacks.push(Callback { title, calls, walks: Vec::new(), answers: Vec::new() });
            continue;
        };
        let last = callbacks.last_mut().expect("a callback is first");
        let (call, answer) = line.split_once(": ").expect("a call and its answer");
        if call.starts_with("DoStackSnapshot") && call != "DoStackSnapshot(NULL, 2)" {
            last.walks.push(line.to_owned());
        } else {
            last.answers.push((call.to_owned(), answer.to_owned()));
        }
    }
    callbacks
}

/// The comparison of two traces.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// Number of callbacks that both have, in the same order.
    pub(crate) callbacks: usize,
    /// Number of calls in these.
    pub(crate) calls: usize,
    /// The differences, a line each.
    pub(crate) differences: Vec<String>,
}

/// Compares the trace of a CLR with one of the simulated runtime.
pub(crate) fn compare(real: &[Callback], simulated: &[Callback]) -> Comparison {
    let titles = |trace: &[Callback]| -> Vec<String> {
        trace.iter().map(|callback| callback.title.clone()).collect()
    };
    let mut found = Comparison::default();
    let mut only = |side: &str, callbacks: &[Callback]| {
        let lines = callbacks.iter().map(|callback| format!("only {side}: {}", callback.title));
        found.differences.extend(lines);
    };
    let mut both = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &titles(real), &titles(simulated)) {
        let (_, old, new) = op.as_tag_tuple();
        if let DiffOp::Equal { .. } = op {
            both.extend(real[old].iter().zip(&simulated[new]));
        } else {
            only("in the CLR", &real[old]);
            only("simulated", &simulated[new]);
        }
    }
    for (real, simulated) in &both {
        found.callbacks += 1;
        found.calls += real.calls;
        let title = &real.title;
        if real.walks != simulated.walks {
            let walks = |walks: &[String], others: &[String]| {
                let missing = walks.iter().filter(|walk| !others.contains(walk));
                missing.cloned().collect::<Vec<_>>().join(", ")
            };
            let (in_clr, other) =
                (walks(&real.walks, &simulated.walks), walks(&simulated.walks, &real.walks));
            found.differences.push(format!("{title}: [{in_clr}], simulated [{other}]"));
        }
        if real.calls != simulated.calls {
            let (in_clr, other) = (real.calls, simulated.calls);
            found.differences.push(format!("{title}: {in_clr} calls, simulated {other}"));
        }
    }
    let names: BTreeSet<&str> = both.iter().map(|(real, _)| real.name()).collect();
    let (in_clr, other) = (answers(real), answers(simulated));
    for ((name, call), answers) in &in_clr {
        let simulated = other.get(&(*name, *call));
        if names.contains(name) && simulated != Some(answers) {
            let simulated = simulated.cloned().unwrap_or_default();
            found.differences.push(format!("{name}, {call}: {answers:?}, simulated {simulated:?}"));
        }
    }
    let more = other.keys().filter(|key| names.contains(key.0) && !in_clr.contains_key(key));
    found.differences.extend(more.map(|(name, call)| format!("{name}, {call}: only simulated")));
    found
}

/// Returns the answers of each call in callbacks of each name. Walks are not in it.
fn answers(trace: &[Callback]) -> BTreeMap<(&str, &str), BTreeSet<&str>> {
    let mut answers: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for callback in trace {
        for (call, answer) in &callback.answers {
            answers.entry((callback.name(), &**call)).or_default().insert(&**answer);
        }
    }
    answers
}
