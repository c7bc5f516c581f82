//! Blessing of mixed walks: rewriting unmet expectations of a text with the results found.

use super::{Blessable, apply, edit_all};
use crate::Scenario;
use crate::error::ScenarioError;
use crate::format::expected_mixed_text;
use crate::mixed::{ExpectedMixed, FoundMixed, MixedAt, MixedReport};
use crate::snapshot::Provenance;
use clr_runtime::generation::{Generation, Generations};

/// Rewrites the expectations of mixed walks as [`bless`](super::bless) does for snapshots.
///
/// # Errors
/// Returns [`ScenarioError`] if the text is not a scenario.
pub(super) fn bless(
    text: &str,
    reports: &[(Generation, Vec<MixedReport>)],
) -> Result<String, ScenarioError> {
    let scenario = Scenario::parse(text)?;
    let calls = scenario.mixed_walks().map(|MixedAt { stop, walk, says }| {
        let mut found = Vec::new();
        for (generation, reports) in reports {
            let report = reports.iter().find(|it| it.stop == stop && it.walk == walk);
            found.extend(report.map(|it| (*generation, it.is_right(), &it.found)));
        }
        (says.expect.as_slice(), found)
    });
    Ok(apply(text, edit_all(text, "mixed-walk", calls)))
}

impl Blessable for ExpectedMixed {
    type Found = FoundMixed;

    fn from_result(on: Generations, found: &FoundMixed) -> Self {
        Self::of(on, found)
    }

    fn on(&mut self) -> &mut Generations {
        &mut self.on
    }

    fn matches_result(&self, new: &Self) -> bool {
        let clauses = self.clauses.clone();
        self.from == Provenance::Source && *self == Self { on: self.on, clauses, ..new.clone() }
    }

    fn text(&self, depth: usize) -> String {
        expected_mixed_text(self, depth)
    }
}
