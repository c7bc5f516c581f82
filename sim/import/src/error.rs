//! Why a source gives no scenario.

use clr_inspect::InspectError;
use clr_runtime::FrameKind;
use clr_runtime::generation::Generation;
use clr_scenario::RunOnError;
use clr_unwind::Unreadable;
use thiserror::Error;

/// The reason why a source gives no scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ImportError {
    /// The process has no such thread.
    #[error("there is no thread {0}")]
    NoThread(u32),
    /// The runtime does not know the thread.
    #[error("the runtime does not know thread {0}, which so has no ThreadID to ask for")]
    NotManaged(u32),
    /// The runtime's data cannot be read.
    #[error("{0}")]
    Runtime(#[from] InspectError),
    /// The dump lacks memory of a Frame or a thread.
    #[error("the dump lacks {} bytes at {:#x}", .0.len, .0.address)]
    Unreadable(#[from] Unreadable),
    /// The runtime does not say where managed code is.
    #[error(
        "where this runtime has its managed code is not known: it says so from .NET 10 on, and of earlier ones 8.0.34 and 9.0.23 are known"
    )]
    NoCode,
    /// A Frame is of a kind that is not known.
    #[error("the Frame at {address:#x} is of a kind that is not known")]
    FrameKind {
        /// Address of the Frame (VA).
        address: u64,
    },
    /// The runtime is not known to have Frames of this kind.
    #[error("the Frame at {address:#x} is a {kind}, which {on} does not have")]
    NoSuchFrames {
        /// Address of the Frame (VA).
        address: u64,
        /// The kind.
        kind: FrameKind,
        /// The runtime.
        on: Generation,
    },
    /// The list of Frames breaks off.
    #[error("the Frames of the thread are not all known: {0}")]
    Frames(InspectError),
    /// An exception is in progress, whose state decides which frames are reported.
    #[error(
        "an exception is in progress on thread {0}: which frames it hides is not read from dumps"
    )]
    Exception(u32),
    /// The stack does not go from low addresses to high ones by whole words, or leaves those that a process has.
    #[error("the frame at rsp {sp:#x} does not lie on the stack above the one before")]
    Descends {
        /// rsp of the frame (VA).
        sp: u64,
    },
    /// The text is of no debugger that is known.
    #[error("no stack of a debugger that is known")]
    Format,
    /// The report of a crash is damaged.
    #[error("the report is damaged at line {line}, column {column}")]
    Line {
        /// Line, counted from 1.
        line: usize,
        /// Column, counted from 1.
        column: usize,
    },
    /// No threads wait in a circle.
    #[error("no threads wait in a circle, as far as can be read: name a thread with --thread")]
    NoCircle,
    /// Threads wait for monitors of objects: a scenario has none that another thread has entered.
    #[error(
        "threads wait for monitors of objects, which the program enters and no profiler: no scenario has such waits"
    )]
    Monitors,
    /// No scenario can say how the threads of a circle wait, or no search of it ends in the circle.
    #[error("no scenario was found in which threads wait in this circle")]
    Circle,
    /// The source has no frames.
    #[error("the thread has no frames")]
    NoFrames,
    /// No runtime is known that the source can be of.
    #[error("no simulated runtime has all that the source shows: say which with --on")]
    NoGeneration,
    /// The stack cannot be placed, or the call cannot be made.
    #[error("the stack cannot be placed: {0}")]
    SetUp(RunOnError),
    /// No scenario can say what state the thread is in.
    #[error("no scenario can say what state the thread is in")]
    State,
}
