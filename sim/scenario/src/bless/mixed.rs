//! Blessing of mixed walks.

use super::{Blessable, CallAt};
use crate::codec::text_of;
use crate::mixed::{ExpectedMixed, FoundMixed, MixedReport};
use crate::snapshot::Provenance;
use crate::{Scenario, nodes};
use clr_runtime::clause::Clause;
use clr_runtime::generation::Generations;

impl Blessable for ExpectedMixed {
    const NODE: &'static str = "mixed-walk";

    type Found = FoundMixed;
    type Report = MixedReport;

    fn parts(report: &MixedReport) -> (CallAt, bool, &FoundMixed) {
        ((report.stop, report.walk), report.is_right(), &report.found)
    }

    fn from_result(on: Generations, found: &FoundMixed) -> Self {
        Self::of(on, found)
    }

    fn on(&mut self) -> &mut Generations {
        &mut self.on
    }

    fn clauses(&mut self) -> &mut Vec<Clause> {
        &mut self.clauses
    }

    fn provenance(&self) -> Provenance {
        self.from
    }

    fn text(&self, depth: usize) -> String {
        text_of(&Scenario::default(), depth, "expect", self, nodes::expected_mixed)
    }
}
