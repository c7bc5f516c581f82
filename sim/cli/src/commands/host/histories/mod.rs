//! `clrsim host --schedules` and `--replay`: histories of a profiler with its own threads.

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod description;
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod guest;
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod name;
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod replay;
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod search;

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
pub(super) use {replay::replay, search::search};

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
pub(super) use elsewhere::{replay, search};

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
mod elsewhere {
    use crate::args::HostArgs;
    use crate::input::Source;
    use crate::render::console::Console;
    use crate::render::error::CliError;

    fn refuse(flag: &str) -> Result<u8, CliError> {
        let words =
            "is for Linux on x86-64 with glibc: elsewhere threads of profilers are not scheduled";
        Err(CliError::new(flag, words))
    }

    /// Refuses the search: only on Linux threads of a profiler are scheduled.
    pub(in super::super) fn search(
        _: &HostArgs,
        _: u64,
        _: &Source,
        _: &mut Console<'_>,
    ) -> Result<u8, CliError> {
        refuse("--schedules")
    }

    /// Refuses the replay, as [`search`] the search.
    pub(in super::super) fn replay(
        _: &HostArgs,
        _: &str,
        _: &Source,
        _: &mut Console<'_>,
    ) -> Result<u8, CliError> {
        refuse("--replay")
    }
}
