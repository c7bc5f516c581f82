//! Limits of a guest's process.

use core::fmt;
use std::time::{Duration, Instant};

/// Number of bytes in a MiB.
pub const MIB: u64 = 1 << 20;

/// The limits of a process that executes code of a guest.
#[derive(Clone, Copy, Debug)]
pub struct GuestLimits {
    /// The real time that a visit may last, and in an interleaving a thread between two calls that are simulated.
    pub time: Duration,
    /// Bytes of memory that are used at a time.
    pub memory: u64,
    /// Threads at a time.
    pub threads: u64,
    /// Bytes that are printed, and, of a visit, written down about its calls.
    pub output: u64,
}

impl Default for GuestLimits {
    fn default() -> Self {
        Self { time: Duration::from_secs(10), memory: 4096 * MIB, threads: 512, output: 64 * MIB }
    }
}

/// A limit that a guest has gone beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// The time.
    Time,
    /// This many bytes of memory.
    Memory(u64),
    /// This many threads.
    Threads(u64),
    /// This many bytes of output.
    Output(u64),
}

impl fmt::Display for Beyond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time => f.write_str("it did not return in time"),
            Self::Memory(bytes) => write!(f, "it used more than {} MiB of memory", bytes / MIB),
            Self::Threads(count) => write!(f, "it had more than {count} threads at a time"),
            Self::Output(bytes) => {
                write!(f, "it printed, or called, without end: more than {} MiB", bytes / MIB)
            }
        }
    }
}

/// What a process uses: bytes of memory, threads, bytes of output.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) memory: u64,
    pub(crate) threads: u64,
    pub(crate) output: u64,
}

impl GuestLimits {
    /// Returns the limit that a process is beyond, its time left aside.
    pub(crate) const fn exceeded(&self, used: Usage) -> Option<Beyond> {
        if used.output > self.output {
            Some(Beyond::Output(self.output))
        } else if used.memory > self.memory {
            Some(Beyond::Memory(self.memory))
        } else if used.threads > self.threads {
            Some(Beyond::Threads(self.threads))
        } else {
            None
        }
    }

    /// Returns the limit that a process is beyond which has begun at `start`.
    pub(crate) fn exceeded_since(&self, start: Instant, used: Usage) -> Option<Beyond> {
        let is_late = start.elapsed() >= self.time;
        self.exceeded(used).or_else(|| is_late.then_some(Beyond::Time))
    }
}
