//! Arguments of `clrsim inspect` and `clrsim diagnose`.

use super::Json;
use super::import::thread_id;
use super::shared::generations;
use super::snapshot_call::CallArgs;
use clap::Args;
use clr_runtime::generation::Generation;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  clrsim inspect core.1234
  clrsim inspect my.core --files folder     with files of the machine where the process ran
  clrsim inspect --pid 1234                 a process that runs, which is stopped for a moment
  clrsim inspect my.core --thread 1234      one thread, by its id of the operating system
  clrsim inspect my.core --thread 1234 --snapshot --suspended    what DoStackSnapshot would return
  clrsim inspect app.dmp --files folder     a minidump of Windows

The dump is one of x86-64: a Linux core of the kernel, of gdb's gcore, or of .NET's createdump, or a
Windows minidump. Pages that it lacks are those of the files that were mapped, where the process had
not changed them. A file is looked for in each folder of --files, by its path and by its name, and
then at its path on this machine; it counts if its build id (of a PE image its time stamp, size and
checksum) is that of the process. A process that runs is stopped by ptrace, which it has to permit,
and goes on when its memory has been read, even if this command is killed. Mappings of more than
256 MB are left out.

For each thread: its mode and number in the runtime, what it waits for, the exception that it has
thrown last, its frames (the stack pointer and the code), and the runtime's Frames. .NET 10 and
later say where all that is. .NET 9 does so of threads and exceptions alone, and .NET 8 of nothing:
the rest is known of 9.0.23 and 8.0.34 for Linux x64, by their build ids. A dump of gdb does not say
which build an assembly without native code was, so that its methods have no names. On Windows the
threads of .NET 9 are known, without managed code, and those of .NET 8 are not; native code has no
names, and its frames come from files, in a full dump, too.

With --snapshot the stack is placed in the simulated runtime of the same version, at small
addresses, and DoStackSnapshot is called there: its decisions are printed with their clauses, its
callbacks, and its HRESULT. --by, --seed and --suspended say how it is called. What is assumed is
said.

JSON: one object. file, system (linux or windows), modules (path, address, and file_error if the
file is not used), runtime (path, count of its threads, suspender: the Thread that suspends the
others, events: what profilers have asked for), threads, and unknown (in words). A thread has id;
wait (kind: mutex, end of a thread, word, or call; address; thread: the owner, or the one that has
to end; number of the system call); frames, leafmost first (sp, ip, kind: native, jitted,
ready-to-run, stub or unknown; code: the method or module, and how far in it; function: that of
native code, if it has a name); cut: why there are no more; and managed, if the runtime knows it:
number, mode, state, exception (class and message, or unknown), runtime_frames (address, kind), and
cut. Addresses are texts in hexadecimal.

Exit codes:
  0  the process, or the snapshot, was printed
  2  the arguments are wrong, the dump is missing, damaged or none, it has no such thread, or the
     process cannot be read
  3  the dump or the runtime lacks what the snapshot depends on: it is said what";

/// Print the threads of a dump: managed and native frames in one stack, modes, Frames, and what
/// each thread waits for.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) dump: DumpArgs,

    /// Only the thread with this id of the operating system
    #[arg(long, value_name = "N", value_parser = thread_id)]
    pub(crate) thread: Option<u32>,

    /// Print what DoStackSnapshot would return for the thread, and why
    #[arg(long, requires = "thread", conflicts_with = "json")]
    pub(crate) snapshot: bool,

    #[command(flatten)]
    pub(crate) call: CallArgs,

    /// The simulated runtime of the snapshot [default: that of the version in the runtime's path]
    #[arg(long, value_name = "RUNTIME", value_parser = generations())]
    pub(crate) on: Option<Generation>,

    #[command(flatten)]
    pub(crate) json: Json,
}

// A dump, and where files of its process are.
#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// A core dump, or a minidump of Windows
    #[arg(value_name = "FILE", required_unless_present = "pid", conflicts_with = "pid")]
    pub(crate) dump: Option<PathBuf>,

    /// A running process instead of a dump: it is stopped, read, and let go (Linux x64)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i32::MAX as i64))]
    pub(crate) pid: Option<u32>,

    /// A folder with files of the machine where the process ran; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Vec<PathBuf>,
}

const DIAGNOSE_EXAMPLES: &str = "\
Examples:
  clrsim diagnose core.1234
  clrsim diagnose my.core --files folder    with files of the machine where the process ran
  clrsim diagnose my.core later.core        what did not move between two dumps of a process
  clrsim diagnose --pid 1234                a process that runs, which is stopped for a moment

Dumps and files are those of clrsim inspect. A process hangs for sure where threads wait in a
circle. Each wait is printed with what says so: the owner in a mutex, the thread whose end is
awaited, the holder of the runtime's list of threads, a thread in cooperative mode, a handler of a
signal. The mistake behind a circle is named, with its number (clrsim rules H-08) and what avoids
it. The verdict is

  proved             each wait of the circle was read from memory
  fits, not proved   a wait of the circle may be another one; it is said what is not known
  nothing found      no circle: a thread may still wait for something that never comes
  open               no circle in what could be read, but the runtime or the rest of a stack could
                     not: with --files it may be found; of .NET 8, 8.0.34 alone is known

Of Windows, monitors are known; what else a thread waits for in the kernel is not in a minidump, so
that the verdict is open where no circle is found.

A GC or a suspension that goes on is no hang by itself. What the runtime does is known of .NET 9
and later; that a suspension stops a thread, of .NET 11. Names of functions decide nothing.

JSON: one object. file, verdict (proved, fits, open or nothing), threads and waits (numbers),
circles, moved (number of circles that the earlier dump does not have), followers (waits of other
threads that lead to a circle), unknown (what could not be looked at, in words). A circle has
waits, and of a known mistake hazard (its number, if it has one), title and avoided_by. A wait has
from and to (ids of threads), kind (mutex, end, thread-store-lock, suspension, cooperative-mode,
call, interrupted-owner, handler, runs or monitor), address (of the mutex or word; of the Thread in
cooperative mode; of the instruction that runs or was interrupted; of the object), text, and doubt,
if it is not proved.

Exit codes:
  0  nothing was found, and the runtime's threads and all stacks were read
  1  a hang is proved
  2  the arguments are wrong, a dump is missing, damaged, none, or of another process, or the
     process cannot be read
  3  a hang fits, and is not proved; or the verdict is open";

/// Find out from a dump why a process hangs: threads that wait for one another, and what says
/// so
#[derive(Debug, Args)]
#[command(after_help = DIAGNOSE_EXAMPLES)]
pub(crate) struct DiagnoseArgs {
    #[command(flatten)]
    pub(crate) dump: DumpArgs,

    /// A later core dump of the same process: of waits that are not proved those count that are in both
    #[arg(value_name = "LATER", conflicts_with = "pid")]
    pub(crate) later: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) json: Json,
}
