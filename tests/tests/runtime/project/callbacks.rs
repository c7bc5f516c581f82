//! The page of callbacks: for each the sequences and the calls in it that were recorded in real CLRs.

use super::*;
use crate::sequences::sequences;
use clr_recording::SequenceLine;

const PAGE: &str = "sim/src/book/callbacks.md";

/// Returns the numbers of recorded sequences, a runtime each, that have a callback and come out.
fn by_sequences() -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (_, scenario, recorded) in sequences() {
        let names = recorded.lines.iter().filter_map(|line| match line {
            SequenceLine::Callback(callback) => Some(callback.name.clone()),
            SequenceLine::Request(_) => None,
        });
        let names: BTreeSet<_> = names.collect();
        let comes_out = |generation: Generation| {
            let simulated = scenario.sequence_on(generation, &recorded);
            simulated.is_ok_and(|simulated| recorded.compare(&simulated.lines).is_none())
        };
        let generations = recorded.runtimes.iter().filter_map(|runtime| runtime.generation);
        let passing = generations.filter(|generation| comes_out(*generation)).count();
        for name in names {
            *counts.entry(name).or_insert(0) += passing;
        }
    }
    counts
}

/// Returns the evidence of a callback that is raised.
fn evidence(name: &str, sequences: &BTreeMap<String, usize>) -> String {
    let is_in = |call: &&RecordedCall| {
        let situation = call.situation.strip_prefix("callback:").unwrap_or_default();
        situation.split(':').next() == Some(name)
    };
    match (sequences.get(name).copied().unwrap_or(0), measured().recorded().filter(is_in).count()) {
        (0, 0) => "assumed".to_owned(),
        (0, calls) => format!("{calls} calls"),
        (order, 0) => format!("{order} sequences"),
        (order, calls) => format!("{order} sequences, {calls} calls"),
    }
}

#[test]
fn the_page_of_callbacks_says_where_each_was_observed() {
    let page = read(PAGE);
    let sequences = by_sequences();
    let (mut found, mut raised, mut assumed) = (String::new(), 0, 0);
    for line in page.lines() {
        let cells: Vec<_> = line.splitn(4, " | ").collect();
        let name = line.strip_prefix("| `").and_then(|rest| rest.split('`').next());
        match (name, cells.as_slice()) {
            (Some(name), [begin, word @ ("yes" | "no"), _, arguments]) => {
                let seen =
                    if *word == "yes" { evidence(name, &sequences) } else { "–".to_owned() };
                raised += usize::from(*word == "yes");
                assumed += usize::from(seen == "assumed");
                writeln!(found, "{begin} | {word} | {seen} | {arguments}").unwrap();
            }
            _ => writeln!(found, "{line}").unwrap(),
        }
    }
    assert!(raised > 60 && assumed < 12, "{raised} are raised, {assumed} of them assumed");
    if std::env::var_os("CLR_BLESS").is_some() {
        fs::write(path(PAGE), &found).unwrap();
    }
    assert_eq!(found, read(PAGE), "CLR_BLESS=1 writes it anew");
}
