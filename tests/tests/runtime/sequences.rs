//! Sequences of callbacks recorded in real CLRs, compared with what the simulated runtimes do with the programs of their
//! names.

use clr_recording::Sequence;
use clr_scenario::Scenario;
use std::collections::BTreeSet;

/// Returns the files of the fixtures in the folder of sequences, with the name inside.
fn files(end: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = clr_fixtures::all().iter().filter_map(|fixture| {
        let name = fixture.name.strip_prefix("sequences/")?;
        Some((name, fixture.text().unwrap_or_else(|| panic!("{name} is not UTF-8"))))
    });
    all.filter(move |(name, _)| name.ends_with(end))
}

/// Returns the sequences of the fixtures, ascending by name, each with its program.
pub(crate) fn sequences() -> impl Iterator<Item = (String, Scenario, Sequence)> {
    files(".txt").map(|(file, text)| {
        let recorded = Sequence::parse(text).unwrap_or_else(|error| panic!("{file}: {error}"));
        (format!("sequences/{file}"), scenario(&recorded.shape), recorded)
    })
}

fn scenario(shape: &str) -> Scenario {
    let name = format!("{shape}.kdl");
    let found = files(".kdl").find(|(file, _)| *file == name);
    let (_, text) = found.unwrap_or_else(|| panic!("there is no text of {shape}"));
    Scenario::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the rows of the table of known differences: file, runtime and reason.
fn known() -> BTreeSet<(&'static str, &'static str)> {
    let rows = files("known.tsv").flat_map(|(_, text)| text.lines());
    rows.map(|row| {
        let mut columns = row.splitn(3, '\t');
        let (Some(file), Some(runtime), Some(reason)) =
            (columns.next(), columns.next(), columns.next())
        else {
            panic!("known.tsv: {row}");
        };
        assert!(!reason.is_empty(), "{row}");
        (file, runtime)
    })
    .collect()
}

/// Tests C-176, C-177, C-178, C-179, C-180, C-181, C-182, C-183, C-184, C-185, C-186, C-187, C-188, C-189 and C-190.
#[test]
fn sequences_come_out() {
    let (mut pairs, mut wrong) = (0, Vec::new());
    let known = known();
    for (file, scenario, recorded) in sequences() {
        let file = file.trim_start_matches("sequences/");
        for runtime in &recorded.runtimes {
            pairs += 1;
            let name = &runtime.name;
            let Some(generation) = runtime.generation else { panic!("{file}: {name} is unknown") };
            let simulated = scenario.sequence_on(generation, &recorded);
            let simulated = simulated.unwrap_or_else(|error| panic!("{file} {name}: {error}"));
            let difference = recorded.compare(&simulated.lines);
            if difference.is_some() != known.contains(&(file, name.as_str())) {
                wrong.push(format!("{file} {name}: {difference:?}"));
            }
        }
    }
    assert!(pairs > 0);
    assert!(wrong.is_empty(), "{} of {pairs}: {wrong:#?}", wrong.len());
}

/// Tests that each text of a program can be read and built: other recordings than those of the fixtures need them.
#[test]
fn programs_of_sequences_are_scenarios() {
    for (name, _) in files(".kdl") {
        let shape = name.trim_end_matches(".kdl");
        let scenario = scenario(shape);
        assert!(scenario.about.shows.is_some(), "{name}");
        for generation in clr_runtime::generation::Generation::ALL {
            assert!(scenario.build_on(generation).is_ok(), "{name} on {generation}");
        }
    }
}
