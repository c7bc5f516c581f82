//! Verdicts as sentences.

use super::history::{History, TurnEvent};
use super::ids::ThreadIndex;
use super::verdict::Verdict;

/// Returns a verdict as a sentence, which says what was made to fail.
#[must_use]
pub fn headline(verdict: &Verdict, history: &History) -> String {
    let events = history.turns.iter().flat_map(|turn| &turn.events);
    let faults = events.filter_map(|event| match event {
        TurnEvent::Injected(fault) => {
            Some(format!("{} was made to fail with {}", fault.method, fault.result))
        }
        _ => None,
    });
    let faults: Vec<_> = faults.collect();
    let said = without_faults(verdict, history);
    if faults.is_empty() {
        return said;
    }
    format!("{said}, after {} (fault injection)", list(faults.into_iter()))
}

fn without_faults(verdict: &Verdict, history: &History) -> String {
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
            let gone = ended(history);
            let gone = if gone.is_empty() {
                String::new()
            } else {
                format!("; ended: {}", list(gone.into_iter()))
            };
            format!(
                "lost wake-up: {} waits for an event that no remaining thread can set{gone}",
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

/// Returns the names of the threads that have ended, but for the one that has started the runtime.
fn ended(history: &History) -> Vec<String> {
    let threads = (0..history.threads.len() as u32).map(ThreadIndex);
    let has_ended = |thread: &ThreadIndex| {
        let mut own = history.turns.iter().filter(|turn| turn.thread == *thread);
        own.any(|turn| turn.events.contains(&TurnEvent::Ends))
    };
    let others = threads.filter(|thread| history.starter != Some(*thread));
    others.filter(has_ended).map(|thread| visible(history.name(thread))).collect()
}

/// Joins names by commas, and the last one by "and".
pub fn list(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<_> = names.collect();
    match (names.pop(), names.is_empty()) {
        (Some(last), false) => format!("{} and {last}", names.join(", ")),
        (last, _) => last.unwrap_or_else(|| "no thread".to_owned()),
    }
}

/// Escapes the characters that are not [visible](is_visible).
#[must_use]
pub fn visible(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for char in text.chars() {
        if is_visible(char) {
            safe.push(char);
        } else {
            safe.extend(char.escape_unicode());
        }
    }
    safe
}

/// Returns false for control characters, for those that change the direction or layout of text, and for those that show
/// nothing: a terminal or a page that got them would do something, or hide something.
#[must_use]
pub const fn is_visible(char: char) -> bool {
    let is_noncharacter = matches!(char, '\u{fdd0}'..='\u{fdef}') || char as u32 & 0xfffe == 0xfffe;
    let changes_layout = matches!(char, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}');
    let is_control = matches!(char, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}');
    !(is_control || changes_layout || is_noncharacter)
}
