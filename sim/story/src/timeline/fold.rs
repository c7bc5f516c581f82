//! Folding of turns: consecutive turns of one thread, and turns that only execute instructions,
//! form one entry.

use super::state::State;
use super::words::{DescribedEvent, events, instructions, summary};
use clr_explore::{Edge, History, ThreadIndex, Turn, TurnEvent};
use std::ops::Range;

/// Maximum length of a repetition, in entries.
const PERIOD: usize = 16;
/// Minimum number of entries that a repetition must save.
const SPARED: usize = 3;

/// Turns that are printed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Indices of the turns; never empty.
    pub(super) turns: Range<usize>,
    /// Threads of the turns, each once.
    pub(super) threads: Vec<ThreadIndex>,
    /// Texts of the events.
    pub(super) texts: Vec<String>,
    /// Actions on other threads, and waits for them.
    pub(super) links: Vec<Link>,
    /// Virtual time that was skipped before the turns (µs).
    pub(super) pause: u64,
    dull: bool,
}

/// An action of one thread on another, or a wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) from: ThreadIndex,
    pub(super) to: ThreadIndex,
    pub(super) waits: bool,
}

/// An element of the drawing, from top to bottom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Entry(Entry),
    /// The entries directly above are repeated.
    Again {
        /// Number of repeated entries.
        entries: usize,
        /// Number of repetitions.
        times: usize,
        /// Last turn of the last repetition.
        last: usize,
    },
}

/// Returns all turns as entries, optionally folded.
pub(super) fn items(history: &History, states: &[Vec<State<'_>>], fold: bool) -> Vec<Item> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut from = 0;
    while from < history.turns.len() {
        let run = if fold { run(history, from) } else { 1 };
        let entry = entry(history, states, from..from + run);
        from += run;
        match entries.last_mut() {
            Some(last) if fold && last.dull && entry.dull && entry.pause == 0 => {
                last.turns.end = entry.turns.end;
                for thread in entry.threads {
                    if !last.threads.contains(&thread) {
                        last.threads.push(thread);
                    }
                }
                let turns = history.turns.get(last.turns.clone()).unwrap_or_default();
                last.texts = vec![executed(last.threads.len(), turns)];
            }
            _ => entries.push(entry),
        }
    }
    if fold { repeated(&entries) } else { entries.into_iter().map(Item::Entry).collect() }
}

/// Returns the number of consecutive turns of the same thread without a pause that begin here.
/// Actions on other threads and waits are kept apart.
fn run(history: &History, from: usize) -> usize {
    let rest = history.turns.get(from..).unwrap_or_default();
    let mut linked = rest.first().and_then(link);
    let together = |pair: &&[Turn]| {
        let [one, next] = pair else { return false };
        let before = linked;
        linked = link(next).or(linked);
        one.thread == next.thread && pause(one, next) == 0 && (before.is_none() || before == linked)
    };
    1 + rest.windows(2).take_while(together).count()
}

/// Returns true if a turn waits for another thread, false if it acts on one, and `None` if it does
/// neither.
fn link(turn: &Turn) -> Option<bool> {
    turn.events.iter().find_map(|event| match event {
        TurnEvent::Waits => Some(true),
        TurnEvent::Suspended(_)
        | TurnEvent::Resumed(_)
        | TurnEvent::Started(_)
        | TurnEvent::Context(_) => Some(false),
        _ => None,
    })
}

/// Returns the virtual time that was skipped between two turns: a turn itself takes a microsecond.
fn pause(one: &Turn, next: &Turn) -> u64 {
    next.at.saturating_sub(one.at).saturating_sub(1)
}

fn entry(history: &History, states: &[Vec<State<'_>>], turns: Range<usize>) -> Entry {
    let mut described: Vec<DescribedEvent<'_>> = Vec::new();
    let mut links = Vec::new();
    let mut threads = Vec::new();
    let before = turns.start.checked_sub(1).and_then(|before| history.turns.get(before));
    let first = history.turns.get(turns.start);
    let pause = before.zip(first).map_or(0, |(before, first)| pause(before, first));
    for place in turns.clone() {
        let Some(turn) = history.turns.get(place) else { continue };
        let from = turn.thread;
        if !threads.contains(&from) {
            threads.push(from);
        }
        let state = states.get(place).and_then(|states| states.get(from.index()));
        let waits = state.and_then(|state| state.waits.as_deref());
        for event in events(turn) {
            described.push((event, waits));
            match event {
                TurnEvent::Suspended(to)
                | TurnEvent::Resumed(to)
                | TurnEvent::Started(to)
                | TurnEvent::Context(to) => {
                    links.push(Link { from, to, waits: false });
                }
                TurnEvent::Waits => {
                    let edges = state.map_or(&[][..], |state| &state.edges);
                    let link = |edge: &Edge| Link { from, to: edge.for_whom, waits: true };
                    links.extend(edges.iter().map(link));
                }
                _ => {}
            }
        }
    }
    let dull = described.iter().all(|(event, _)| matches!(event, TurnEvent::Executed(_)));
    Entry { turns, threads, texts: summary(history, &described), links, pause, dull }
}

/// Returns the text for instructions that several threads execute in turns.
fn executed(threads: usize, turns: &[Turn]) -> String {
    let events = turns.iter().flat_map(|turn| &turn.events);
    let all: Vec<DescribedEvent<'_>> = events.map(|event| (*event, None)).collect();
    let (turns, count) = (turns.len(), instructions(&all));
    format!("{threads} threads execute {count} instructions in {turns} turns")
}

/// Draws repetitions once.
fn repeated(entries: &[Entry]) -> Vec<Item> {
    let mut items = Vec::with_capacity(entries.len());
    let mut from = 0;
    while let Some(entry) = entries.get(from) {
        let rest = entries.get(from..).unwrap_or_default();
        let best = (1..=PERIOD)
            .map(|period| (period, times(rest, period)))
            .find(|(period, times)| *times > 1 && (times - 1) * period >= SPARED);
        let Some((period, times)) = best else {
            items.push(Item::Entry(entry.clone()));
            from += 1;
            continue;
        };
        items.extend(rest.iter().take(period).cloned().map(Item::Entry));
        from += period * times;
        let last = entries.get(from - 1).map_or(0, |entry| entry.turns.end.saturating_sub(1));
        items.push(Item::Again { entries: period, times: times - 1, last });
    }
    items
}

/// Returns the number of consecutive occurrences of the first entries.
fn times(entries: &[Entry], period: usize) -> usize {
    let Some((first, _)) = entries.split_at_checked(period) else { return 0 };
    let same = |chunk: &&[Entry]| {
        chunk.len() == period && chunk.iter().zip(first).all(|(one, other)| one.is_like(other))
    };
    entries.chunks(period).take_while(same).count()
}

impl Entry {
    /// Returns true if both entries have the same text.
    fn is_like(&self, other: &Self) -> bool {
        self.threads == other.threads
            && self.texts == other.texts
            && self.links == other.links
            && self.pause == other.pause
    }
}
