//! The texts of the gallery whose interleavings are searched: which hazards have a profiler that falls
//! in and one that does not. The searches themselves are run with the main command, whose output a
//! test of `clrsim` compares with the README.

use super::*;
use clr_story::Hazard;
use std::fmt::Write as _;

/// Numbers of all hazards of suspensions and locks.
const OF_LOCKS: core::ops::RangeInclusive<u8> = 1..=13;

/// Rows of the gallery's chapter about locks that suspended threads own; all that can be
/// reproduced.
const FIELD_OF_LOCKS: [u8; 11] = [3, 14, 17, 27, 36, 37, 38, 39, 40, 47, 53];

fn searched(name: &str) -> Option<&'static Scenario> {
    let (_, _, scenario) = gallery().find(|(file, ..)| *file == name)?;
    (!scenario.explore.is_empty()).then_some(scenario)
}

const fn survives(end: ExpectedEnd) -> bool {
    matches!(end, ExpectedEnd::Survives { .. })
}

/// Checks a text that runs into a hazard, and the one that avoids it. The latter must survive the
/// same search wherever the first one fails, and another search to its end.
fn pair(name: &str, hazard: Option<Hazard>) -> Result<(), &'static str> {
    let falls = searched(name).ok_or("nothing is searched")?;
    let avoided = name.replace(".kdl", "-avoided.kdl");
    let avoids = searched(&avoided).ok_or("no text avoids it")?;
    let (search, same) = (&falls.explore[0], &avoids.explore[0]);
    if (search.by, search.seed, search.instructions) != (same.by, same.seed, same.instructions)
        || search.schedules > same.schedules
    {
        return Err("the text that avoids it has another search");
    }
    let mut ever = false;
    for generation in Generation::ALL {
        let Some((_, expected)) = search.expected_on(generation) else { continue };
        if survives(expected.ends) {
            continue;
        }
        ever = true;
        if hazard.is_some() && expected.hazard != hazard {
            return Err("the text is not an instance of the hazard");
        }
        if same.expected_on(generation).is_none() {
            return Err("the text that avoids it is not searched where the other one fails");
        }
    }
    if !ever {
        return Err("the text never fails");
    }
    let mut expected = avoids.explore.iter().flat_map(|explore| &explore.expect);
    if !expected.clone().all(|expected| survives(expected.ends)) {
        return Err("the text that avoids it fails");
    }
    let everything = ExpectedEnd::Survives { everything: true };
    if !expected.any(|expected| expected.ends == everything) {
        return Err("no search is exhaustive");
    }
    Ok(())
}

#[test]
fn hazards_of_locks_have_a_profiler_that_falls_in_and_one_that_does_not() {
    let hazards = OF_LOCKS.map(|number| {
        let hazard = Hazard::ALL.into_iter().find(|hazard| hazard.number() == number);
        (format!("hazards/h-{number:02}-"), Some(hazard.unwrap()))
    });
    let field = FIELD_OF_LOCKS.map(|number| (format!("field/g{number:02}-"), None));
    let mut problems = String::new();
    for (start, hazard) in hazards.chain(field) {
        let names = clr_fixtures::gallery().iter().map(|fixture| fixture.name);
        let mut names = names
            .filter(|name| name.starts_with(&start) && !name.ends_with("-avoided.kdl"))
            .filter(|name| hazard.is_some() || searched(name).is_some())
            .peekable();
        if names.peek().is_none() {
            writeln!(problems, "{start}: no such text").unwrap();
        }
        for name in names {
            if let Err(problem) = pair(name, hazard) {
                writeln!(problems, "{name}: {problem}").unwrap();
            }
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}

/// The texts about signals and hijacked returns, in which only the profiler differs from the text
/// that avoids the hazard.
const SAME_PROGRAM: [&str; 4] = [
    "h-22-a-walk-keeps-a-return-from-being-hijacked",
    "h-28-a-handler-in-the-native-unwinder",
    "h-31-a-handler-asks-the-runtime",
    "h-32-a-return-value-for-the-root",
];

#[test]
fn a_profiler_that_avoids_a_hazard_survives_the_search_that_finds_it() {
    for name in SAME_PROGRAM {
        let falls = searched(&format!("hazards/{name}.kdl")).unwrap();
        let avoids = searched(&format!("hazards/{name}-avoided.kdl")).unwrap();
        assert_eq!(falls.program, avoids.program, "{name}");
        assert_eq!((&falls.threads, falls.stop_by), (&avoids.threads, avoids.stop_by), "{name}");
        assert_eq!(falls.explore[0].budget(), avoids.explore[0].budget(), "{name}");
        let mut failed_somewhere = false;
        for generation in Generation::ALL {
            let expected = |text: &Scenario| {
                text.explore[0].expected_on(generation).map(|(_, expected)| expected.ends)
            };
            let (falls, avoids) = (expected(falls), expected(avoids));
            assert_eq!(falls.is_some(), avoids.is_some(), "{name}, {generation}");
            failed_somewhere |= falls.is_some_and(|ends| !survives(ends));
            assert!(avoids.is_none_or(survives), "{name}, {generation}");
        }
        assert!(failed_somewhere, "{name}");
    }
}

/// The hazards, and the rows of the field, that must have a pair of texts.
const HAZARDS: core::ops::RangeInclusive<u8> = 14..=Hazard::ALL.len() as u8;
const ROWS: [u8; 4] = [16, 28, 31, 32];

/// Returns the hazards that no search finds, with the texts of single stacks that show them: rows of the contract's page.
fn without_search() -> Vec<(u8, Vec<&'static str>)> {
    let page = include_str!("../../../../sim/src/book/contract/methods.md");
    let (_, table) =
        page.split_once("| Hazard | Why no search finds it | Texts |\n|---|---|---|\n").unwrap();
    let row = |row: &'static str| {
        let mut columns = row.trim_matches('|').split(" | ").map(str::trim);
        let number = columns.next()?.strip_prefix("H-")?.parse().ok()?;
        let texts = columns.nth(1)?.split('`').skip(1).step_by(2).collect();
        Some((number, texts))
    };
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    rows.map(|line| row(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

/// Returns the number of texts with a tag that run into the hazard, and of those that avoid it.
fn pairs(tag: &str, hazard: Option<u8>) -> (usize, usize) {
    let mut counts = (0, 0);
    for (name, _, scenario) in gallery() {
        let has = |wanted: &str| scenario.about.tags.iter().any(|tag| tag == wanted);
        if scenario.explore.is_empty() || !has(tag) {
            continue;
        }
        let expects = || scenario.explore.iter().flat_map(|explore| &explore.expect);
        let survives = |end| matches!(end, ExpectedEnd::Survives { .. });
        let is_it = |found: Option<Hazard>| {
            hazard.is_none_or(|number| found.is_some_and(|found| found.number() == number))
        };
        if has("avoided") {
            assert!(expects().all(|expect| survives(expect.ends)), "{name}");
            counts.1 += 1;
        } else if expects().any(|expect| !survives(expect.ends) && is_it(expect.hazard)) {
            counts.0 += 1;
        }
    }
    counts
}

#[test]
fn every_hazard_has_a_profiler_that_falls_in_and_one_that_does_not() {
    let mut problems = String::new();
    let without_search = without_search();
    assert_eq!(without_search.len(), 6);
    for number in HAZARDS {
        if let Some((_, texts)) = without_search.iter().find(|(other, _)| *other == number) {
            assert!(!texts.is_empty(), "H-{number:02}");
            for text in texts {
                let is_it = |name: &str| name.strip_suffix(".kdl").unwrap_or(name) == *text;
                let there = clr_fixtures::gallery().iter().any(|fixture| is_it(fixture.name));
                assert!(there, "H-{number:02}: there is no {text}");
            }
            continue;
        }
        let (fall, avoid) = pairs(&format!("H-{number:02}"), Some(number));
        if fall == 0 || avoid == 0 {
            writeln!(problems, "H-{number:02}: {fall} fail, {avoid} avoid it").unwrap();
        }
    }
    for number in ROWS {
        let (fall, avoid) = pairs(&format!("G{number:02}"), None);
        if fall == 0 || avoid == 0 {
            writeln!(problems, "G{number:02}: {fall} fail, {avoid} avoid it").unwrap();
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}
