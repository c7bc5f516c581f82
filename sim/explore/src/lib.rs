//! Histories: who does what when, chosen by a search, and the same again whenever it is asked for.
//!
//! The threads of a program are emulated CPUs, stepped instruction by instruction; those of the profiler,
//! its callbacks and its handlers of signals are ordinary blocking code on coroutines. One of all these
//! runs at a time, up to its next switch point: a lock, a wait, a suspension, a change of mode, a
//! service of the runtime, a call of a profiling method. There a [`Search`] chooses who is next. What it
//! chose makes the history, and a short string that makes it again: a [`Trail`].
//!
//! Nothing polls: whether a thread can go on is a question about the state. If nobody can, and
//! no time is waited for, the history has ended: well, if all are over; else by a [`Verdict`].
//!
//! Time is virtual, in microseconds: a turn takes one. Who sleeps can be woken at any time, since others
//! may be arbitrarily slow; whoever waits with a limit waits as long as anybody else can go on.
//!
//! Begin with [`check`].

mod bug;
mod check;
mod deeds;
mod execute;
mod footprint;
mod hazard;
mod history;
mod info;
mod kernel;
mod key;
mod lock;
mod replay;
mod run;
mod search;
mod setup;
pub mod story;
mod stuck;
mod target;
mod tell;
mod thread;
pub mod timeline;
mod verdict;

pub use check::{Arena, Budget, Failure, Process, Report, check};
pub use footprint::Footprint;
pub use hazard::{Hazard, NoHazard};
pub use history::{Happening, History, Kind, Lane, Slice, Standing, ThreadIndex};
pub use info::Info;
pub use lock::LockName;
pub use replay::{Replay, Trail, TrailError};
pub use run::{Ending, Limits, Recording};
pub use search::{Choice, Covered, Exhaustive, Guided, Pct, Random, Search, Strategy};
pub use setup::{Event, Lock, Setup};
pub use target::Target;
pub use thread::{Guard, Thread};
pub use verdict::{Edge, Rule, Verdict, Why};

#[cfg(test)]
mod tests;
