//! Outcomes of `DoStackSnapshot`: HRESULTs, and the ways in which the process ends instead.

use clr_walker::profiling::HResult;
use core::fmt;

/// Result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The call returned.
    Returned(HResult),
    /// The runtime ended the process.
    ProcessKilled {
        /// The exit code.
        code: u32,
    },
    /// An unhandled access violation ended the process.
    AccessViolation {
        /// Address that could not be read (VA; for a seed that is too short, the offset from its
        /// start).
        at: u64,
    },
    /// The caller waits for a resource of another thread that will not be released, such as the
    /// code manager's lock (H-09).
    Blocked,
    /// The walk never ends: it cycles in a corrupt Frame chain.
    Endless,
}

/// Exit code after a wrong GS cookie was found.
pub const FAIL_FAST: u32 = 0xC000_0409;

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Returned(result) => fmt::Display::fmt(result, f),
            Self::ProcessKilled { code } => match HResult(*code).name() {
                Some(name) => write!(f, "the process is killed: {name}"),
                None => write!(f, "the process is killed: {code:#x}"),
            },
            Self::AccessViolation { at } => {
                write!(f, "the process dies of an access violation at {at:#x}")
            }
            Self::Blocked => f.write_str("the call waits for ever for another thread"),
            Self::Endless => f.write_str("the call never ends"),
        }
    }
}

impl From<HResult> for Outcome {
    fn from(result: HResult) -> Self {
        Self::Returned(result)
    }
}
