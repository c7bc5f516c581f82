//! Bugs that readers of CFI have had, planted into one that has none: the every-instruction property
//! finds each within 1,000 programs of Unix and shrinks what it found to one or two functions.

use clr_sim::code::{Convention, Program};
use clr_sim::scenario::Scenario;
use clr_sim::strategy::{Size, programs};
use clr_tests::dwarf::Bug;
use clr_tests::every_instruction::{Failure, Second, walk};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::cell::Cell;
use std::fmt::Write as _;

const MAX_CASES: u32 = 1000;
const LIMIT: u64 = 5000;

/// What the reader with the bug gets wrong in a run of the program.
fn failure(program: &Program, bug: Bug) -> Option<String> {
    let linked = program.link().ok()?;
    let map = linked.code_map().ok()?;
    let unwinder = Second::new(&linked, &map).ok()?.with_dwarf_bug(bug);
    match walk(program, &linked, &unwinder, LIMIT) {
        Err(failure @ Failure::Wrong(_)) => Some(failure.to_string()),
        _ => None,
    }
}

/// After how many programs the bug was found, and what the last of them shrank to.
fn find(bug: Bug) -> (u32, Program) {
    let config = Config {
        cases: MAX_CASES,
        failure_persistence: None,
        max_shrink_iters: 50_000,
        ..Config::default()
    };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let (tried, found) = (Cell::new(0), Cell::new(false));
    let strategy = programs(Size::SMALL.of(Convention::SystemV));
    let result = TestRunner::new_with_rng(config, random).run(&strategy, |program| {
        let failure = failure(&program, bug);
        tried.set(tried.get() + u32::from(!found.get()));
        found.set(found.get() || failure.is_some());
        failure.map_or(Ok(()), |what| Err(TestCaseError::fail(what)))
    });
    match result {
        Err(TestError::Fail(_, program)) => (tried.get(), program),
        other => panic!("{bug:?} was not found in {MAX_CASES} programs: {other:?}"),
    }
}

#[test]
fn each_planted_bug_is_found_and_shrinks_to_two_functions() {
    let mut table = String::new();
    for bug in Bug::ALL {
        let (tried, program) = find(bug);
        assert!(program.functions.len() <= 2, "{bug:?}: {} functions", program.functions.len());
        let what = failure(&program, bug).expect("it failed before");
        writeln!(table, "// {bug:?}: {bug}").unwrap();
        writeln!(table, "// Found in program {tried}; shrunk, it fails").unwrap();
        writeln!(table, "// {what}").unwrap();
        writeln!(table, "{}", Scenario::new(program)).unwrap();
    }
    insta::assert_snapshot!(table);
}
