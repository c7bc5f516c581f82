//! Processes of guests that have no guard.

#[cfg(windows)]
use super::windows::{hold, usage};
use super::{PAUSE, Watched, bytes};
use crate::limits::{GuestLimits, Usage};
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Starts the process of a guest.
///
/// # Errors
/// Returns the system's error.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    #[cfg(windows)]
    hold();
    command.spawn()
}

/// Does nothing: the process that has started this one looks at it.
///
/// # Errors
/// Returns none.
pub fn guard(_: &GuestLimits, _: &[&Path], _: impl FnOnce(&Watched)) -> io::Result<()> {
    Ok(())
}

#[cfg(not(windows))]
fn usage(_: &Child) -> Usage {
    Usage::default()
}

/// Waits for a process of a guest, and ends it beyond its limits. `output` are the files that grow with it.
///
/// # Errors
/// Returns the system's error.
pub fn wait(
    child: &mut Child,
    limits: &GuestLimits,
    output: &[&Path],
) -> io::Result<(ExitStatus, Watched)> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, Watched::default()));
        }
        let used = Usage { output: bytes(output), ..usage(child) };
        if let beyond @ Some(_) = limits.exceeded_since(start, used) {
            child.kill()?;
            return Ok((child.wait()?, Watched { beyond, left: 0 }));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE);
    }
}
