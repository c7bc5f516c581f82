//! Arguments of `clrsim inspect`.

use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  clrsim inspect core.1234
  clrsim inspect my.core --files folder     with files of the machine where the process ran

The dump is a Linux core for x86-64: of the kernel, of gdb's gcore, or of .NET's createdump. Pages
that it lacks are those of the files that were mapped, where the process had not changed them. A
file is looked for in each folder of --files, by its path and by its name, and then at its path on
this machine; it counts if its build id is that of the process.

For each thread: its mode and number in the runtime, what it waits for, its frames (the stack
pointer and the code), and the runtime's Frames. Threads and Frames are known of .NET 9 and later,
managed frames of .NET 10 and later: older ones do not say where their data is.

Exit codes:
  0  the process was printed
  2  the arguments are wrong, or the dump is missing, damaged or none";

/// Print the threads of a core dump: managed and native frames in one stack, modes, Frames, and what
/// each thread waits for.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InspectArgs {
    /// A core dump
    #[arg(value_name = "FILE")]
    pub(crate) dump: PathBuf,

    /// A folder with files of the machine where the process ran; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Vec<PathBuf>,
}
