//! Errors of runs.

use clr_world::synthetic::SyntheticError;
use clr_world::{BuildError, WorldError};
use thiserror::Error;

/// The reason why the calls of a scenario cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RunOnError {
    /// The stack placed by hand is inconsistent.
    #[error(transparent)]
    Synthetic(#[from] SyntheticError),
    /// The program cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A thread cannot go on.
    #[error("stop {stop}: {error}")]
    World {
        /// Index of the stop, from 0.
        stop: usize,
        /// Reason.
        error: WorldError,
    },
    /// A thread is to be walked as a profiler does it, but the runtime does not know the thread.
    #[error("the runtime does not know the thread, so it has no ThreadID")]
    UnknownThread,
    /// The text has no such stop.
    #[error("the text has no stop {stop}")]
    NoStop {
        /// Index of the stop, from 0.
        stop: usize,
    },
    /// A function has fewer instructions than a stop, or the position of another thread, counts.
    #[error("stop {stop}: the function of thread {thread} has {count} instructions")]
    NoInstruction {
        /// Index of the stop, from 0.
        stop: usize,
        /// Index of the thread, from 0.
        thread: u32,
        /// Number of instructions of the function.
        count: u32,
    },
    /// The thread that a call walks does not have what the call's seed is made from.
    #[error(
        "stop {stop}: the walked thread does not have the source of the seed of snapshot {snapshot}"
    )]
    NoSeed {
        /// Index of the stop, from 0.
        stop: usize,
        /// Index of the call among those of the stop.
        snapshot: usize,
    },
    /// A thread ends, or waits for ever, before it reaches its stop.
    #[error("stop {stop} is not reached: thread {thread} did {steps} steps")]
    NotReached {
        /// Index of the stop, from 0.
        stop: usize,
        /// Index of the thread, from 0.
        thread: u32,
        /// Number of steps that the thread executed.
        steps: u64,
    },
}

impl RunOnError {
    /// Returns the index of the stop that cannot be made, and of its only call that cannot.
    pub(crate) const fn place(self) -> Option<(usize, Option<usize>)> {
        match self {
            Self::World { stop, .. }
            | Self::NotReached { stop, .. }
            | Self::NoInstruction { stop, .. } => Some((stop, None)),
            Self::NoSeed { stop, snapshot } => Some((stop, Some(snapshot))),
            Self::Synthetic(_) | Self::Build(_) | Self::UnknownThread | Self::NoStop { .. } => None,
        }
    }
}
