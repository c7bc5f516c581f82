//! Findings as SARIF 2.1.0, which CI servers and editors read.

use super::FindingReport;
use super::words::words;
use crate::render::console::Console;
use crate::render::error::CliError;
use crate::render::json::escaped;
use clr_lint::Cause;
use serde_json::{Value, json};
use std::io;

/// The findings of all images of a run.
#[derive(Debug, Default)]
pub(crate) struct Sarif {
    results: Vec<Value>,
    has_baseline: bool,
}

impl Sarif {
    pub(crate) const fn new(has_baseline: bool) -> Self {
        Self { results: Vec::new(), has_baseline }
    }

    /// Adds a finding.
    pub(crate) fn add(&mut self, finding: &FindingReport) {
        let FindingReport { file, function, cause, expected, got, meaning, remedy, .. } = finding;
        // What another rule of unwinding would get right is no fault of the image.
        let level = match finding.blame {
            _ if finding.allowed => "note",
            "data" => "error",
            _ => "warning",
        };
        let text = format!(
            "{function}: the unwind data {}; expected: {expected}; got: {got}. {meaning}. To mend it: {remedy}.",
            words(cause_of(cause))
        );
        let mut result = json!({
            "ruleId": cause,
            "level": level,
            "message": { "text": text },
            "locations": [{
                "physicalLocation": {
                    "artifactLocation": { "uri": file },
                    "address": { "relativeAddress": finding.first.address(), "fullyQualifiedName": function },
                },
                "logicalLocations": [{ "fullyQualifiedName": function, "kind": "function" }],
            }],
            "partialFingerprints": { "clrsimLint/v1": finding.fingerprint },
            "properties": {
                "blame": finding.blame,
                "instructions": finding.instructions,
                "calls": finding.calls,
            },
        });
        if let Some(result) = result.as_object_mut() {
            if self.has_baseline {
                let state = if finding.known { "unchanged" } else { "new" };
                result.insert("baselineState".to_owned(), state.into());
            }
            if finding.allowed {
                let allowed = json!([{ "kind": "external", "justification": "--allow" }]);
                result.insert("suppressions".to_owned(), allowed);
            }
        }
        self.results.push(result);
    }

    /// Prints the document; `is_whole` is false if an image could not be read.
    pub(crate) fn write(self, is_whole: bool, console: &mut Console<'_>) -> Result<(), CliError> {
        let rules = Cause::ALL.map(|cause| {
            json!({
                "id": cause.name(),
                "shortDescription": { "text": format!("The unwind data {}.", words(cause)) },
            })
        });
        let document = json!({
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": {
                    "name": "clrsim lint",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": rules,
                } },
                "invocations": [{ "executionSuccessful": is_whole }],
                "results": self.results,
            }],
        });
        let text = serde_json::to_string_pretty(&document).map_err(io::Error::from)?;
        Ok(writeln!(console.out, "{}", escaped(&text))?)
    }
}

fn cause_of(name: &str) -> Cause {
    Cause::ALL.into_iter().find(|it| it.name() == name).unwrap_or(Cause::Other)
}
