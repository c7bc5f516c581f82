//! The execution of an interleaving in this process, which is over afterwards: threads of the guest may wait for ever.

use super::ending::{Detail, Executed, GuestEnding, Rules};
use super::{backtrace, guest_thread, sanitizer, system};
use crate::coverage::GuestCoverage;
use clr_explore::{
    Ending, Explorer, HistoryDetail, LastPlace, NotingSearch, Search, Setup, Verdict,
};
use clr_machine::Fnv1a;
use clr_scenario::Demands;
use clrsim::{Finding, Report};

/// Adds the stacks of the guest's threads to the last turn of an interleaving. The threads then stay where they are.
fn add_stacks(ending: &mut Ending) {
    let Some(turn) = ending.history.as_mut().and_then(|history| history.turns.last_mut()) else {
        return;
    };
    let imports = system::replacements().into_iter().map(|it| (it.with as u64, it.name)).collect();
    guest_thread::for_each(|thread, carrier| {
        let Some(registers) = system::stopped::registers(carrier) else { return };
        let frames = backtrace::frames(&registers, &imports);
        if let Some(status) = turn.statuses.get_mut(thread.index())
            && !frames.is_empty()
        {
            // The innermost activity is what the thread of the system executes.
            let (innermost, rest) = status.stack.split_at(1.min(status.stack.len()));
            status.stack =
                innermost.iter().cloned().chain(frames).chain(rest.iter().cloned()).collect();
        }
    });
}

/// Returns a digest of the guest's functions in which the threads of a verdict wait. They then stay where they are.
fn place(verdict: Option<&Verdict>) -> u64 {
    let waits = |thread| match verdict {
        Some(Verdict::Deadlock(edges)) => edges.iter().any(|edge| edge.waits == thread),
        Some(Verdict::LostWakeUp(waits)) => *waits == thread,
        _ => false,
    };
    let mut places = Vec::new();
    guest_thread::for_each(|thread, carrier| {
        if waits(thread)
            && let Some(registers) = system::stopped::registers(carrier)
        {
            places.push(backtrace::function(&registers));
        }
    });
    // Which thread is where depends on the interleaving.
    places.sort_unstable();
    let mut digest = Fnv1a::default();
    for place in &places {
        digest.write(&place.to_le_bytes());
    }
    if places.is_empty() { 0 } else { digest.finish() }
}

/// Returns the mistakes of a profiler that its interleavings have to show.
fn mistakes(report: &Report, ending: &Ending) -> Vec<Finding> {
    let busy = ending.threads.iter().filter(|thread| thread.at != LastPlace::Ended).count();
    let found = report.findings().iter().filter(|finding| match finding {
        Finding::Leak { .. } => !report.excuses(finding, busy),
        Finding::Rule(_)
        | Finding::Refused(_)
        | Finding::StartedThreads { .. }
        | Finding::WrongThread { .. }
        | Finding::Ended { .. } => false,
        _ => true,
    });
    found.copied().collect()
}

/// Executes an interleaving.
pub(super) fn run<'p>(
    explorer: &mut Explorer<'_>,
    load: &(dyn Fn(&mut Setup<'p>) + 'p),
    search: &mut dyn Search,
    rules: Rules,
    report: &dyn Fn() -> Report,
    demands: &Demands<'_>,
    detail: Detail<'_>,
) -> GuestEnding {
    let recorded = match detail {
        Detail::Ending => HistoryDetail::Events,
        _ => HistoryDetail::Statuses,
    };
    system::stopped::handle_faults();
    sanitizer::enters_tool();
    let mut noting = NotingSearch::new(search);
    let mut ending = explorer.run(load, &mut noting, rules.limits, recorded);
    let strayed = noting.progress().strayed;
    ending.verdict = ending.verdict.take().or_else(|| rules.broken(&ending));
    let report = report();
    let found = if ending.verdict.is_none() { mistakes(&report, &ending) } else { Vec::new() };
    let coverage = GuestCoverage::of(&ending, &report, demands);
    let place = place(ending.verdict.as_ref());
    let mut reported = GuestEnding { place, strayed, ..GuestEnding::of(&ending, &found, coverage) };
    match detail {
        Detail::Ending => reported.noted = noting.into_noted(),
        Detail::Description(describe)
        | Detail::Printed(describe)
        | Detail::Stopped(describe, _) => {
            add_stacks(&mut ending);
            let coverage = &reported.coverage;
            reported.description =
                describe(&Executed { ending: &ending, findings: &found, coverage });
        }
    }
    sanitizer::leaves_tool();
    reported
}
