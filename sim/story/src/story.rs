//! Stories of failed histories: the wait cycle if threads wait for each other, the last steps
//! of each thread, the hazard, and the way to avoid it.

use crate::Hazard;
use crate::timeline::words::{describe, why};
use crate::timeline::{TimelineRow, TimelineSpan, Tone};
use clr_explore::{
    BlockReason, Edge, History, Report, ThreadIndex, ThreadStatus, Turn, TurnEvent, Verdict,
    headline, list, visible,
};

/// Number of last steps that are printed for a thread.
const STEPS: usize = 8;
/// Number of threads beside those that a verdict is about, of which something is printed.
const OTHERS: usize = 24;
/// Number of stack frames that are printed.
const FRAMES: usize = 6;

/// Returns the threads that a verdict is about, ascending.
fn threads(verdict: &Verdict) -> Vec<ThreadIndex> {
    let mut threads = match verdict {
        Verdict::Deadlock(edges) => {
            edges.iter().flat_map(|edge| [edge.waits, edge.for_whom]).collect()
        }
        Verdict::LiveLock => Vec::new(),
        Verdict::LostWakeUp(by)
        | Verdict::Watchdog(by)
        | Verdict::DestroyedThread { by }
        | Verdict::UnloadedCode { by }
        | Verdict::ProcessKilled { by, .. }
        | Verdict::Broken { by, .. }
        | Verdict::Failed { by, .. } => vec![*by],
    };
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// Describes a failed interleaving in rows: the verdict, the waits, the last steps of each thread
/// involved and its status, the hazard, and the way to avoid it.
#[must_use]
pub fn story(verdict: &Verdict, history: &History) -> Vec<TimelineRow> {
    let mut rows = vec![row([(headline(verdict, history), Tone::Bad)])];
    if let Verdict::Deadlock(edges) = verdict {
        rows.extend(edges.iter().map(|edge| edge_row(history, edge)));
    }
    if let Verdict::LostWakeUp(_) = verdict {
        rows.extend(unheard(history));
    }
    let mut threads = threads(verdict);
    if threads.is_empty() {
        threads = (0..history.threads.len() as u32).map(ThreadIndex).collect();
    }
    for thread in &threads {
        rows.push(TimelineRow::default());
        last_steps(verdict, history, *thread, &mut rows);
    }
    others(verdict, history, &threads, &mut rows);
    if let Some(hazard) = Hazard::of(verdict, history) {
        rows.push(TimelineRow::default());
        let number = (hazard.to_string(), Tone::Head);
        rows.push(row([number, (format!(": {}", hazard.title()), Tone::Plain)]));
        for clause in hazard.clauses() {
            if let Some(entry) = clause.entry() {
                let rule = (format!(" {}", entry.rule), Tone::Plain);
                rows.push(row([(format!("  {clause}"), Tone::Dim), rule]));
            }
        }
        let avoided = (hazard.avoided_by().to_owned(), Tone::Plain);
        rows.push(row([("  what avoids it: ".to_owned(), Tone::Dim), avoided]));
    }
    rows
}

/// Returns the message of a test whose profiler fails: the story of the failure and its schedule
/// string. Of a search that has found no failure, returns how far it went.
#[must_use]
pub fn failure_story(report: &Report) -> String {
    let Some(failure) = &report.failure else { return report.to_string() };
    let rows = story(&failure.verdict, &failure.history);
    let lines = rows.iter().map(ToString::to_string).chain([failure.again()]);
    lines.collect::<Vec<_>>().join("\n")
}

fn row<const N: usize>(spans: [(String, Tone); N]) -> TimelineRow {
    TimelineRow {
        spans: spans.into_iter().map(|(text, tone)| TimelineSpan { text, tone }).collect(),
    }
}

fn edge_row(history: &History, edge: &Edge) -> TimelineRow {
    let tone = match edge.why {
        BlockReason::Suspended => Tone::Suspended,
        _ => Tone::Waiting,
    };
    row([
        (format!("  {}", visible(history.name(edge.waits))), Tone::Head),
        (format!(" {} ", visible(&why(history, edge.why))), tone),
        (visible(history.name(edge.for_whom)), Tone::Head),
    ])
}

/// Returns a row for each notification that was lost.
fn unheard(history: &History) -> impl Iterator<Item = TimelineRow> {
    history.turns.iter().flat_map(move |turn| {
        let lost = turn.events.iter().filter(|event| matches!(event, TurnEvent::Unheard(_)));
        lost.map(move |event| {
            let name = (format!("  {}", visible(history.name(turn.thread))), Tone::Head);
            row([name, (format!(" {}", describe(history, *event, None)), Tone::Waiting)])
        })
    })
}

/// Adds the last steps of a thread and its status: of one that breaks a rule, as it does so.
fn last_steps(
    verdict: &Verdict,
    history: &History,
    thread: ThreadIndex,
    rows: &mut Vec<TimelineRow>,
) {
    rows.push(row([(visible(history.name(thread)), Tone::Head)]));
    let turns = up_to_breach(verdict, &history.turns);
    let own = turns.iter().filter(|turn| turn.thread == thread);
    let steps: Vec<(&Turn, TurnEvent)> = own
        .flat_map(|turn| turn.events.iter().map(move |event| (turn, *event)))
        .filter(|(_, event)| !matches!(event, TurnEvent::Begins | TurnEvent::Waits))
        .collect();
    let left_out = steps.len().saturating_sub(STEPS);
    if left_out > 0 {
        let before = if left_out == 1 { "a step" } else { "steps" };
        let count = if left_out == 1 { String::new() } else { format!("{left_out} ") };
        rows.push(row([(format!("  … {count}{before} before"), Tone::Dim)]));
    }
    for (turn, step) in steps.iter().skip(left_out) {
        let at = (format!("  {:>7} ", turn.at), Tone::Dim);
        rows.push(row([at, (describe(history, *step, None), Tone::Plain)]));
    }
    let status = turns.last().and_then(|last| last.statuses.get(thread.index()));
    if let Some(status) = status {
        status_rows(history, status, rows);
    }
}

/// Returns the turns up to the one in which the rule of a verdict was broken; otherwise all.
fn up_to_breach<'t>(verdict: &Verdict, turns: &'t [Turn]) -> &'t [Turn] {
    let Verdict::Broken { by, rule } = *verdict else { return turns };
    let breach = |turn: &Turn| turn.thread == by && turn.events.contains(&TurnEvent::Breaks(rule));
    match turns.iter().position(breach) {
        Some(place) => turns.get(..=place).unwrap_or(turns),
        None => turns,
    }
}

/// Adds where each thread is that the verdict is not about: what explains the failure is often there.
fn others(
    verdict: &Verdict,
    history: &History,
    about: &[ThreadIndex],
    rows: &mut Vec<TimelineRow>,
) {
    let Some(last) = up_to_breach(verdict, &history.turns).last() else { return };
    let all = (0..).map(ThreadIndex).zip(&last.statuses);
    let mut others = all.filter(|(thread, _)| !about.contains(thread)).peekable();
    if others.peek().is_none() {
        return;
    }
    rows.extend([TimelineRow::default(), row([("the other threads".to_owned(), Tone::Plain)])]);
    let left = others.clone().count().saturating_sub(OTHERS);
    rows.extend(others.take(OTHERS).map(|(thread, status)| {
        let name = (format!("  {}", visible(history.name(thread))), Tone::Head);
        let what = (format!(" {}", whereabouts(history, thread, status)), Tone::Plain);
        let stack = if status.ended { None } else { stack(status) };
        row([name, what, (stack.map(|it| format!(": {it}")).unwrap_or_default(), Tone::Plain)])
    }));
    if left > 0 {
        rows.push(row([(format!("  … {left} others"), Tone::Dim)]));
    }
}

/// Returns what a thread does at the end, in words that follow its name.
fn whereabouts(history: &History, thread: ThreadIndex, status: &ThreadStatus) -> String {
    if status.ended {
        return "has ended".to_owned();
    }
    if let Some(edge) = status.edges.first() {
        let for_whom = status.edges.iter().filter(|it| it.why == edge.why).map(|it| it.for_whom);
        let names = list(for_whom.map(|thread| visible(history.name(thread))));
        return format!("{} {names}", visible(&why(history, edge.why)));
    }
    let has_begun = history.turns.iter().any(|turn| turn.thread == thread);
    let otherwise = if has_begun { "could go on" } else { "has not begun" };
    status.waits.as_deref().map_or_else(|| otherwise.to_owned(), visible)
}

/// Returns the frames of a thread's stack, of many the first ones.
fn stack(status: &ThreadStatus) -> Option<String> {
    let frames = status.stack.iter().take(FRAMES).map(|frame| visible(frame));
    let mut stack = frames.collect::<Vec<_>>().join(" < ");
    if status.stack.len() > FRAMES {
        stack.push_str(" < …");
    }
    (!stack.is_empty()).then_some(stack)
}

fn status_rows(history: &History, status: &ThreadStatus, rows: &mut Vec<TimelineRow>) {
    let name = |thread: &ThreadIndex| visible(history.name(*thread));
    if !status.suspended_by.is_empty() {
        let by = list(status.suspended_by.iter().map(name));
        let once = if status.in_system { ", once its call of the system returns" } else { "" };
        rows.push(row([(format!("  suspended by {by}{once}"), Tone::Suspended)]));
    }
    if !status.holds.is_empty() {
        let locks = list(status.holds.iter().map(|lock| visible(&history.lock_name(*lock))));
        rows.push(row([(format!("  owns {locks}"), Tone::Lock)]));
    }
    if status.ended {
        rows.push(row([("  has ended".to_owned(), Tone::Dim)]));
    } else if let Some(stack) = stack(status) {
        rows.push(row([("  stack: ".to_owned(), Tone::Dim), (stack, Tone::Plain)]));
    }
}
