//! Which slices are told together: those of a thread that goes on, and those in which nothing but
//! execution happens.

use super::state::State;
use super::words::{Told, happenings, instructions, summary};
use crate::{Edge, Happening, History, Slice, ThreadIndex};
use std::ops::Range;

/// How long a repetition may be, in entries.
const PERIOD: usize = 16;
/// How many entries a repetition has to spare.
const SPARED: usize = 3;

/// Slices that are told together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Which slices; never empty.
    pub(super) slices: Range<usize>,
    /// Whose they are, each once.
    pub(super) threads: Vec<ThreadIndex>,
    /// What happened.
    pub(super) told: Vec<String>,
    /// Whom somebody did something to, or waits for.
    pub(super) links: Vec<Link>,
    /// How much time went by before them, in which nobody could run (µs).
    pub(super) pause: u64,
    dull: bool,
}

/// One thread does something to another, or waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) from: ThreadIndex,
    pub(super) to: ThreadIndex,
    pub(super) waits: bool,
}

/// What is drawn one below the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Entry(Entry),
    /// The entries right above happen again and again.
    Again {
        /// How many of them.
        entries: usize,
        /// How many more times.
        times: usize,
        /// The last slice of the last time.
        last: usize,
    },
}

/// Everything, or with the dull parts folded.
pub(super) fn items(history: &History, states: &[Vec<State<'_>>], fold: bool) -> Vec<Item> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut from = 0;
    while from < history.slices.len() {
        let run = if fold { run(history, from) } else { 1 };
        let entry = entry(history, states, from..from + run);
        from += run;
        match entries.last_mut() {
            Some(last) if fold && last.dull && entry.dull && entry.pause == 0 => {
                last.slices.end = entry.slices.end;
                for thread in entry.threads {
                    if !last.threads.contains(&thread) {
                        last.threads.push(thread);
                    }
                }
                let slices = history.slices.get(last.slices.clone()).unwrap_or_default();
                last.told = vec![turns(last.threads.len(), slices)];
            }
            _ => entries.push(entry),
        }
    }
    if fold { repeated(&entries) } else { entries.into_iter().map(Item::Entry).collect() }
}

/// How many slices of the same thread begin here, one after the other without a pause. What somebody
/// does to another thread and what somebody waits for are told apart.
fn run(history: &History, from: usize) -> usize {
    let rest = history.slices.get(from..).unwrap_or_default();
    let mut linked = rest.first().and_then(link);
    let together = |pair: &&[Slice]| {
        let [one, next] = pair else { return false };
        let before = linked;
        linked = link(next).or(linked);
        one.thread == next.thread && pause(one, next) == 0 && (before.is_none() || before == linked)
    };
    1 + rest.windows(2).take_while(together).count()
}

/// Whether a slice has to do with other threads: because it waits for one?
fn link(slice: &Slice) -> Option<bool> {
    slice.happenings.iter().find_map(|happening| match happening {
        Happening::Waits => Some(true),
        Happening::Suspended(_) | Happening::Resumed(_) | Happening::Context(_) => Some(false),
        _ => None,
    })
}

/// A slice takes a microsecond; what is more went by while nobody could run.
fn pause(one: &Slice, next: &Slice) -> u64 {
    next.at.saturating_sub(one.at).saturating_sub(1)
}

fn entry(history: &History, states: &[Vec<State<'_>>], slices: Range<usize>) -> Entry {
    let mut told: Vec<Told<'_>> = Vec::new();
    let mut links = Vec::new();
    let mut threads = Vec::new();
    let before = slices.start.checked_sub(1).and_then(|before| history.slices.get(before));
    let first = history.slices.get(slices.start);
    let pause = before.zip(first).map_or(0, |(before, first)| pause(before, first));
    for place in slices.clone() {
        let Some(slice) = history.slices.get(place) else { continue };
        let from = slice.thread;
        if !threads.contains(&from) {
            threads.push(from);
        }
        let state = states.get(place).and_then(|states| states.get(from.index()));
        let waits = state.and_then(|state| state.waits.as_deref());
        for happening in happenings(slice) {
            told.push((happening, waits));
            match happening {
                Happening::Suspended(to) | Happening::Resumed(to) | Happening::Context(to) => {
                    links.push(Link { from, to, waits: false });
                }
                Happening::Waits => {
                    let edges = state.map_or(&[][..], |state| &state.edges);
                    let link = |edge: &Edge| Link { from, to: edge.for_whom, waits: true };
                    links.extend(edges.iter().map(link));
                }
                _ => {}
            }
        }
    }
    let dull = told.iter().all(|(happening, _)| matches!(happening, Happening::Executed(_)));
    Entry { slices, threads, told: summary(history, &told), links, pause, dull }
}

/// What several threads execute in turns.
fn turns(threads: usize, slices: &[Slice]) -> String {
    let happenings = slices.iter().flat_map(|slice| &slice.happenings);
    let all: Vec<Told<'_>> = happenings.map(|happening| (*happening, None)).collect();
    let (turns, count) = (slices.len(), instructions(&all));
    format!("{threads} threads execute {count} instructions in {turns} turns")
}

/// With what repeats itself drawn once.
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
        let last = entries.get(from - 1).map_or(0, |entry| entry.slices.end.saturating_sub(1));
        items.push(Item::Again { entries: period, times: times - 1, last });
    }
    items
}

/// How often the first entries are there, one time after the other.
fn times(entries: &[Entry], period: usize) -> usize {
    let Some((first, _)) = entries.split_at_checked(period) else { return 0 };
    let same = |chunk: &&[Entry]| {
        chunk.len() == period && chunk.iter().zip(first).all(|(one, other)| one.is_like(other))
    };
    entries.chunks(period).take_while(same).count()
}

impl Entry {
    /// Whether the same is told of both.
    fn is_like(&self, other: &Self) -> bool {
        self.threads == other.threads
            && self.told == other.told
            && self.links == other.links
            && self.pause == other.pause
    }
}
