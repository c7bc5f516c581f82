//! Histories: interleavings of threads that a search chooses and a schedule string reproduces.
//!
//! ```
//! use clr_explore::{Budget, TestedProcess, check};
//! use clr_runtime::generation::Generation;
//!
//! // A process without threads of its own, and a profiler with two.
//! let runtime = Generation::CoreClr31Windows;
//! let (program, methods, hooks) = Default::default();
//! let process = TestedProcess::new(&program, &methods, hooks, runtime, &[])?;
//! let report = check(&process, &|profiler| {
//!     let names = profiler.lock("names");
//!     let written = profiler.event();
//!     profiler.thread("writer", move |me| {
//!         let _names = me.lock(names);
//!         me.set(written);
//!     });
//!     // The reader waits for the writer and owns the lock that the writer needs.
//!     profiler.thread("reader", move |me| {
//!         let _names = me.lock(names);
//!         me.wait_for(written);
//!     });
//! }, &Budget::exhaustive(100))?;
//! let failure = report.failure.expect("the reader may be the first to take the lock");
//! assert!(failure.repeats);
//! println!("{} is the interleaving in which they wait for each other", failure.schedule);
//! # Ok::<(), clr_world::BuildError>(())
//! ```
//!
//! The threads of a program are emulated CPUs, stepped instruction by instruction; the profiler's
//! threads, callbacks and signal handlers are ordinary blocking code on coroutines. One thread runs
//! at a time, up to its next switch point: a lock, a wait, a suspension, a change of mode, a
//! service of the runtime, a call of a profiling method. There a [`Search`] chooses the next
//! thread. The choices determine the interleaving, and a short schedule string reproduces it: a
//! [`ScheduleString`].
//!
//! There is no polling: whether a thread can run follows from the state. If no thread can run and
//! none waits for time, the interleaving has ended: normally if all threads have ended, otherwise with a
//! [`Verdict`].
//!
//! Time is virtual, in microseconds: a turn takes one. A sleeping thread can be woken at any time,
//! since other threads may be arbitrarily slow; a timed wait lasts as long as any other thread can
//! run, unless limits [may pass before](Setup::expire_limits).
//!
//! [`check`] is the entry point.

mod callback;
mod check;
mod condition;
mod condition_waits;
mod contents;
mod current_turn;
mod deadlock;
mod ending;
mod event;
mod execute;
mod explorer;
mod fingerprint;
mod footprint;
mod headline;
mod history;
mod ids;
mod info;
mod interruption;
mod kernel;
mod lock;
mod locking;
mod parts;
mod patience;
mod points;
mod profiler_ops;
mod recorded_calls;
mod remote;
mod replay;
mod report;
mod run;
mod schedule_string;
mod search;
mod setup;
mod spawn;
mod state;
mod state_hash;
mod strategies;
mod system_calls;
mod target;
mod thread;
mod thread_status;
mod transcript;
mod turns;
mod verdict;
mod waits;
mod walk;

pub use callback::Callback;
pub use check::{Budget, check};
pub use contents::Contents;
#[doc(hidden)]
pub use deadlock::shortest_path;
pub use ending::{Ending, HistoryDetail, LastPlace, Limits, ThreadEnd, WaitedFor};
pub use explorer::{Explorer, TestedProcess};
pub use footprint::Footprint;
pub use headline::headline;
#[doc(hidden)]
pub use headline::{is_visible, list, visible};
pub use history::{History, ThreadKind, ThreadStatus, ThreadSummary, Turn, TurnEvent};
pub use ids::{LockName, ThreadIndex};
pub use info::Info;
pub use lock::{ConditionVariable, EventObject, LockKind, ProfilerLock};
pub use locking::Guard;
pub use parts::{Part, join_parts};
pub use patience::LimitBound;
pub use points::{PointCoverage, SearchPoints, pass};
#[doc(hidden)]
pub use remote::{NotALine, RemoteSearch, answer};
pub use replay::ReplaySearch;
pub use report::{Failure, LeftWaiting, NotSurvived, Report, ThreadWaits};
pub use schedule_string::{InjectedFault, ScheduleString, ScheduleStringError};
pub use search::{
    Choice, Coverage, FallibleCall, Injector, Observer, ProcessState, Progress, Search, Step,
};
pub use setup::Setup;
pub use state::Interruption;
pub use strategies::{Exhaustive, Faults, Guided, Interleavings, Pct, Random, Strategy};
pub use target::ExaminedThread;
pub use thread::CurrentThread;
#[doc(hidden)]
pub use transcript::{NotedHistory, NotingSearch};
pub use verdict::{BlockReason, Edge, ProfilerRule, Verdict};

#[cfg(test)]
mod tests;
