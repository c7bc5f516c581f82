//! Where results go: a file, or stderr.

use clr_sampler::os;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

/// The status with which a process that hung ends.
const STATUS: i32 = 86;

/// Writes a profile, in place of what is there.
pub(crate) fn replace(path: Option<&Path>, result: &[u8]) {
    write(path, OpenOptions::new().create(true).write(true).truncate(true), result);
}

/// Writes a result after what is there.
pub(crate) fn append(path: Option<&Path>, result: &[u8]) {
    write(path, OpenOptions::new().create(true).append(true), result);
}

fn write(path: Option<&Path>, options: &OpenOptions, result: &[u8]) {
    let written = match path {
        Some(path) => options.open(path).and_then(|mut file| file.write_all(result)),
        None => std::io::stderr().write_all(result),
    };
    if let Err(error) = written {
        eprintln!("clr-recorder: {error}");
        os::end(1);
    }
}

/// Writes the stacks of a process that hangs, and ends it.
pub(crate) fn end_hang(stacks: &str) -> ! {
    eprint!("clr-recorder: no sample comes any more\n{stacks}");
    os::end(STATUS)
}
