//! Searches that another process makes: an interleaving asks for each choice in a line of text.

use super::ending::Ending;
use super::footprint::Footprint;
use super::ids::ThreadIndex;
use super::search::{Choice, FallibleCall, Injector, Observer, Search, Step};
use super::transcript::{Fallible, NotedTurn, Waits, fallible, stepped, turn, waits};
use clr_runtime::profiling::{CallFault, CallFaults};
use core::fmt;

/// A search that asks another one, by lines of text that [`answer`] understands. A line is read by a process of
/// the same build.
///
/// `ask` sends a line without its end, and returns the answer if the line is a question: `None` if the other process
/// does not answer, which gives the interleaving up.
pub struct RemoteSearch<F> {
    learns: bool,
    injects: bool,
    ask: F,
}

impl<F: FnMut(&str, bool) -> Option<String>> RemoteSearch<F> {
    /// Creates a search. `learns`: the other search learns from interleavings, and needs the states of switch points.
    /// `injects`: it makes calls fail.
    pub const fn new(learns: bool, injects: bool, ask: F) -> Self {
        Self { learns, injects, ask }
    }
}

impl<F> fmt::Debug for RemoteSearch<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteSearch").field("learns", &self.learns).finish_non_exhaustive()
    }
}

impl<F: FnMut(&str, bool) -> Option<String>> Search for RemoteSearch<F> {
    fn begin(&mut self, _: u64) -> bool {
        true
    }

    fn choose(&mut self, at: &Choice<'_>) -> Option<ThreadIndex> {
        let question = format!("choose {}", NotedTurn::new(at, self.learns));
        (self.ask)(&question, true)?.parse().ok().map(ThreadIndex)
    }

    fn end(&mut self, _: &Ending) {}

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        self.learns.then_some(self)
    }

    fn injector(&mut self) -> Option<&mut dyn Injector> {
        self.injects.then_some(self)
    }
}

impl<F: FnMut(&str, bool) -> Option<String>> Injector for RemoteSearch<F> {
    fn fails(&mut self, call: FallibleCall) -> Option<CallFault> {
        let answer = (self.ask)(&format!("fails {}", Fallible(call)), true)?;
        CallFaults::from_bits(answer.parse().ok()?).iter().next()
    }
}

impl<F: FnMut(&str, bool) -> Option<String>> Observer for RemoteSearch<F> {
    fn stepped(&mut self, step: &Step<'_>) {
        (self.ask)(&format!("ran {} {}", step.thread.0, step.footprint), false);
    }

    fn stopped(&mut self, waits: &[(ThreadIndex, Footprint)]) {
        (self.ask)(&format!("rests {}", Waits(waits)), false);
    }
}

/// Lets a search that has begun the interleaving answer a line of a [`RemoteSearch`]. Returns the line to send back if there
/// is one: it is empty if the search gives up the interleaving.
///
/// # Errors
/// Returns [`NotALine`] for any other text.
pub fn answer(search: &mut dyn Search, line: &str) -> Result<Option<String>, NotALine> {
    let mut words = line.split(' ');
    let mut word = || words.next().ok_or(NotALine);
    match word()? {
        "choose" => {
            let noted = turn(word()?).ok_or(NotALine)?;
            let chosen = search.choose(&noted.choice());
            Ok(Some(chosen.map(|chosen| chosen.0.to_string()).unwrap_or_default()))
        }
        "fails" => {
            let call = fallible(word()?).ok_or(NotALine)?;
            let fault = search.injector().and_then(|injector| injector.fails(call));
            let fault = fault.map_or(CallFaults::default(), CallFaults::from);
            Ok(Some(fault.bits().to_string()))
        }
        "ran" => {
            let thread = ThreadIndex(word()?.parse().map_err(|_| NotALine)?);
            stepped(search, thread, word()?.parse().map_err(|_| NotALine)?);
            Ok(None)
        }
        "rests" => {
            let waits = waits(word()?).ok_or(NotALine)?;
            if let Some(observer) = search.observer() {
                observer.stopped(&waits);
            }
            Ok(None)
        }
        _ => Err(NotALine),
    }
}

/// The error of a text that is no line of a [`RemoteSearch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotALine;

impl fmt::Display for NotALine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this is no line of a search in another process")
    }
}

impl core::error::Error for NotALine {}
