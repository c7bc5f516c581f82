//! The reports of shards, made of their lines: interleavings that failed are executed again.

use crate::commands::explore::line::{PartLine, SearchLine};
use crate::commands::strategy;
use clr_explore::Faults;
use clr_explore::{
    Budget, Explorer, LeftWaiting, ProfilerRule, Report, ScheduleString, Strategy, ThreadIndex,
};
use clr_runtime::profiling::CallFaults;
use clr_scenario::{Exploration, Exploring, Keyword as _, Scenario};

/// Returns the settings of a search, or the word that means nothing.
pub(super) fn settings(search: &SearchLine, scenario: &Scenario) -> Result<Exploration, String> {
    let unknown = |what: &str, word: &str| format!("there is no {what} \"{word}\"");
    let by = strategy::named(&search.strategy, search.depth, search.preemptions)
        .ok_or_else(|| unknown("strategy", &search.strategy))?;
    let which = search.faults.as_deref().map(CallFaults::from_words).transpose()?;
    Ok(Exploration {
        by,
        schedules: search.schedules,
        seed: search.seed,
        rules: search.rules,
        instructions: search.instructions,
        faults: Faults { which: which.unwrap_or_default(), most: search.most_faults },
        ..crate::report::history::usual(scenario)
    })
}

/// Makes the report of a part of its line.
///
/// # Errors
/// A sentence says which interleaving does not end here as the line says.
pub(super) fn report(
    line: &PartLine,
    exploring: &Exploring<'_>,
    explorer: &mut Explorer<'_>,
    budget: &Budget,
) -> Result<Report, String> {
    let mut report = Report::default();
    (report.schedules, report.turns, report.injected) = (line.schedules, line.turns, line.injected);
    for failure in &line.failures {
        let schedule = schedule(&failure.schedule)?;
        let again =
            explorer.failure(&|setup| exploring.load(setup), budget, failure.number, schedule);
        let mut again = again.ok_or_else(|| {
            let name = &failure.schedule;
            format!("the interleaving {name} does not fail here: another build has found it, or in another text")
        })?;
        again.times = failure.times;
        match report.failure {
            None => report.failure = Some(again),
            Some(_) => report.further.push(again),
        }
    }
    for broken in &line.broken {
        let rule = ProfilerRule::from_word(&broken.rule)
            .ok_or_else(|| format!("there is no rule \"{}\"", broken.rule))?;
        report.broken.push((ThreadIndex(broken.thread), rule, schedule(&broken.schedule)?));
    }
    for waiting in &line.waiting {
        let (thread, schedule) = (ThreadIndex(waiting.thread), schedule(&waiting.schedule)?);
        let what = explorer.left_waiting(&|setup| exploring.load(setup), budget, thread, &schedule);
        let what = what.ok_or_else(|| {
            format!("thread {} does not wait at the end of {schedule} here: another build has found that", thread.0)
        })?;
        let interleavings = waiting.interleavings;
        report.waiting.push(LeftWaiting { thread, what, interleavings, schedule });
    }
    report.waiting.sort_by_key(|waiting| (waiting.thread, waiting.what));
    report.points = line.points.points();
    for clause in &line.clauses {
        report.clauses.push(clause.parse().map_err(|_| format!("there is no clause {clause}"))?);
    }
    let preemptions = match budget.strategy {
        Strategy::Exhaustive { preemptions } => preemptions,
        _ => None,
    };
    report.covered = match &line.covered {
        None => None,
        Some(covered) => Some(
            covered
                .coverage(preemptions)
                .ok_or("the limits of its waits are none that is known")?,
        ),
    };
    Ok(report)
}

fn schedule(text: &str) -> Result<ScheduleString, String> {
    text.parse().map_err(|error| format!("{text}: {error}"))
}
