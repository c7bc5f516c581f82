//! What a source does not have.

use std::fmt;

/// What a source does not have, and what is assumed in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Note {
    /// Frames between a frame and the code that a Frame leads to: unwinding found no way.
    Gap {
        /// rsp of the last frame before the gap (VA).
        from: u64,
        /// rsp of the first frame after it (VA).
        to: u64,
    },
    /// The frames after this one.
    Cut {
        /// rsp of the last frame (VA).
        sp: u64,
    },
    /// The code that a Frame leads to is no frame of the stack.
    Target {
        /// Address of the Frame (VA).
        at: u64,
    },
    /// The return address of a frame: a Frame says another one in the same method.
    Moved {
        /// rsp of the frame (VA).
        sp: u64,
    },
    /// Frames that have no name, or where the debugger has lost its way.
    Lost {
        /// The number of lines.
        frames: u32,
    },
    /// The runtime's version.
    Version,
    /// The runtime's Frames.
    Frames,
    /// Where Frames lead.
    Leads,
    /// Native frames.
    Native,
    /// The mode of the thread.
    Mode,
    /// Stack pointers.
    Addresses,
    /// Offsets in functions.
    Offsets,
    /// Whether methods were compiled ahead of time.
    Code,
    /// What the thread does that holds the lock of the runtime's list of threads.
    Holder,
    /// Another thread suspends the runtime, or has suspended it.
    Suspension,
    /// The bounds of the stack.
    Bounds,
    /// The state of the profiler.
    Profiler,
    /// What the threads of a hang did before, and in which callbacks.
    Callbacks,
    /// A wait of a hang is not proved.
    Doubt,
    /// More circles of a hang.
    OtherCircles,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap { from, to } => write!(
                f,
                "the frames between rsp {from:#x} and {to:#x}: no way to unwind them was found, and a Frame leads on"
            ),
            Self::Cut { sp } => {
                write!(f, "the frames after rsp {sp:#x}: no way to unwind them was found")
            }
            Self::Target { at } => write!(f, "the code that the Frame at {at:#x} leads to"),
            Self::Moved { sp } => write!(
                f,
                "the return address of the frame at rsp {sp:#x}: it is placed where its Frame says, in the same method"
            ),
            Self::Lost { frames } => write!(
                f,
                "the last {frames} lines of the stack: the first of them has no name, managed code or a lost way"
            ),
            Self::Version => f.write_str("the runtime's version: the text is for all that have such a stack"),
            Self::Frames => f.write_str(
                "the runtime's Frames: none are placed, though a call without a seed starts from them"
            ),
            Self::Leads => f.write_str("where Frames lead: each leads to the managed frame around or after it"),
            Self::Native => f.write_str("native frames: one stands for those at each end"),
            Self::Mode => f.write_str("the mode: the thread is taken to be preemptive"),
            Self::Addresses => f.write_str("stack pointers: each frame is taken to have 0x40 bytes"),
            Self::Offsets => f.write_str("offsets in functions: 0x20 stands for those that are not there"),
            Self::Code => f.write_str("how methods were compiled: all are taken to be jitted"),
            Self::Holder => f.write_str(
                "whether the runtime is suspended: a thread holds the lock of its list of threads, as one does that suspends it",
            ),
            Self::Suspension => f.write_str(
                "the end of another thread's suspension: a caller that has suspended the runtime has done so after it",
            ),
            Self::Bounds => f.write_str("the bounds of the stack: it is taken to have 8 MiB"),
            Self::Profiler => {
                f.write_str("the profiler: it is taken to be active, and to have enabled snapshots")
            }
            Self::Callbacks => f.write_str(
                "what the threads did before: the calls and callbacks are ones that wait in the same way"
            ),
            Self::Doubt => f.write_str("a proof of each wait: clrsim diagnose says what is not known"),
            Self::OtherCircles => f.write_str("other threads that wait in a circle: clrsim diagnose has them"),
        }
    }
}

impl Note {
    /// Returns the note with its addresses changed.
    #[must_use]
    pub fn at(self, small: impl Fn(u64) -> u64) -> Self {
        match self {
            Self::Gap { from, to } => Self::Gap { from: small(from), to: small(to) },
            Self::Cut { sp } => Self::Cut { sp: small(sp) },
            Self::Target { at } => Self::Target { at: small(at) },
            Self::Moved { sp } => Self::Moved { sp: small(sp) },
            other => other,
        }
    }
}
