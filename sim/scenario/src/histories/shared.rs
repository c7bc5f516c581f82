//! Searches of a text on several generations: each is made once for all generations that it cannot tell apart.
//!
//! A search asks its generation questions. On another one with the same code, whose answers to these questions are the same,
//! each step of each history is the same: so is the result.

use super::explore::{Explored, Exploring, hazard_of};
use crate::Scenario;
use crate::run_on_runtime::RunOnError;
use clr_explore::Report;
use clr_runtime::generation::{Asked, Generation};

/// A search that was made.
#[derive(Clone, Debug)]
struct Made {
    /// Index of the search in [`Scenario::explore`].
    explore: usize,
    /// What it has asked its generation.
    asked: Asked,
    found: Report,
}

/// The searches of a text that were made, for further generations.
#[derive(Debug)]
pub struct Searches<'s> {
    scenario: &'s Scenario,
    made: Vec<(Exploring<'s>, Vec<Made>)>,
}

impl<'s> Searches<'s> {
    /// Begins without searches.
    #[must_use]
    pub const fn of(scenario: &'s Scenario) -> Self {
        Self { scenario, made: Vec::new() }
    }

    /// Returns the results of the searches that the text wants on a generation, and makes those that no other generation can
    /// stand for.
    ///
    /// # Errors
    /// Returns [`RunOnError`].
    pub fn on(&mut self, generation: Generation) -> Result<Vec<Explored>, RunOnError> {
        let (mut all, mut made) = (Vec::new(), Vec::new());
        let wanted = self.scenario.explore.iter().enumerate();
        let wanted = wanted.filter_map(|(explore, says)| {
            says.expected_on(generation).map(|(expected, expect)| (explore, says, expected, expect))
        });
        let mut wanted = wanted.peekable();
        if wanted.peek().is_none() {
            return Ok(all);
        }
        let exploring = Exploring::new(self.scenario, generation)?;
        for (explore, says, expected, expect) in wanted {
            let budget = says.budget();
            let found = match self.known(explore, &exploring) {
                Some(found) => found.clone(),
                None => {
                    let (found, asked) = Asked::by(|| exploring.search(&budget, |_| true));
                    let found = found?;
                    made.push(Made { explore, asked, found: found.clone() });
                    found
                }
            };
            let replayed = match &expect.replay {
                Some(schedule) => Some(exploring.replayed(schedule, &budget)?),
                None => None,
            };
            let hazard = found.failure.as_ref().and_then(hazard_of);
            let differences = expect.differences(&budget, &found, hazard, replayed);
            all.push(Explored { explore, expected, generation, found, hazard, differences });
        }
        self.made.push((exploring, made));
        Ok(all)
    }

    /// Returns the result of a search, if it is known from a generation that it cannot tell from this one.
    fn known(&self, explore: usize, exploring: &Exploring<'_>) -> Option<&Report> {
        let process = exploring.process();
        let alike = self.made.iter().filter(|(other, _)| process.has_code_of(other.process()));
        let mut made = alike.flat_map(|(other, made)| made.iter().map(move |made| (other, made)));
        let known = made.find(|(other, made)| {
            let (one, other) = (other.process().generation(), process.generation());
            made.explore == explore && made.asked.is_answered_alike(one, other)
        });
        known.map(|(_, made)| &made.found)
    }
}
