//! Bugs of real unwinders, planted into a correct one. The every-instruction property finds each
//! within 1,000 programs and shrinks the failing one to one or two functions. The same holds for
//! bugs of CFI readers, in programs for Unix.

#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the methods themselves are not for all lifetimes"
)]

use super::*;
use clr_generate::programs;
use clr_tests::{dwarf, mutants};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::cell::Cell;
use std::fmt::{Debug, Display, Write as _};

const MAX_CASES: u32 = 1000;
const LIMIT: u64 = 5000;

/// A function that plants a bug in an unwinder of a program.
type Plant<B> = for<'c, 'a> fn(ReferenceUnwinder<'c, 'a>, B) -> ReferenceUnwinder<'c, 'a>;

/// Returns the first failure of the unwinder with the bug in a run of the program.
fn failure<B>(program: &Program, plant: Plant<B>, bug: B) -> Option<String> {
    let linked = program.link().ok()?;
    let map = linked.code_map().ok()?;
    let unwinder = plant(ReferenceUnwinder::new(&linked, &map).ok()?, bug);
    match walk(program, &linked, &unwinder, LIMIT) {
        Err(failure @ Failure::Wrong(_)) => Some(failure.to_string()),
        _ => None,
    }
}

/// Returns the number of programs until the bug was found, and the last of them, shrunk.
fn find<B: Copy + Debug>(size: Size, plant: Plant<B>, bug: B) -> (u32, Program) {
    let config = Config {
        cases: MAX_CASES,
        failure_persistence: None,
        max_shrink_iters: 50_000,
        ..Config::default()
    };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let (tried, found) = (Cell::new(0), Cell::new(false));
    let result = TestRunner::new_with_rng(config, random).run(&programs(size), |program| {
        let failure = failure(&program, plant, bug);
        tried.set(tried.get() + u32::from(!found.get()));
        found.set(found.get() || failure.is_some());
        failure.map_or(Ok(()), |what| Err(TestCaseError::fail(what)))
    });
    match result {
        Err(TestError::Fail(_, program)) => (tried.get(), program),
        other => panic!("{bug:?} was not found in {MAX_CASES} programs: {other:?}"),
    }
}

/// Formats how each bug was found.
fn table<B: Copy + Debug + Display>(size: Size, plant: Plant<B>, bugs: &[B]) -> String {
    let mut table = String::new();
    for bug in bugs {
        let (tried, program) = find(size, plant, *bug);
        assert!(program.functions.len() <= 2, "{bug:?}: {} functions", program.functions.len());
        let what = failure(&program, plant, *bug).expect("the program failed before");
        writeln!(table, "// {bug:?}: {bug}").unwrap();
        writeln!(table, "// Found in program {tried}; shrunk, it fails").unwrap();
        writeln!(table, "// {what}").unwrap();
        writeln!(table, "{}", Scenario::new(program)).unwrap();
    }
    table
}

#[test]
fn each_planted_bug_is_found_and_shrinks_to_two_functions() {
    let table = table(Size::SMALL, |unwinder, bug| unwinder.with_bug(bug), &mutants::Bug::ALL);
    insta::assert_snapshot!(table);
}

#[test]
fn each_planted_bug_of_cfi_is_found_and_shrinks_to_two_functions() {
    let size = Size::SMALL.of(CallingConvention::SystemV);
    let table = table(size, |unwinder, bug| unwinder.with_dwarf_bug(bug), &dwarf::Bug::ALL);
    insta::assert_snapshot!(table);
}
