//! Interleavings in processes of their own, as there is no `fork`: each one loads the guest anew.
//!
//! The process of an interleaving asks the process that searches for each choice, and sends the ending at last: lines of
//! `clr_explore::RemoteSearch`, and a line `end N` with N bytes behind it.

use super::streams::{Pipes, take_streams};
use crate::confined::watching;
use crate::limits::GuestLimits;
use crate::scheduled::ending::{Detail, Died, GuestEnding};
use crate::scheduled::hosted_profiler::HostedProfiler;
use clr_explore::{RemoteSearch, Search, answer};
use std::cell::RefCell;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, TerminateProcess};

/// The beginning of the line before the ending.
const END: &str = "end ";

/// Executes an interleaving in this process, whose last act it is. The other process, which has [answered](answer_history)
/// its questions by then, gets the ending. `learns`: its search learns from interleavings. `injects`: it makes calls fail.
///
/// # Errors
/// Returns the system's error if the streams cannot be taken.
pub fn run_history(
    visit: &mut HostedProfiler,
    (learns, injects): (bool, bool),
    detail: Detail<'_>,
) -> io::Result<()> {
    let Pipes { from, to } = take_streams()?;
    let (to, mut from) = (RefCell::new(to), BufReader::new(from));
    let mut search = RemoteSearch::new(learns, injects, |line: &str, is_question| {
        writeln!(to.borrow_mut(), "{line}").ok()?;
        let mut answer = String::new();
        if is_question {
            from.read_line(&mut answer).ok()?;
        }
        Some(answer.trim_end().to_owned())
    });
    let bytes = visit.run_here(&mut search, detail).to_bytes();
    let header = format!("{END}{}\n", bytes.len());
    to.borrow_mut().write_all(&[header.as_bytes(), &bytes].concat())?;
    // Threads of the guest may wait for ever, or own locks of its libraries, which its destructors need.
    // SAFETY: no pointers.
    unsafe { TerminateProcess(GetCurrentProcess(), 0) };
    Ok(())
}

/// Lets a search that has begun the interleaving answer the process that executes it, by the pipes of its standard input and
/// output. Returns the interleaving's ending. The process is ended beyond its limits; `output` are the files that grow with it.
///
/// # Errors
/// Returns [`Died`] if the profiler ended its process, or went beyond a limit.
pub fn answer_history(
    child: &mut Child,
    limits: &GuestLimits,
    output: &[&Path],
    search: &mut dyn Search,
) -> Result<GuestEnding, Died> {
    let pipes = (child.stdin.take(), child.stdout.take());
    let (ending, beyond) = watching(child, limits, output, || follow(pipes, search));
    if let Some(beyond) = beyond {
        child.wait()?;
        return Err(Died::Beyond(beyond));
    }
    let status = child.wait()?;
    let died = |Garbled| match status.code() {
        Some(0) => Died::Garbled,
        code => Died::Exit(code.unwrap_or_default()),
    };
    let ended = ending.map_err(died)?;
    let mut ending = ended.ok_or_else(|| Died::Exit(status.code().unwrap_or_default()))?;
    ending.strayed |= search.progress().strayed;
    Ok(ending)
}

/// What a process has sent is neither a question nor an ending, or is cut off.
struct Garbled;

/// Returns the ending; `None` if the process has ended without one, whose input is closed then.
fn follow(
    pipes: (Option<ChildStdin>, Option<ChildStdout>),
    search: &mut dyn Search,
) -> Result<Option<GuestEnding>, Garbled> {
    let (Some(mut to), Some(from)) = pipes else { return Ok(None) };
    let mut from = BufReader::new(from);
    let mut line = String::new();
    loop {
        line.clear();
        if from.read_line(&mut line).map_err(|_| Garbled)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if let Some(size) = line.strip_prefix(END) {
            let size: u64 = size.parse().map_err(|_| Garbled)?;
            let mut bytes = Vec::new();
            from.take(size).read_to_end(&mut bytes).map_err(|_| Garbled)?;
            let ending = GuestEnding::from_bytes(&bytes).filter(|_| bytes.len() as u64 == size);
            return ending.map(Some).ok_or(Garbled);
        }
        if let Some(answer) = answer(search, line).map_err(|_| Garbled)? {
            // A process that does not listen has ended.
            let _ = writeln!(to, "{answer}");
        }
    }
}
