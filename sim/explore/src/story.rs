//! Descriptions of failed histories: the wait cycle if threads wait for each other, the last steps
//! of each thread, the hazard, and the way to avoid it.

use super::check::Report;
use super::hazard::Hazard;
use super::history::{History, ThreadIndex, ThreadStatus, Turn, TurnEvent};
use super::timeline::words::{describe, visible, why};
use super::timeline::{TimelineRow, TimelineSpan, Tone};
use super::verdict::{Edge, ProfilerRule, Verdict};
use core::fmt;

/// Number of last steps that are printed for a thread.
const STEPS: usize = 8;
/// Number of stack frames that are printed.
const FRAMES: usize = 6;

impl fmt::Display for ProfilerRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SuspenderRanManagedCode => {
                "only a thread that has never run managed code may suspend others"
            }
            Self::AllocationWhileSuspended => {
                "no memory may be allocated while a thread is suspended"
            }
            Self::LockWhileSuspended => "no lock may be taken while a thread is suspended",
            Self::LogWhileSuspended => "nothing may be logged while a thread is suspended",
            Self::LoadingWhileSuspended => {
                "no module may be loaded and no symbol looked up while a thread is suspended"
            }
            Self::LockOverGcTrigger => "no lock may be held over a call that may trigger a GC",
            Self::CallbackTakesTargetsLock => {
                "the callback of a walk must not take a lock that the target may own"
            }
            Self::WalkOutlivesThread => "a walk must not outlive its target's ThreadDestroyed",
            Self::FirstCallWhileSuspended => {
                "the first call of a thread must be made while no thread is suspended"
            }
            Self::ResumeForgotten => "a suspended thread must be resumed",
            Self::ResumeDoubled => "only a suspended thread may be resumed",
        })
    }
}

/// Returns a verdict as a sentence.
#[must_use]
pub fn headline(verdict: &Verdict, history: &History) -> String {
    let name = |thread: ThreadIndex| visible(history.name(thread));
    match verdict {
        Verdict::Deadlock(edges) => {
            let mut waiting: Vec<_> = edges.iter().map(|edge| edge.waits).collect();
            waiting.sort_unstable();
            waiting.dedup();
            format!("deadlock: {} cannot go on", list(waiting.into_iter().map(name)))
        }
        Verdict::LiveLock => match history.turns.len() {
            0 => "live-lock: no end is reached".to_owned(),
            turns => format!("live-lock: no end is reached within {turns} turns"),
        },
        Verdict::LostWakeUp(thread) => {
            format!(
                "lost wake-up: {} waits for an event that no remaining thread can set",
                name(*thread)
            )
        }
        Verdict::DestroyedThread { by } => {
            format!("{} uses a thread that was destroyed", name(*by))
        }
        Verdict::UnloadedCode { by } => format!("{} uses code that was unloaded", name(*by)),
        Verdict::ProcessKilled { by, outcome } => {
            format!("the process dies on {}: {outcome}", name(*by))
        }
        Verdict::Watchdog(by) => format!("the watchdog barks on {}", name(*by)),
        Verdict::Broken { by, rule } => format!("{} breaks a rule: {rule}", name(*by)),
        Verdict::Failed { by, words } => format!("failed on {}: {}", name(*by), visible(words)),
    }
}

fn list(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<_> = names.collect();
    match (names.pop(), names.is_empty()) {
        (Some(last), false) => format!("{} and {last}", names.join(", ")),
        (last, _) => last.unwrap_or_else(|| "no thread".to_owned()),
    }
}

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

/// Describes a failed history in rows: the verdict, the waits, the last steps of each thread
/// involved and its status, the hazard, and the way to avoid it.
#[must_use]
pub fn story(verdict: &Verdict, history: &History) -> Vec<TimelineRow> {
    let mut rows = vec![row([(headline(verdict, history), Tone::Bad)])];
    if let Verdict::Deadlock(edges) = verdict {
        rows.extend(edges.iter().map(|edge| edge_row(history, edge)));
    }
    let mut threads = threads(verdict);
    if threads.is_empty() {
        threads = (0..history.threads.len() as u32).map(ThreadIndex).collect();
    }
    for thread in threads {
        rows.push(TimelineRow::default());
        last_steps(verdict, history, thread, &mut rows);
    }
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

/// Formats the story of the failure and its schedule string, or else the extent of the search. A
/// test prints this if its profiler fails.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { failure, schedules, broken, covered, .. } = self;
        let Some(failure) = failure else {
            let all = covered.is_some_and(|covered| covered.everything);
            let all = if all { ", which are all up to the order of independent steps" } else { "" };
            match schedules {
                1 => write!(f, "the history does not fail{all}")?,
                _ => write!(f, "none of {schedules} histories fails{all}")?,
            }
            for (_, rule, schedule) in broken {
                write!(f, "\na rule is broken without harm in {schedule}: {rule}")?;
            }
            return Ok(());
        };
        for row in story(&failure.verdict, &failure.history) {
            writeln!(f, "{row}")?;
        }
        let again = if failure.repeats { "again" } else { "not repeated by" };
        write!(f, "{again}: {}", failure.schedule)
    }
}

fn row<const N: usize>(spans: [(String, Tone); N]) -> TimelineRow {
    TimelineRow {
        spans: spans.into_iter().map(|(text, tone)| TimelineSpan { text, tone }).collect(),
    }
}

fn edge_row(history: &History, edge: &Edge) -> TimelineRow {
    let tone = match edge.why {
        super::BlockReason::Suspended => Tone::Suspended,
        _ => Tone::Waiting,
    };
    row([
        (format!("  {}", visible(history.name(edge.waits))), Tone::Head),
        (format!(" {} ", visible(&why(history, edge.why))), tone),
        (visible(history.name(edge.for_whom)), Tone::Head),
    ])
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
    } else if !status.stack.is_empty() {
        let frames = status.stack.iter().take(FRAMES).map(|frame| visible(frame));
        let mut stack = frames.collect::<Vec<_>>().join(" < ");
        if status.stack.len() > FRAMES {
            stack.push_str(" < …");
        }
        rows.push(row([("  stack: ".to_owned(), Tone::Dim), (stack, Tone::Plain)]));
    }
}
