//! Interleavings of a profiler, where its threads are not scheduled.

use crate::args::HostArgs;
use crate::input::Source;
use crate::render::console::Console;
use crate::render::error::CliError;

fn refuse(flag: &str) -> Result<u8, CliError> {
    let words = "is for Windows, and Linux with glibc, on x86-64: elsewhere threads of profilers are not scheduled";
    Err(CliError::new(flag, words))
}

/// Refuses the search: threads of a profiler are not scheduled here.
pub(super) fn search(
    _: &HostArgs,
    _: u64,
    _: &Source,
    _: &mut Console<'_>,
) -> Result<u8, CliError> {
    refuse("--schedules")
}

/// Refuses the replay, as [`search`] the search.
pub(super) fn replay(
    _: &HostArgs,
    _: &str,
    _: &Source,
    _: &mut Console<'_>,
) -> Result<u8, CliError> {
    refuse("--replay")
}
