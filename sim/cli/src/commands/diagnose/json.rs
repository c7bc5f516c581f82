//! A diagnosis as JSON.

use super::words;
use clr_dump::{CoreDump, StoppedProcess as _};
use clr_inspect::{Circle, Diagnosis, Edge, Verdict};
use serde::Serialize;

/// The diagnosis.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Report<'d> {
    file: &'d str,
    verdict: &'static str,
    threads: usize,
    waits: usize,
    circles: Vec<CircleOfWaits>,
    moved: usize,
    followers: Vec<Wait>,
    unknown: Vec<String>,
}

/// Threads that wait for one another.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct CircleOfWaits {
    #[serde(skip_serializing_if = "Option::is_none")]
    hazard: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    avoided_by: Option<&'static str>,
    waits: Vec<Wait>,
}

/// A wait of a thread for another one.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Wait {
    from: u32,
    to: u32,
    kind: &'static str,
    address: String,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    doubt: Option<&'static str>,
}

impl<'d> Report<'d> {
    pub(super) fn new(file: &'d str, process: &CoreDump<'_>, found: &Diagnosis) -> Self {
        Self {
            file,
            verdict: match found.verdict() {
                Verdict::Nothing => "nothing",
                Verdict::Open => "open",
                Verdict::Fits => "fits",
                Verdict::Proved => "proved",
            },
            threads: process.threads().len(),
            waits: found.edges.len(),
            circles: found.circles.iter().map(|it| CircleOfWaits::new(process, it)).collect(),
            moved: found.moved.len(),
            followers: waits(process, &found.followers()),
            unknown: found.unknown.iter().map(words::unknown).collect(),
        }
    }
}

impl CircleOfWaits {
    fn new(process: &CoreDump<'_>, circle: &Circle) -> Self {
        let (title, avoided_by) = words::mistake(circle.cause).unzip();
        let hazard = words::hazard(circle.cause).map(|hazard| hazard.to_string());
        Self { hazard, title, avoided_by, waits: waits(process, &circle.edges) }
    }
}

fn waits(process: &CoreDump<'_>, edges: &[Edge]) -> Vec<Wait> {
    edges.iter().map(|edge| Wait::new(process, edge)).collect()
}

impl Wait {
    fn new(process: &CoreDump<'_>, edge: &Edge) -> Self {
        let (kind, address) = words::kind(edge.evidence);
        Self {
            from: edge.from,
            to: edge.to,
            kind,
            address: format!("{address:#x}"),
            text: words::evidence(process, edge),
            doubt: edge.doubt.map(words::doubt),
        }
    }
}
