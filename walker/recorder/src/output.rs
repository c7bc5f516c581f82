//! Where results go: a file, or stderr. Whatever happens to them, the program's end stays its own.

use clr_sampler::os;
use std::fmt::Arguments;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The status with which a process that hung ends.
const STATUS: i32 = 86;
/// The part of a path that stands for the process's id.
const PROCESS: &str = "%p";
/// The time in which another process writes its result, and the time between two looks.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);

/// Says something to people. Nobody may listen: that is no failure.
pub(crate) fn say(text: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "clr-recorder: {text}");
}

/// Returns the path of this process: `%p` is its id.
pub(crate) fn path_of_process(path: &str) -> PathBuf {
    path.replace(PROCESS, &std::process::id().to_string()).into()
}

/// A file that no other recorder writes meanwhile.
///
/// It is locked for as long as it is open. Files that are none, as pipes and terminals, and those of systems without
/// locks are not.
#[derive(Debug)]
pub(crate) struct Output {
    file: File,
    /// False for a pipe and the like, of which nothing can be taken back.
    is_file: bool,
}

impl Output {
    /// Opens a file in place of an older one.
    ///
    /// # Errors
    /// The system's; and `ResourceBusy` if another process still writes the file after this time.
    pub(crate) fn create(path: &Path, patience: Duration) -> io::Result<Self> {
        let output = Self::open(path, patience)?;
        if output.is_file {
            output.file.set_len(0)?;
        }
        Ok(output)
    }

    /// Opens a file to write after what is there. The next byte begins a line.
    ///
    /// # Errors
    /// As of [`create`](Self::create).
    pub(crate) fn append(path: &Path) -> io::Result<Self> {
        let mut output = Self::open(path, PATIENCE)?;
        if output.is_file && output.file.seek(SeekFrom::End(0))? > 0 {
            let mut last = [0];
            output.file.seek(SeekFrom::End(-1))?;
            output.file.read_exact(&mut last)?;
            if last != *b"\n" {
                output.write(b"\n")?;
            }
        }
        Ok(output)
    }

    fn open(path: &Path, patience: Duration) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(false);
        // A pipe that is read would wait for itself.
        let is_file = std::fs::metadata(path).map_or(true, |it| it.is_file());
        let file = options.read(is_file).open(path)?;
        if is_file {
            lock(&file, patience)?;
        }
        Ok(Self { file, is_file })
    }

    /// Writes lines. Those that do not fit are not in the file, not even in part.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let from = if self.is_file { self.file.stream_position()? } else { 0 };
        let written = self.file.write_all(lines);
        if written.is_err() && self.is_file {
            self.file.set_len(from)?;
            self.file.seek(SeekFrom::Start(from))?;
        }
        written
    }
}

/// Locks a file until it is closed.
fn lock(file: &File, patience: Duration) -> io::Result<()> {
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if begin.elapsed() < patience => thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => {
                let why = "another process writes it; with %p, its id, in `out` each has its own";
                return Err(io::Error::new(ErrorKind::ResourceBusy, why));
            }
            // Not every system of files has locks.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
        }
    }
}

/// Writes a profile, in place of what is there: whole or not at all.
pub(crate) fn replace(path: Option<&Path>, result: &[u8]) {
    write(path, whole, result);
}

/// Writes a result after what is there.
pub(crate) fn append(path: Option<&Path>, result: &[u8]) {
    write(path, |path, result| Output::append(path)?.write(result), result);
}

/// Writes a result as `into` does it, or to stderr if it has no path. An error is said, and the program goes on.
fn write(path: Option<&Path>, into: fn(&Path, &[u8]) -> io::Result<()>, result: &[u8]) {
    match path {
        Some(path) => {
            if let Err(error) = into(path, result) {
                say(format_args!("{}: {error}", path.display()));
            }
        }
        None => {
            let _ = io::stderr().write_all(result);
        }
    }
}

/// Writes a result beside its file, from where it takes the file's name in one step. A process that is killed before leaves the
/// old content, and at most a file `.clr-recorder-….new` beside it.
///
/// A pipe or a device is written as it is.
fn whole(path: &Path, result: &[u8]) -> io::Result<()> {
    let old = std::fs::metadata(path);
    if old.as_ref().is_ok_and(|it| !it.is_file()) {
        return Output::open(path, PATIENCE)?.write(result);
    }
    // A link stays one.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = format!(".clr-recorder-{}.new", std::process::id());
    let beside = path.with_file_name(name);
    let written = (|| {
        let mut new = File::create(&beside)?;
        new.write_all(result)?;
        if let Ok(old) = old {
            new.set_permissions(old.permissions())?;
        }
        new.sync_all()?;
        std::fs::rename(&beside, &path)
    })();
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

/// Writes the stacks of a process that hangs, and ends it.
pub(crate) fn end_hang(stacks: &str) -> ! {
    say(format_args!("no sample comes any more\n{stacks}"));
    os::end(STATUS)
}

#[cfg(test)]
mod tests;
