//! Tests of the provenance that the texts of the gallery claim for their expectations.

use super::*;
use clr_runtime::Outcome;
use clr_scenario::{ExpectedOutcome, ExpectedSnapshot, Provenance, SnapshotReport};
use clr_tests::shape::shape;

/// Results of all recorded calls of some runtimes: generation, HRESULT and shape.
const OBSERVED: &str = "situations/observed.tsv";

/// Returns the situation that a text rebuilds, if it does.
fn situation(text: &str) -> Option<&str> {
    text.lines().next()?.strip_prefix("// situation: ")
}

/// Returns true if a call was made in a situation. A recording may say more of it than a text; what
/// a text says of the target, in parentheses, is not in the name that a recording gives it.
fn is_in(call: &RecordedCall, situation: &str) -> bool {
    let detail = call.situation.strip_prefix(situation);
    call.situation == situation.split(" (").next().unwrap_or_default()
        || detail.is_some_and(|detail| detail.is_empty() || detail.starts_with(':'))
}

/// The recorded calls, by what a label claims of them.
struct Recorded {
    coverage: Coverage,
    /// The clauses that recorded calls can show: those that apply to one on any runtime.
    visible: BTreeSet<Clause>,
}

impl Recorded {
    fn new() -> Self {
        let mut coverage = measured().clone();
        let table = core::str::from_utf8(clr_fixtures::get(OBSERVED).unwrap()).unwrap();
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<_> = line.split('\t').collect();
            let [situation, _, generation, result, shape, _] = fields.try_into().unwrap();
            let shape = if shape == "-" { "none" } else { shape };
            let generation = Generation::from_name(generation).unwrap();
            coverage.add_outcome(generation, situation, [result, shape]);
        }
        let visible = coverage.recorded().flat_map(|call| &call.clauses).copied().collect();
        Self { coverage, visible }
    }

    /// Returns true if a call of the runtime came out so, and all clauses that recorded calls can
    /// show apply to it. Of a call that ended the process no address was recorded.
    fn has(
        &self,
        report: &SnapshotReport,
        situation: Option<&str>,
        on: Generation,
        expected: &ExpectedSnapshot,
    ) -> bool {
        let found = report.found.outcome;
        let outcome = match found {
            Outcome::Returned(_) => outcome_word(found),
            _ if matches!(expected.result, ExpectedOutcome::AccessViolation { at: Some(_) }) => {
                return false;
            }
            _ => DIED.to_owned(),
        };
        let shape = shape(report.found.frame_reports.iter().map(|it| it.function.is_some()));
        let claimed: Vec<_> =
            expected.clauses.iter().filter(|it| self.visible.contains(it)).collect();
        self.coverage.recorded().any(|call| {
            call.generation == on
                && situation.is_none_or(|situation| is_in(call, situation))
                && (call.outcome == outcome || call.outcome == outcome_word(found))
                && call.shape == shape
                && claimed.iter().all(|it| call.clauses.contains(it))
        })
    }
}

#[test]
fn observed_results_are_those_of_recorded_calls() {
    let recorded = Recorded::new();
    let mut problems = Vec::new();
    for (name, text, scenario) in gallery() {
        for generation in Generation::ALL {
            for report in calls(name, generation).as_ref().unwrap() {
                let call = scenario.call(report.stop, report.snapshot).unwrap();
                let Some(expected) = report.expected.map(|at| &call.expect[at]) else { continue };
                if matches!(expected.from, Provenance::Observed(_))
                    && !recorded.has(report, situation(text), generation, expected)
                {
                    let title = call.title.as_deref().unwrap_or_default();
                    let shape =
                        shape(report.found.frame_reports.iter().map(|it| it.function.is_some()));
                    problems.push(format!(
                        "{}, {title}, {generation}: {} {shape} by {:?}",
                        name, report.found.outcome, expected.clauses
                    ));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

/// A search makes no call that was recorded: a clause with recordings has to support its result.
#[test]
fn observed_results_of_searches_are_those_of_observed_clauses() {
    let mut problems = Vec::new();
    for (name, _, scenario) in gallery() {
        let walks = scenario.mixed_walks().flat_map(|at| &at.says.expect);
        let walks = walks.map(|it| (it.from, it.on, it.clauses.clone()));
        let searches = scenario.explore.iter().flat_map(|it| &it.expect);
        let searches = searches.map(|it| (it.from, it.on, it.clauses.clone()));
        let claims: Vec<_> = walks.chain(searches).collect();
        for (from, on, clauses) in claims {
            let is_observed = |on: Generation| {
                clauses
                    .iter()
                    .filter_map(|it| it.entry())
                    .any(|it| it.generations.contains(on) && it.source.ends_with("recordings"))
            };
            if matches!(from, Provenance::Observed(_)) && !on.iter().all(is_observed) {
                problems.push(format!("{name}, {on}: {clauses:?}"));
            }
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

/// The source of a runtime is claimed only where somebody has read it.
#[test]
fn sources_are_claimed_where_they_were_read() {
    let mut problems = Vec::new();
    for (name, _, scenario) in gallery() {
        let snapshots = scenario.snapshots().flat_map(|at| &at.call.expect);
        let walks = scenario.mixed_walks().flat_map(|at| &at.says.expect);
        let searches = scenario.explore.iter().flat_map(|it| &it.expect);
        let claims = (snapshots.map(|it| (it.from, it.on)))
            .chain(walks.map(|it| (it.from, it.on)))
            .chain(searches.map(|it| (it.from, it.on)));
        let claims: Vec<(Provenance, Generations)> = claims.collect();
        for (from, on) in claims {
            let unread: Vec<_> = on.iter().filter(|it| !is_source_read(*it)).collect();
            if from == Provenance::Source && !unread.is_empty() {
                problems.push(format!("{name}: {unread:?}"));
            }
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn reports_are_claimed_where_one_is_named() {
    for (name, text, scenario) in gallery() {
        let walks = scenario.mixed_walks().flat_map(|at| &at.says.expect).map(|it| it.from);
        let snapshots = scenario.snapshots().flat_map(|at| &at.call.expect).map(|it| it.from);
        let searches = scenario.explore.iter().flat_map(|it| &it.expect).map(|it| it.from);
        let claims = walks.chain(snapshots).chain(searches).any(|it| it == Provenance::Reported);
        let header = text.lines().take_while(|line| line.starts_with("//"));
        let names_one = header.into_iter().any(|line| line.contains('#'));
        assert!(!claims || names_one, "{name} names no report");
    }
}
