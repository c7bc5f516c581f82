//! The report of a run with a test for each file: as libtest prints it, or in the XML of JUnit, which CI servers
//! read. The XML is the common subset of Jenkins, GitLab and Azure. It has no times: results depend on none.

use crate::render::console::{BAD, Console, DIM, GOOD};
use crate::render::error::CliError;
use crate::render::style::unstyled;
use crate::render::words::in_words;
use crate::report::FileReport;
use crate::{FAILED, PASSED};
use clap::ValueEnum;
use clr_explore::is_visible;
use clr_runtime::generation::Generations;
use std::io::{self, Write};

/// A form of results, for other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TestFormat {
    /// As cargo test prints them
    Libtest,
    /// XML of JUnit, for CI servers
    Junit,
}

/// The result of a file with all of its cases.
enum TestResult {
    Passed,
    /// The test failed, with the explanation.
    Failed(String),
    /// No answer is expected.
    Ignored,
}

/// Writes the report as it comes.
pub(crate) struct TestReporter {
    format: TestFormat,
    /// Names of the files, with their results.
    tests: Vec<(String, TestResult)>,
    /// The runtimes of `--on` on which no text has expected anything so far.
    unchecked: Generations,
    has_texts: bool,
}

impl TestReporter {
    pub(crate) fn new(format: TestFormat, on: Option<Generations>) -> Self {
        let unchecked = on.unwrap_or_default();
        Self { format, tests: Vec::new(), unchecked, has_texts: false }
    }

    /// Adds the report of a file.
    pub(crate) fn add(
        &mut self,
        name: &str,
        report: Result<FileReport, CliError>,
        console: &mut Console<'_>,
    ) -> io::Result<()> {
        if let Ok(FileReport { scenario: Some(summary), .. }) = &report {
            self.unchecked = self.unchecked.without(summary.checked);
            self.has_texts = true;
        }
        let result = match report {
            Ok(report) => result(&report)?,
            Err(error) => TestResult::Failed(error.render(false)),
        };
        if self.format == TestFormat::Libtest {
            let word = match &result {
                TestResult::Passed => format!("{GOOD}ok{GOOD:#}"),
                TestResult::Failed(_) => format!("{BAD}FAILED{BAD:#}"),
                TestResult::Ignored => format!("{DIM}ignored, no answer is expected{DIM:#}"),
            };
            writeln!(console.out, "test {name} ... {word}")?;
            console.out.flush()?;
        }
        self.tests.push((name.to_owned(), result));
        Ok(())
    }

    /// Writes the failures and the totals, and returns the exit code.
    pub(crate) fn finish(&self, console: &mut Console<'_>) -> io::Result<u8> {
        match self.format {
            TestFormat::Libtest => self.write_totals(console.out)?,
            TestFormat::Junit => self.write_xml(console.out)?,
        }
        // A run in which every test is ignored has checked nothing.
        let lacks = self.has_texts && !self.unchecked.is_empty();
        let is_empty = lacks || self.count_ignored() == self.tests.len();
        if lacks && self.format == TestFormat::Libtest {
            writeln!(console.out, "nothing was checked on {}", in_words(self.unchecked))?;
        }
        Ok(if self.count_failed() == 0 && !is_empty { PASSED } else { FAILED })
    }

    fn failed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tests.iter().filter_map(|(name, result)| match result {
            TestResult::Failed(text) => Some((&**name, &**text)),
            _ => None,
        })
    }

    fn count_failed(&self) -> usize {
        self.failed().count()
    }

    fn count_ignored(&self) -> usize {
        self.tests.iter().filter(|(_, result)| matches!(result, TestResult::Ignored)).count()
    }

    fn write_totals(&self, out: &mut dyn Write) -> io::Result<()> {
        let (failed, ignored) = (self.count_failed(), self.count_ignored());
        if failed > 0 {
            writeln!(out, "\nfailures:")?;
            for (name, text) in self.failed() {
                writeln!(out, "\n---- {name} ----\n{}", text.trim_matches('\n'))?;
            }
            writeln!(out, "\nfailures:")?;
            for (name, _) in self.failed() {
                writeln!(out, "    {name}")?;
            }
        }
        let passed = self.tests.len() - failed - ignored;
        let (style, word) = if failed == 0 { (GOOD, "ok") } else { (BAD, "FAILED") };
        writeln!(
            out,
            "\ntest result: {style}{word}{style:#}. {passed} passed; {failed} failed; {ignored} ignored"
        )
    }

    fn write_xml(&self, out: &mut dyn Write) -> io::Result<()> {
        let (all, failed, ignored) = (self.tests.len(), self.count_failed(), self.count_ignored());
        let counts =
            format!(r#"name="clrsim" tests="{all}" failures="{failed}" skipped="{ignored}""#);
        writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
        writeln!(out, "<testsuites {counts}>\n  <testsuite {counts}>")?;
        for (name, result) in &self.tests {
            let name = escaped(name);
            let folder = name.rsplit_once('/').map_or("clrsim", |(folder, _)| folder);
            write!(out, r#"    <testcase classname="{folder}" name="{name}""#)?;
            match result {
                TestResult::Passed => writeln!(out, "/>")?,
                TestResult::Failed(text) => {
                    let text = escaped(text);
                    let first = text.lines().find(|line| !line.trim().is_empty());
                    let first = first.unwrap_or_default().trim();
                    write!(out, ">\n      <failure message=\"{first}\">{text}</failure>\n")?;
                    writeln!(out, "    </testcase>")?;
                }
                TestResult::Ignored => {
                    writeln!(out, ">\n      <skipped message=\"no answer is expected\"/>")?;
                    writeln!(out, "    </testcase>")?;
                }
            }
        }
        writeln!(out, "  </testsuite>\n</testsuites>")
    }
}

fn result(report: &FileReport) -> io::Result<TestResult> {
    let counts = report.counts;
    if counts.failed > 0 {
        let mut text = Vec::new();
        report.write_failures(&mut text)?;
        return Ok(TestResult::Failed(String::from_utf8_lossy(&text).into_owned()));
    }
    let is_ignored = counts.cases == counts.skipped;
    Ok(if is_ignored { TestResult::Ignored } else { TestResult::Passed })
}

/// Returns a text for XML 1.0: without styles, and with `\u{…}` for what it cannot have.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in unstyled(text).chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\n' | '\t' => escaped.push(c),
            c if is_visible(c) => escaped.push(c),
            c => escaped.extend(c.escape_unicode()),
        }
    }
    escaped
}
