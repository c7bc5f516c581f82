//! Searches of interleavings that are executed elsewhere: in a copy of the process, whose search is lost with it.

use super::contents::Contents;
use super::ending::Ending;
use super::footprint::Footprint;
use super::ids::ThreadIndex;
use super::schedule_string::ScheduleString;
use super::search::{
    Choice, FallibleCall, Injector, Observer, ProcessState, Progress, Search, Step,
};
use clr_runtime::profiling::{CallFault, CallFaults};
use core::fmt;
use core::str::FromStr;

/// The beginning of the word for the end of an interleaving.
const RESTS: char = '.';
/// The beginning of the word for a call that may fail.
const FALLIBLE: char = '+';

/// A switch point of an interleaving, as its search saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotedTurn {
    turn: u64,
    runnable: Vec<ThreadIndex>,
    last: Option<ThreadIndex>,
    waits: Vec<(ThreadIndex, Footprint)>,
    state: NotedState,
    /// The thread that had the turn, with the turn's access set. `None` if the search gave up the interleaving.
    ran: Option<(ThreadIndex, Footprint)>,
}

impl NotedTurn {
    /// Notes a switch point; with its state, if `has_state`.
    pub(super) fn new(at: &Choice<'_>, has_state: bool) -> Self {
        let (turn, runnable, last) = (at.turn, at.runnable.to_vec(), at.last);
        let state = NotedState(if has_state { at.process.abstract_state() } else { 0 });
        Self { turn, runnable, last, waits: at.waits.to_vec(), state, ran: None }
    }

    /// Returns the switch point.
    pub(super) fn choice(&self) -> Choice<'_> {
        let Self { turn, runnable, last, waits, state, .. } = self;
        Choice { turn: *turn, runnable, last: *last, within: false, waits, process: state }
    }
}

/// The state of a process elsewhere: its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotedState(u64);

impl ProcessState for NotedState {
    fn abstract_state(&self) -> u64 {
        self.0
    }

    fn contents(&self) -> Option<Contents> {
        None
    }
}

/// The questions that a search was asked in an interleaving. Another search of the same state learns from them as
/// if it had been asked itself.
///
/// The text form is read by another process of the same build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotedHistory {
    turns: Vec<NotedTurn>,
    /// The threads that wait at the end, if no thread can run there.
    rests: Option<Vec<(ThreadIndex, Footprint)>>,
    /// The calls that might have failed.
    calls: Vec<FallibleCall>,
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

    fn choose(&mut self, at: &Choice<'_>) -> Option<ThreadIndex> {
        if self.search.observer().is_some() {
            self.noted.turns.push(NotedTurn::new(at, true));
        }
        self.search.choose(at)
    }

    fn end(&mut self, ending: &Ending) {
        self.search.end(ending);
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        let is_observed = self.search.observer().is_some();
        is_observed.then_some(self)
    }

    fn injector(&mut self) -> Option<&mut dyn Injector> {
        let injects = self.search.injector().is_some();
        injects.then_some(self)
    }

    fn progress(&self) -> Progress {
        self.search.progress()
    }
}

impl Injector for NotingSearch<'_> {
    fn fails(&mut self, call: FallibleCall) -> Option<CallFault> {
        if self.search.observer().is_some() {
            self.noted.calls.push(call);
        }
        self.search.injector()?.fails(call)
    }
}

impl Observer for NotingSearch<'_> {
    fn stepped(&mut self, step: &Step<'_>) {
        if let Some(turn) = self.noted.turns.last_mut() {
            turn.ran = Some((step.thread, step.footprint));
        }
        stepped(self.search, step.thread, step.footprint);
    }

    fn stopped(&mut self, waits: &[(ThreadIndex, Footprint)]) {
        self.noted.rests = Some(waits.to_vec());
        if let Some(observer) = self.search.observer() {
            observer.stopped(waits);
        }
    }
}

/// Reports a turn of another process, whose contents are not known, to a search.
pub(super) fn stepped(search: &mut dyn Search, thread: ThreadIndex, footprint: Footprint) {
    if let Some(observer) = search.observer() {
        observer.stepped(&Step { thread, footprint, contents: &|| None });
    }
}

impl NotedHistory {
    /// Makes a search that has begun this interleaving learn from it: its choices are asked for again, and the end is
    /// reported.
    pub fn teach(&self, search: &mut dyn Search, schedule: &ScheduleString, in_turn: bool) {
        for call in &self.calls {
            let _ = search.injector().and_then(|injector| injector.fails(*call));
        }
        for noted in &self.turns {
            search.choose(&noted.choice());
            if let Some((thread, footprint)) = noted.ran {
                stepped(search, thread, footprint);
            }
        }
        if let (Some(waits), Some(observer)) = (&self.rests, search.observer()) {
            observer.stopped(waits);
        }
        search.end(&Ending {
            turns: self.turns.len() as u64,
            in_turn,
            schedule: schedule.clone(),
            ..Ending::default()
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

/// A call that may fail, as text.
pub(super) struct Fallible(pub(super) FallibleCall);

/// Writes `thread,number,failures`.
impl fmt::Display for Fallible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FallibleCall { thread, number, possible } = self.0;
        write!(f, "{},{number},{}", thread.0, possible.bits())
    }
}

/// Reads a call that may fail. `None` if the word is something else.
pub(super) fn fallible(word: &str) -> Option<FallibleCall> {
    let mut numbers = word.split(',').map(|number| number.parse::<u32>().ok());
    let mut number = || numbers.next()?;
    Some(FallibleCall {
        thread: ThreadIndex(number()?),
        number: number()?,
        possible: CallFaults::from_bits(number()?),
    })
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
        write!(f, ":{:x}:", state.0)?;
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
        for call in &self.calls {
            write!(f, " {FALLIBLE}{}", Fallible(*call))?;
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
            if let Some(word) = word.strip_prefix(RESTS) {
                noted.rests = Some(waits(word).ok_or(place)?);
            } else if let Some(word) = word.strip_prefix(FALLIBLE) {
                noted.calls.push(fallible(word).ok_or(place)?);
            } else {
                noted.turns.push(turn(word).ok_or(place)?);
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
    let state = NotedState(u64::from_str_radix(part()?, 16).ok()?);
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
