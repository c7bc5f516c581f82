//! Errors of a run with the names of the text's threads and functions in place of their numbers.

use crate::{RunOnError, Scenario, StopAt};
use core::fmt;

/// An error of a run, as `Display` prints it with names. Created by [`Scenario::named`].
#[derive(Clone, Copy, Debug)]
pub struct NamedError<'s> {
    scenario: &'s Scenario,
    error: RunOnError,
}

impl Scenario {
    /// Returns an error of a run of this text with the names of threads and functions.
    #[must_use]
    pub const fn named(&self, error: RunOnError) -> NamedError<'_> {
        NamedError { scenario: self, error }
    }

    /// Returns a position in words, as a text writes it.
    #[must_use]
    pub fn place_in_words(&self, at: StopAt) -> String {
        let instruction = |name: &str, index: u32, visit: u32| {
            let visit = if visit == 1 { String::new() } else { format!(", visit {visit}") };
            match index {
                0 => format!("at {name}{visit}"),
                index => format!("at instruction {index} of {name}{visit}"),
            }
        };
        match at {
            StopAt::After(after) => format!("after {after} instructions"),
            StopAt::Instruction { function, index, visit } => {
                instruction(self.function_name(function).unwrap_or_default(), index, visit)
            }
            StopAt::Runtime { function, index, visit } => {
                instruction(&self.runtime_function_name(function), index, visit)
            }
            StopAt::Wait { place, visit: 1 } => format!("at {}", place.name()),
            StopAt::Wait { place, visit } => format!("at {}, visit {visit}", place.name()),
            StopAt::Callback { kind, visit: 1 } => format!("in {}", kind.name()),
            StopAt::Callback { kind, visit } => format!("in {}, visit {visit}", kind.name()),
            StopAt::Hook(visit) => format!("in hook {visit}"),
            StopAt::End => "at the end".to_owned(),
        }
    }

    /// Returns the position of a thread of a stop in words.
    fn place_of(&self, stop: usize, thread: u32) -> String {
        let at = self.stops.get(stop).and_then(|stop| stop.place_of(thread));
        at.map_or_else(String::new, |at| format!(" {}", self.place_in_words(at)))
    }

    fn thread_name(&self, thread: u32) -> &str {
        self.threads.get(thread as usize).map_or("?", |thread| &thread.name)
    }
}

impl fmt::Display for NamedError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scenario, error } = self;
        match *error {
            RunOnError::NotReached { stop, thread, steps } => {
                let (name, place) = (scenario.thread_name(thread), scenario.place_of(stop, thread));
                let steps = match steps {
                    1 => "1 step".to_owned(),
                    steps => format!("{steps} steps"),
                };
                write!(f, "thread {name} does not come to its stop{place}: it did {steps}")
            }
            RunOnError::NoInstruction { stop, thread, count } => {
                let (name, place) = (scenario.thread_name(thread), scenario.place_of(stop, thread));
                let last = count.saturating_sub(1);
                write!(f, "thread {name} cannot stop{place}: its instructions are 0 to {last}")
            }
            RunOnError::NoSeed { stop, snapshot } => {
                let stop = scenario.stops.get(stop);
                let call = stop.and_then(|stop| stop.snapshots.get(snapshot));
                let walked = stop.zip(call).and_then(|(stop, call)| stop.walks(call));
                let thread = walked.map_or("the stopped thread".to_owned(), |walked| {
                    format!("thread {}", scenario.thread_name(walked))
                });
                let seed = call.and_then(|call| call.seed.as_ref());
                let what = seed.map_or_else(String::new, |seed| seed.from.to_string());
                write!(f, "{thread} has no {what} for the seed there")
            }
            RunOnError::World { stop, error } => {
                let thread = scenario.stops.get(stop).map_or(0, |stop| stop.thread);
                let (name, place) = (scenario.thread_name(thread), scenario.place_of(stop, thread));
                write!(f, "on the way to the stop of thread {name}{place}: {error}")
            }
            error => error.fmt(f),
        }
    }
}

impl core::error::Error for NamedError<'_> {}
