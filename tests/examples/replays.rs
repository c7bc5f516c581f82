//! Replays recordings and sequences: `.ci/bugs.py --shown` runs it. Prints a JSON object a line: the runtimes of each
//! clause, and the clauses that events name; then for each file and runtime the calls that came out as recorded, each
//! with the clauses that apply. A sequence is one call; one whose program there is no text of has none.

use clr_recording::vectors::decompress;
use clr_recording::{Recording, Sequence};
use clr_runtime::clause::{self, Clause, ClauseEntry};
use clr_runtime::generation::Generation;
use clr_scenario::Scenario;
use clr_tests::coverage::{replayed, replayed_sequence};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

/// Maximum size of a decompressed recording in bytes.
const LIMIT: usize = 1 << 28;

fn main() -> Result<(), Box<dyn Error>> {
    // Planted bugs panic; that is no news.
    std::panic::set_hook(Box::new(|_| {}));
    let runtimes = |entry: &ClauseEntry| entry.generations.iter().map(Generation::name).collect();
    let holds: BTreeMap<_, Vec<_>> =
        clause::entries().map(|entry| (entry.clause.number(), runtimes(entry))).collect();
    let named = clause::entries().map(|entry| entry.clause).filter(|it| it.decides_calls());
    let named: Vec<_> = named.map(Clause::number).collect();
    println!("{}", serde_json::json!({ "holds": holds, "named": named }));
    for path in std::env::args().skip(1) {
        let path = Path::new(&path);
        let bytes = fs::read(path)?;
        if path.extension().is_some_and(|end| end == "gz") {
            let recording = Recording::parse(&String::from_utf8(decompress(&bytes, LIMIT)?)?)?;
            let calls = replayed(&recording).unwrap_or_default();
            let calls = calls.iter().map(|call| (recording.walks[call.index].n, &call.clauses));
            print(path, recording.generation.name(), true, calls);
        } else {
            let recorded = Sequence::parse(&String::from_utf8(bytes)?)?;
            let program = path.with_file_name(format!("{}.kdl", recorded.shape));
            let scenario = fs::read_to_string(program).ok();
            let scenario = scenario.map(|text| Scenario::parse(&text)).transpose()?;
            for (call, runtime) in (0..).zip(&recorded.runtimes) {
                let run = || {
                    let scenario = scenario.as_ref()?;
                    replayed_sequence(scenario, &recorded, runtime).ok()?
                };
                let clauses = std::panic::catch_unwind(run).ok().flatten();
                let name = runtime.generation.map_or("", Generation::name);
                let is_last = recorded.runtimes.last() == Some(runtime);
                print(path, name, is_last, clauses.iter().map(|clauses| (call, clauses)));
            }
        }
    }
    Ok(())
}

/// Prints the line of a file on a runtime, its last one or not: its calls, each with the numbers of its clauses.
fn print<'c>(
    path: &Path,
    runtime: &str,
    is_last: bool,
    calls: impl Iterator<Item = (u32, &'c Vec<Clause>)>,
) {
    let calls = calls.map(|(call, clauses)| {
        let clauses: Vec<_> = clauses.iter().copied().map(Clause::number).collect();
        serde_json::json!([call, clauses])
    });
    let calls: Vec<_> = calls.collect();
    let line =
        serde_json::json!({ "file": path, "runtime": runtime, "last": is_last, "calls": calls });
    println!("{line}");
}
