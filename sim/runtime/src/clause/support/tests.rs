use super::*;
use crate::clause::entries;
use Generation::{CoreClr31Unix, Framework2, Framework4, Net10Windows};
use std::collections::BTreeSet;

/// Returns the rows of a table, each with its clause and its runtime.
fn rows(table: &'static str) -> impl Iterator<Item = (Clause, Generation, Vec<&'static str>)> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut columns = line.split('\t');
        let clause = columns.next().unwrap().parse().unwrap_or_else(|e| panic!("{line}: {e}"));
        let runtime = columns.next().and_then(Generation::from_name);
        (clause, runtime.unwrap_or_else(|| panic!("{line}")), columns.collect())
    })
}

#[test]
fn tables_have_a_row_at_most_for_each_clause_that_holds() {
    for (table, columns) in [(SHOWN, 2), (OBSERVED, 1), (READ, 1)] {
        let mut seen = BTreeSet::new();
        for (clause, runtime, rest) in rows(table) {
            assert!(clause.holds_on(runtime), "{clause} on {runtime}");
            assert!(seen.insert((clause, runtime)), "{clause} on {runtime} twice");
            let is_whole = rest.len() == columns && !rest.iter().any(|it| it.is_empty());
            assert!(is_whole, "{clause} on {runtime}: {rest:?}");
        }
    }
}

/// A source is a repository at a version with places in it, parted by semicolons: `dotnet/runtime@9d5a6a9aa463
/// src/coreclr/vm/stackwalk.cpp:12 Filter`. A line is missing if only a part of the file was at hand. Words may follow
/// that say how the place was found in the runtime itself.
#[test]
fn sources_name_version_file_and_function() {
    for (clause, runtime, rest) in rows(READ) {
        let (version, places) = rest[0].split_once(' ').unwrap_or_default();
        let version = version.split_once('@');
        let is_version = version.is_some_and(|(name, at)| name.contains('/') && !at.is_empty());
        assert!(is_version, "{clause} on {runtime}: {version:?}");
        let mut places = places.split("; ");
        let place = places.next().unwrap_or_default();
        let (file, function) = place.split_once(' ').unwrap_or_default();
        let line = file.rsplit_once(':').map_or(Ok(1), |(_, line)| line.parse::<u32>());
        let is_place = file.contains('.') && !function.is_empty() && line.is_ok();
        assert!(is_place, "{clause} on {runtime}: {place}");
        assert!(places.all(|it| it.contains(' ')), "{clause} on {runtime}: {}", rest[0]);
    }
}

#[test]
fn the_strongest_witness_counts() {
    let cells = || entries().flat_map(|entry| Generation::ALL.map(|it| (entry, it)));
    for (entry, generation) in cells() {
        let holds = entry.generations.contains(generation);
        assert_eq!(entry.support(generation).is_some(), holds, "{} {generation}", entry.clause);
    }
    for (clause, generation, rest) in rows(SHOWN) {
        let witness = Witness::Shown { recording: rest[0], bug: rest[1] };
        assert_eq!(clause.entry().unwrap().witness(generation), Some(witness));
    }
}

#[test]
fn sources_support_only_the_runtime_they_belong_to() {
    let cited = |part, generation| cited(part, generation).map(Witness::support);
    let file = "stackwalk.cpp: StackFrameIterator::NextRaw";
    assert_eq!(cited(file, CoreClr31Unix), Some(Support::Read));
    assert_eq!(cited(file, Net10Windows), None);
    assert_eq!(cited("sscli2 stackwalk.cpp", Framework2), Some(Support::Read));
    assert_eq!(cited("sscli2 stackwalk.cpp", Framework4), None);
    assert_eq!(cited("sscli2 stackwalk.cpp", CoreClr31Unix), None);
    assert_eq!(cited("dotnet/runtime pal.h", Net10Windows), None);
    assert_eq!(cited("recordings", CoreClr31Unix), None);
    assert_eq!(cited("docs: DoStackSnapshot", Net10Windows), Some(Support::Documented));
}

#[test]
fn a_result_is_supported_as_its_weakest_clause() {
    let clauses = |numbers: &[u16]| numbers.iter().copied().map(Clause::new).collect::<Vec<_>>();
    // C-006 was recorded, C-001 only read, C-148 is documented.
    let on = |numbers: &[u16], generation| Support::of(&clauses(numbers), generation);
    assert!(on(&[6], CoreClr31Unix) <= Support::Observed);
    assert_eq!(on(&[6, 1], CoreClr31Unix), Support::Read);
    assert_eq!(on(&[6, 1, 148], CoreClr31Unix), Support::Documented);
    assert_eq!(on(&[6], Framework4), Support::Assumed);
    assert_eq!(on(&[], CoreClr31Unix), Support::Read);
    assert_eq!(on(&[], Framework4), Support::Assumed);
}
