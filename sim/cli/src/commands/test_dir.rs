//! `clrsim test-dir`: runs each file of a folder as a test.

use super::run::{Settings, replay_all};
use crate::args::TestDirArgs;
use crate::input::{Source, Sources, sources_there};
use crate::render::console::{BAD, Console, DIM, GOOD};
use crate::render::error::CliError;
use crate::render::junit::{self, TestCase, TestResult};
use crate::render::progress::Progress;
use crate::report::FileReport;
use crate::{FAILED, PASSED, UNUSABLE};
use clr_runtime::generation::Generations;
use clr_walker::unwind::Rules;
use std::fmt::Write as _;

/// Number of explained failures of a file.
const EXPLAINED: usize = 5;

/// Runs the tests that `args` name and returns the exit code.
pub(crate) fn test_dir(args: &TestDirArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let Sources { found: mut tests, missing } = sources_there(&args.paths, None)?;
    if !missing.is_empty() {
        for error in &missing {
            console.print_error(error);
        }
        return Ok(UNUSABLE);
    }
    let all = tests.len();
    tests.retain(|test| is_wanted(args, &test.name));
    if tests.is_empty() {
        return Err(none_is_left(args, all));
    }
    if args.list {
        for test in &tests {
            writeln!(console.out, "{}: test", test.name)?;
        }
        writeln!(console.out, "\n{}", count(tests.len()))?;
        return Ok(PASSED);
    }
    if let Some(path) = &args.junit {
        args.replacing.check(path)?;
    }
    let cases = run(args, &tests, console)?;
    let code = finish(&cases, all - tests.len(), console)?;
    if let Some(path) = &args.junit {
        args.replacing.write(path, junit::document(&cases)?)?;
    }
    Ok(code)
}

fn is_wanted(args: &TestDirArgs, name: &str) -> bool {
    let has = |part: &String| name.contains(part.as_str());
    (args.filter.is_empty() || args.filter.iter().any(has)) && !args.skip.iter().any(has)
}

fn none_is_left(args: &TestDirArgs, all: usize) -> CliError {
    let filters = args.filter.iter().map(|part| format!("--filter {part}"));
    let flags: Vec<_> =
        filters.chain(args.skip.iter().map(|part| format!("--skip {part}"))).collect();
    CliError::new(
        &flags.join(" "),
        format_args!("leaves none of {}; --list prints their names", count(all)),
    )
}

/// Returns a number of tests in words.
fn count(tests: usize) -> String {
    if tests == 1 { "1 test".to_owned() } else { format!("{tests} tests") }
}

/// Runs the tests and prints a line for each of them, in their order.
fn run(
    args: &TestDirArgs,
    tests: &[Source],
    console: &mut Console<'_>,
) -> Result<Vec<TestCase>, CliError> {
    let settings =
        Settings::new(Rules::Precise, args.on.unwrap_or(Generations::ALL), args.jobs, EXPLAINED);
    let progress = Progress::new(console.progress, tests.len() as u64);
    let mut cases = Vec::with_capacity(tests.len());
    progress.hide(|| writeln!(console.out, "running {}", count(tests.len())))?;
    replay_all(tests, &settings, |test, report| {
        let result = match report {
            Ok(report) => result(&report)?,
            Err(error) => TestResult::Failed(error.render(false)),
        };
        let word = match &result {
            TestResult::Passed => format!("{GOOD}ok{GOOD:#}"),
            TestResult::Failed(_) => format!("{BAD}FAILED{BAD:#}"),
            TestResult::Ignored(why) => format!("{DIM}ignored, {why}{DIM:#}"),
        };
        progress.hide(|| {
            writeln!(console.out, "test {} ... {word}", test.name)?;
            console.out.flush()
        })?;
        progress.step_to(&test.name);
        cases.push(TestCase { name: test.name.clone(), result });
        Ok(())
    })?;
    progress.finish();
    Ok(cases)
}

/// Returns the result of a file with all of its cases.
fn result(report: &FileReport) -> Result<TestResult, CliError> {
    let counts = report.counts;
    if counts.failed == 0 {
        return Ok(if counts.cases == counts.skipped {
            TestResult::Ignored("no answer is expected")
        } else {
            TestResult::Passed
        });
    }
    let mut text = Vec::new();
    for failure in &report.failures {
        failure.write(&report.file, &mut text)?;
    }
    let explained: usize = report.failures.iter().map(|failure| failure.cases()).sum();
    let mut text = String::from_utf8_lossy(&text).into_owned();
    let more = counts.failed.saturating_sub(explained);
    if more > 0 {
        let (file, all) = (&report.file, counts.failed);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "\n{more} more failed: clrsim run {file} --max-failures {all} explains them"
        );
    }
    Ok(TestResult::Failed(text))
}

/// Prints the failures and the totals, and returns the exit code.
fn finish(cases: &[TestCase], filtered: usize, console: &mut Console<'_>) -> Result<u8, CliError> {
    let failed: Vec<_> = cases
        .iter()
        .filter_map(|case| match &case.result {
            TestResult::Failed(text) => Some((&case.name, text)),
            _ => None,
        })
        .collect();
    if !failed.is_empty() {
        writeln!(console.out, "\nfailures:")?;
        for (name, text) in &failed {
            writeln!(console.out, "\n---- {name} ----\n{}", text.trim_matches('\n'))?;
        }
        writeln!(console.out, "\nfailures:")?;
        for (name, _) in &failed {
            writeln!(console.out, "    {name}")?;
        }
    }
    let ignored = cases.iter().filter(|case| matches!(case.result, TestResult::Ignored(_))).count();
    let passed = cases.len() - failed.len() - ignored;
    let (style, word) = if failed.is_empty() { (GOOD, "ok") } else { (BAD, "FAILED") };
    writeln!(
        console.out,
        "\ntest result: {style}{word}{style:#}. {passed} passed; {} failed; {ignored} ignored; \
         {filtered} filtered out",
        failed.len()
    )?;
    Ok(if failed.is_empty() { PASSED } else { FAILED })
}
