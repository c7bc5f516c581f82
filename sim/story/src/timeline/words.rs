//! Texts of turn events, with the names of threads.

use super::rows::Tone;
use super::state::{Life, State};
use clr_explore::{BlockReason, History, ThreadIndex, ThreadKind, Turn, TurnEvent, visible};

/// Returns the reason why a thread waits for another, as words to be followed by the other's name.
pub(crate) fn why(history: &History, why: BlockReason) -> String {
    match why {
        BlockReason::Lock(lock) => {
            format!("waits for {}, which is owned by", history.lock_name(lock))
        }
        other => other.to_string(),
    }
}

/// Returns the kind of a thread in words.
pub(super) const fn kind(kind: ThreadKind) -> &'static str {
    match kind {
        ThreadKind::App => "program",
        ThreadKind::Profiler => "profiler",
        ThreadKind::ManagedProfiler => "profiler, has run managed code",
    }
}

/// Returns the text of an event. `waits` is the condition that the thread waits for, if it is
/// known.
pub(crate) fn describe(history: &History, event: TurnEvent, waits: Option<&str>) -> String {
    match event {
        TurnEvent::Waits => match waits.map(|waits| waits.strip_prefix("waits").ok_or(waits)) {
            Some(Ok(what)) => format!("has to wait{}", visible(what)),
            Some(Err(waits)) => visible(waits),
            None => event.to_string(),
        },
        TurnEvent::Acquired(lock) => format!("takes {}", visible(&history.lock_name(lock))),
        TurnEvent::Released(lock) => format!("gives back {}", visible(&history.lock_name(lock))),
        TurnEvent::Suspended(target) => format!("suspends {}", visible(history.name(target))),
        TurnEvent::Started(target) => format!("starts {}", visible(history.name(target))),
        TurnEvent::Resumed(target) => format!("resumes {}", visible(history.name(target))),
        TurnEvent::Context(target) => {
            format!("reads the registers of {}", visible(history.name(target)))
        }
        TurnEvent::Called(method, target) => format!("calls {}", call(history, method, target)),
        TurnEvent::Refused(reason) => visible(history.reason(reason)),
        other => visible(&other.to_string()),
    }
}

/// Returns the name of a method, with that of the thread that its call is about.
fn call(history: &History, method: &str, target: Option<ThreadIndex>) -> String {
    match target {
        Some(target) => format!("{method} of {}", visible(history.name(target))),
        None => method.to_owned(),
    }
}

/// An event, and the condition that the thread waited for after the turn.
pub(super) type DescribedEvent<'h> = (TurnEvent, Option<&'h str>);

/// Returns the events of a turn, without the wait that follows a sleep.
pub(super) fn events(turn: &Turn) -> impl Iterator<Item = TurnEvent> {
    let mut last = None;
    turn.events.iter().copied().filter(move |event| {
        let slept = matches!(last.replace(*event), Some(TurnEvent::Sleeps(_)));
        !(slept && *event == TurnEvent::Waits)
    })
}

/// Returns the texts of consecutive events, with related events combined.
pub(super) fn summary(history: &History, events: &[DescribedEvent<'_>]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = events;
    while let [first, after @ ..] = rest {
        let alike = after.iter().take_while(|next| is_more_of(*first, **next)).count();
        let (run, others) = rest.split_at(alike + 1);
        rest = others;
        lines.push(match (first.0, rest) {
            (TurnEvent::Executed(_), _) => TurnEvent::Executed(instructions(run)).to_string(),
            (TurnEvent::SnapshotCallback, _) if alike > 0 => format!("gets {} frames", run.len()),
            (
                TurnEvent::Called(method, target),
                [(TurnEvent::Returned(of, outcome), _), others @ ..],
            ) if *of == method => {
                rest = others;
                format!("{}: {outcome}", call(history, method, target))
            }
            (TurnEvent::Callback(kind), [(TurnEvent::CallbackOver(of), _), others @ ..])
                if *of == kind =>
            {
                rest = others;
                format!("{}, leaves it", first.0)
            }
            (event, _) if alike > 0 => {
                format!("{} ({} times)", describe(history, event, first.1), run.len())
            }
            (event, _) => describe(history, event, first.1),
        });
    }
    lines
}

fn is_more_of(first: DescribedEvent<'_>, next: DescribedEvent<'_>) -> bool {
    first == next || matches!((first.0, next.0), (TurnEvent::Executed(_), TurnEvent::Executed(_)))
}

/// Returns the total number of instructions.
pub(super) fn instructions(run: &[DescribedEvent<'_>]) -> u32 {
    let count = |(event, _): &DescribedEvent<'_>| match event {
        TurnEvent::Executed(count) => *count,
        _ => 0,
    };
    run.iter().map(count).fold(0, u32::saturating_add)
}

/// Describes the status of a thread, from the reason why it is stopped to the locks it owns.
pub(super) fn status(history: &History, state: &State<'_>) -> Vec<(String, Tone)> {
    let mut lines = Vec::new();
    match state.life {
        Life::Waiting => return vec![("has not begun".to_owned(), Tone::Dim)],
        Life::Ended => return vec![("has ended".to_owned(), Tone::Dim)],
        Life::Lives => {}
    }
    if state.is_suspended() {
        let by: Vec<_> = state.suspended_by.iter().map(|by| visible(history.name(*by))).collect();
        lines.push((format!("suspended by {}", by.join(" and ")), Tone::Suspended));
    }
    if let Some(waits) = &state.waits {
        lines.push((visible(waits), Tone::Waiting));
    }
    if lines.is_empty() {
        lines.push(("could run".to_owned(), Tone::Dim));
    }
    if !state.inside.is_empty() {
        lines.push((format!("in {}", state.inside.join(", in ")), Tone::Callback));
    }
    if !state.holds.is_empty() {
        let name = |lock| visible(&history.lock_name(lock));
        let locks: Vec<_> = state.holds.iter().copied().map(name).collect();
        lines.push((format!("owns {}", locks.join(" and ")), Tone::Lock));
    }
    match state.cooperative {
        Some(true) => lines.push(("cooperative".to_owned(), Tone::Dim)),
        Some(false) => lines.push(("preemptive".to_owned(), Tone::Dim)),
        None => {}
    }
    lines
}
