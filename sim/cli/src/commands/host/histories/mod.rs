//! `clrsim host --schedules` and `--replay`: interleavings of a profiler with its own threads.

mod coverage;
mod description;
#[cfg_attr(windows, path = "executor_of_processes.rs")]
mod executor;
mod found;
mod guest;
mod name;
pub(crate) mod replay;
pub(crate) mod search;

pub(super) use replay::replay;
pub(super) use search::search;

#[cfg(windows)]
pub(super) use executor::execute;
