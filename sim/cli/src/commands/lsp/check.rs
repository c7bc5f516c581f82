//! Diagnostics: the problems of a text, and the expectations that do not come out.

use super::document::Document;
use crate::input::{PROGRAM, Source, end_of};
use crate::render::error::CliError;
use crate::render::style::unstyled;
use crate::report::walk;
use clr_runtime::generation::Generations;
use clr_scenario::{Problem, Scenario};
use lsp_types::{Diagnostic, DiagnosticSeverity, NumberOrString, Range};
use std::time::Duration;

/// The source of all diagnostics.
const SOURCE: &str = "clrsim";
/// Number of failures that are shown of a text.
const FAILURES: usize = 50;

/// The longest time of a search: an editor waits.
pub(super) const LIMIT: Duration = Duration::from_secs(10);

/// Returns the problems of a text, as an editor shows them.
pub(super) fn problems(document: &Document) -> Vec<Diagnostic> {
    problems_of(document).iter().map(|problem| diagnostic_of(document, problem)).collect()
}

/// Returns the problems of a text.
pub(super) fn problems_of(document: &Document) -> Vec<Problem> {
    Scenario::parse(&document.text).map_or_else(|error| error.problems().to_vec(), |_| Vec::new())
}

/// Returns a problem as an editor shows it.
pub(super) fn diagnostic_of(document: &Document, problem: &Problem) -> Diagnostic {
    let help = problem.advice().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
    let message = format!("{}{help}", problem.kind);
    Diagnostic {
        code: Some(NumberOrString::String(problem.kind.code().to_owned())),
        ..diagnostic(document.range(problem.span), DiagnosticSeverity::ERROR, message)
    }
}

/// Runs a text on all runtimes. Returns the failures, and the result in a sentence.
pub(super) fn run(name: &str, document: &Document) -> Result<(Vec<Diagnostic>, String), CliError> {
    let source = Source::of_text(name, &document.text);
    let report = walk::run(&source, Generations::ALL, (FAILURES, LIMIT))?;
    let mut found = Vec::new();
    for failure in &report.failures {
        let mut text = Vec::new();
        failure.write(&report.file, &mut text)?;
        let text = unstyled(&String::from_utf8_lossy(&text));
        let object: serde_json::Value =
            serde_json::from_str(failure.json().map_err(std::io::Error::from)?.get())
                .map_err(std::io::Error::from)?;
        let line = object["line"].as_u64().unwrap_or(1);
        found.push(diagnostic(
            document.line(line),
            DiagnosticSeverity::WARNING,
            text.trim().to_owned(),
        ));
    }
    let counts = report.counts;
    let result = format!("{}: {} passed, {} failed", end_of(name), counts.passed, counts.failed);
    Ok((found, result))
}

/// Returns the name of a text by its address: as a file's that it is going to be, if it is in none yet.
pub(super) fn name_of(uri: &str) -> String {
    let path = uri.strip_prefix("file://").unwrap_or(uri);
    if path.ends_with(PROGRAM) { path.to_owned() } else { format!("{path}{PROGRAM}") }
}

fn diagnostic(range: Range, severity: DiagnosticSeverity, message: String) -> Diagnostic {
    Diagnostic {
        range,
        severity: Some(severity),
        source: Some(SOURCE.to_owned()),
        message,
        ..Diagnostic::default()
    }
}
