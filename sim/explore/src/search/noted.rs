//! Searches of histories that are executed elsewhere: in a copy of the process, whose search is lost with it.

use super::{Choice, Coverage, Search, State};
use crate::content::Contents;
use crate::ending::Ending;
use crate::footprint::Footprint;
use crate::history::ThreadIndex;
use crate::schedule_string::ScheduleString;
use core::fmt;
use core::str::FromStr;

/// The beginning of the word for the end of a history.
const RESTS: char = '.';

/// A switch point of a history, as its search saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotedTurn {
    turn: u64,
    runnable: Vec<ThreadIndex>,
    last: Option<ThreadIndex>,
    waits: Vec<(ThreadIndex, Footprint)>,
    state: u64,
    /// The thread that had the turn, with the turn's access set. `None` if the search gave up the history.
    ran: Option<(ThreadIndex, Footprint)>,
}

impl NotedTurn {
    /// Notes a switch point; with its state, if `has_state`.
    pub(super) fn new(at: &Choice<'_, '_>, has_state: bool) -> Self {
        let (turn, runnable, last) = (at.turn, at.runnable.to_vec(), at.last);
        let state = if has_state { at.state() } else { 0 };
        Self { turn, runnable, last, waits: at.waits.to_vec(), state, ran: None }
    }

    /// Returns the switch point.
    pub(super) fn choice(&self) -> Choice<'_, '_> {
        let Self { turn, runnable, last, waits, state, .. } = self;
        Choice { turn: *turn, runnable, last: *last, waits, state: State::Known(*state) }
    }
}

/// The questions that a search was asked in a history. Another search of the same state learns from them as
/// if it had been asked itself.
///
/// The text form is read by another process of the same build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotedHistory {
    turns: Vec<NotedTurn>,
    /// The threads that wait at the end, if no thread can run there.
    rests: Option<Vec<(ThreadIndex, Footprint)>>,
}

/// A search that notes what it is asked, if it learns from that.
pub struct NotingSearch<'s> {
    search: &'s mut dyn Search,
    noted: NotedHistory,
}

impl<'s> NotingSearch<'s> {
    /// Creates a search that answers as another one.
    pub fn new(search: &'s mut dyn Search) -> Self {
        Self { search, noted: NotedHistory::default() }
    }

    /// Returns what was noted.
    #[must_use]
    pub fn into_noted(self) -> NotedHistory {
        self.noted
    }
}

impl fmt::Debug for NotingSearch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotingSearch").field("noted", &self.noted).finish_non_exhaustive()
    }
}

impl Search for NotingSearch<'_> {
    fn begin(&mut self, number: u64) -> bool {
        self.noted = NotedHistory::default();
        self.search.begin(number)
    }

    fn choose(&mut self, at: &Choice<'_, '_>) -> Option<ThreadIndex> {
        if self.search.learns() {
            self.noted.turns.push(NotedTurn::new(at, true));
        }
        self.search.choose(at)
    }

    fn ran(&mut self, thread: ThreadIndex, footprint: Footprint, _: Option<&Contents>) {
        if let Some(turn) = self.noted.turns.last_mut() {
            turn.ran = Some((thread, footprint));
        }
        self.search.ran(thread, footprint, None);
    }

    fn rests(&mut self, waits: &[(ThreadIndex, Footprint)]) {
        self.noted.rests = Some(waits.to_vec());
        self.search.rests(waits);
    }

    fn end(&mut self, ending: &Ending) {
        self.search.end(ending);
    }

    fn learns(&self) -> bool {
        self.search.learns()
    }

    fn has_strayed(&self) -> bool {
        self.search.has_strayed()
    }

    fn covered(&self) -> Option<Coverage> {
        self.search.covered()
    }
}

impl NotedHistory {
    /// Makes a search that has begun this history learn from it: its choices are asked for again, and the end is
    /// reported.
    pub fn teach(&self, search: &mut dyn Search, schedule: &ScheduleString, in_turn: bool) {
        for noted in &self.turns {
            search.choose(&noted.choice());
            if let Some((thread, footprint)) = noted.ran {
                search.ran(thread, footprint, None);
            }
        }
        if let Some(waits) = &self.rests {
            search.rests(waits);
        }
        search.end(&Ending {
            verdict: None,
            broken: Vec::new(),
            turns: self.turns.len() as u64,
            in_turn,
            schedule: schedule.clone(),
            history: None,
        });
    }
}

/// Threads that wait, as text.
pub(super) struct Waits<'w>(pub(super) &'w [(ThreadIndex, Footprint)]);

/// Writes `thread=footprint,…`.
impl fmt::Display for Waits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (thread, decides)) in self.0.iter().enumerate() {
            write!(f, "{}{}={decides}", if place == 0 { "" } else { "," }, thread.0)?;
        }
        Ok(())
    }
}

/// Reads the threads that wait. `None` if the word is something else.
pub(super) fn waits(word: &str) -> Option<Vec<(ThreadIndex, Footprint)>> {
    let words = word.split(',').filter(|word| !word.is_empty());
    let wait = |word: &str| {
        let (thread, decides) = word.split_once('=')?;
        Some((ThreadIndex(thread.parse().ok()?), decides.parse().ok()?))
    };
    words.map(wait).collect()
}

/// Writes a switch point as a word: `turn:runnable,…:last:state:thread:footprint:waits`.
impl fmt::Display for NotedTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { turn, runnable, last, waits, state, ran } = self;
        write!(f, "{turn}:")?;
        for (place, thread) in runnable.iter().enumerate() {
            write!(f, "{}{}", if place == 0 { "" } else { "," }, thread.0)?;
        }
        f.write_str(":")?;
        if let Some(last) = last {
            write!(f, "{}", last.0)?;
        }
        write!(f, ":{state:x}:")?;
        match ran {
            Some((thread, footprint)) => write!(f, "{}:{footprint}", thread.0)?,
            None => f.write_str(":")?,
        }
        write!(f, ":{}", Waits(waits))
    }
}

impl fmt::Display for NotedHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, noted) in self.turns.iter().enumerate() {
            write!(f, "{}{noted}", if place == 0 { "" } else { " " })?;
        }
        if let Some(waits) = &self.rests {
            write!(f, " {RESTS}{}", Waits(waits))?;
        }
        Ok(())
    }
}

impl FromStr for NotedHistory {
    /// A word that is no switch point, by its number.
    type Err = usize;

    fn from_str(text: &str) -> Result<Self, usize> {
        let words = text.split(' ').filter(|word| !word.is_empty()).enumerate();
        let mut noted = Self::default();
        for (place, word) in words {
            match word.strip_prefix(RESTS) {
                Some(word) => noted.rests = Some(waits(word).ok_or(place)?),
                None => noted.turns.push(turn(word).ok_or(place)?),
            }
        }
        Ok(noted)
    }
}

/// Reads a switch point. `None` if the word is none.
pub(super) fn turn(word: &str) -> Option<NotedTurn> {
    let mut parts = word.split(':');
    let mut part = || parts.next();
    let thread = |text: &str| text.parse().ok().map(ThreadIndex);
    let turn = part()?.parse().ok()?;
    let runnable = part()?.split(',').map(thread).collect::<Option<_>>()?;
    let last = part().filter(|last| !last.is_empty()).map(thread);
    let state = u64::from_str_radix(part()?, 16).ok()?;
    let ran = part().filter(|ran| !ran.is_empty()).map(thread);
    let footprint = part()?.parse().ok();
    let waits = waits(part()?)?;
    let ran = match ran {
        Some(ran) => Some((ran?, footprint?)),
        None => None,
    };
    let last = match last {
        Some(last) => Some(last?),
        None => None,
    };
    Some(NotedTurn { turn, runnable, last, waits, state, ran })
}
