//! Results of tests in the XML of JUnit, which CI servers read. The form is the common subset of Jenkins, GitLab and
//! Azure: `testsuites`, `testsuite`, `testcase`, `failure` and `skipped`. It has no times: results depend on none.

use crate::render::error::CliError;
use anstream::adapter::strip_str;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::io;

/// Name of the suite.
const SUITE: &str = "clrsim";

/// A test with its result.
#[derive(Clone, Debug)]
pub(crate) struct TestCase {
    /// Path of the file, with forward slashes.
    pub(crate) name: String,
    pub(crate) result: TestResult,
}

/// The result of a test.
#[derive(Clone, Debug)]
pub(crate) enum TestResult {
    Passed,
    /// The test failed, with the explanation.
    Failed(String),
    /// The test was not run to a result, with the reason.
    Ignored(&'static str),
}

/// Returns the document of these tests.
pub(crate) fn document(cases: &[TestCase]) -> Result<Vec<u8>, CliError> {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    write(&mut writer, cases)?;
    let mut bytes = writer.into_inner();
    bytes.push(b'\n');
    Ok(bytes)
}

fn write(writer: &mut Writer<Vec<u8>>, cases: &[TestCase]) -> io::Result<()> {
    let count = |is: fn(&TestResult) -> bool| {
        cases.iter().filter(|case| is(&case.result)).count().to_string()
    };
    let tests = cases.len().to_string();
    let failures = count(|result| matches!(result, TestResult::Failed(_)));
    let skipped = count(|result| matches!(result, TestResult::Ignored(_)));
    let counts =
        [("name", SUITE), ("tests", &*tests), ("failures", &*failures), ("skipped", &*skipped)];
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    writer.create_element("testsuites").with_attributes(counts).write_inner_content(|writer| {
        let suite = writer.create_element("testsuite").with_attributes(counts);
        suite.write_inner_content(|writer| {
            cases.iter().try_for_each(|case| write_case(writer, case))
        })?;
        Ok(())
    })?;
    Ok(())
}

fn write_case(writer: &mut Writer<Vec<u8>>, case: &TestCase) -> io::Result<()> {
    let (folder, _) = case.name.rsplit_once('/').unwrap_or((SUITE, ""));
    let attributes = [("classname", folder), ("name", &*case.name)];
    let element = writer.create_element("testcase").with_attributes(attributes);
    match &case.result {
        TestResult::Passed => element.write_empty()?,
        TestResult::Failed(text) => element.write_inner_content(|writer| {
            let text = plain(text);
            let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let failure =
                writer.create_element("failure").with_attribute(("message", first.trim()));
            failure.write_text_content(BytesText::new(&text))?;
            Ok(())
        })?,
        TestResult::Ignored(why) => element.write_inner_content(|writer| {
            writer.create_element("skipped").with_attribute(("message", *why)).write_empty()?;
            Ok(())
        })?,
    };
    Ok(())
}

/// Returns a text without colours, and without characters that XML 1.0 cannot have.
fn plain(text: &str) -> String {
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    let is_allowed = |c: &char| !is_control(*c) && !matches!(c, '\u{FFFE}' | '\u{FFFF}');
    strip_str(text).to_string().chars().filter(is_allowed).collect()
}
