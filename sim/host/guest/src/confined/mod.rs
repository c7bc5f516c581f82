//! The process of a guest, and all that it starts: within limits, and nothing of it is left behind.
//!
//! On Linux a guard, the parent of the guest's process, looks at it, and outlives the tool if that is killed. On Windows the
//! processes are in a job, which ends with the tool. Elsewhere the guest's process alone is ended.

use crate::limits::Beyond;
use std::path::Path;
use std::time::Duration;

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
mod system;
#[cfg(windows)]
mod windows;

#[cfg(all(target_os = "linux", scheduled))]
pub(crate) use system::{adopt, end_descendants, end_group, live_with_parent, usage};
pub use system::{guard, spawn, wait};

#[cfg(all(windows, scheduled))]
pub(crate) use windows::watching;

/// The longest pause between two looks at a process.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// The end of a guest's process, as its guard has seen it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watched {
    /// The limit for which it was ended.
    pub beyond: Option<Beyond>,
    /// Number of processes that it had started, and that were ended after it.
    pub left: usize,
}

/// Returns the bytes of files.
fn bytes(files: &[&Path]) -> u64 {
    files.iter().filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}
