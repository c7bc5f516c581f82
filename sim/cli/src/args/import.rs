//! Arguments of `clrsim import`.

use super::{CallArgs, OutputArg, WalkArg, generations};
use clap::Args;
use clr_runtime::generation::Generation;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  clrsim import clr/win31-async-alloc.walks.jsonl.gz
  clrsim import clr/win31-async-alloc.walks.jsonl.gz --walk 12
  clrsim import my.walks.jsonl.gz --walk 7 -o my.kdl
  clrsim import my.trace.jsonl -o my.kdl
  clrsim import core.1234 -o my.kdl                 a hang as threads and locks
  clrsim import core.1234 --thread 1240 -o my.kdl   the stack of a thread
  clrsim import my-stacks.txt --thread 0x3e7        what a debugger has printed

Of a recording, without --walk the walks are listed: number, situation, variant and result. A walk
is named by its number, or as clrsim run prints it: --walk 'my.walks.jsonl.gz walk 7'.

The scenario has the stack placed by hand: the managed frames that the runtime reached, one frame
for the native code between two of them, the explicit Frames, and the state of the thread. It keeps
names, and moves addresses to small ones. Functions get new code, with the saved registers and the
frame of the old one. Where frames of one function differ in size, they are of versions of it:
App.Foo@2.

The scenario expects the recorded result on the recorded runtime. It is run before it is printed,
and refused if its result is another one: so are some seeds that are wrong on purpose, for example
with rsp in the middle of a word.

Of a trace of calls (clr-recorder with mode=trace, clrsim host --trace FILE.jsonl) it is the program
that makes the same callbacks: its methods that were compiled, walked or passed by an exception, its
threads, exceptions with their handlers, and the GCs that it has asked for. Which method calls which
is known from walks and exceptions alone; all others are called by the first one of their thread.
The head says what is not in it. clrsim host --compare checks the scenario. (With the feature host.)

Of a core dump, as for clrsim inspect, with --thread N it is the stack of that thread, placed by
hand, and a call of DoStackSnapshot as --by, --seed and --suspended say (with none of them by a
native thread, after SuspendRuntime), with what the runtime of that version gives. Without --thread
it is the hang that clrsim diagnose finds: threads and locks, in which a search finds the same
circle; without the lock it finds none. Nothing is taken over but names of methods, modules and
Frames, and addresses, made small: no paths, no environment, no arguments, no contents of memory.
The head says what is assumed, and so does the output.

Of stacks that a debugger has printed it is the stack of a thread; without --thread the threads are
listed. Read are clrstack (best with -f -all, and after clrthreads) and pstacks of dotnet-dump and
of SOS, dotnet-stack report, the JSON of createdump --crashreport, backtraces of gdb and lldb, k of
WinDbg, and perf script. None of them has all that decides a call: what is assumed is said. The
call is made from the Frames, of clrstack; else with a seed for the first managed frame; and not at
all if there are no managed frames.

Exit codes:
  0  the scenario was printed or written, or the walks were listed
  2  the arguments are wrong, the file is missing or cannot be read, there is no such walk or
     thread, no scenario can give its result, or the file is there already or cannot be written
  3  the dump or the runtime lacks what the scenario depends on: it is said what";

/// Write what others have recorded as a scenario: a walk, a trace of calls, a stack or a hang of a
/// core dump, stacks that a debugger has printed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ImportArgs {
    /// A recording of walks (*.walks.jsonl.gz or *.walks.jsonl), or the name of an embedded one; a
    /// trace of calls; a core dump; or a text with stacks of a debugger
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) walk: WalkArg,

    /// Of a core dump or a debugger's text: the thread with this id of the operating system
    #[arg(long, value_name = "N", value_parser = thread_id)]
    pub(crate) thread: Option<u32>,

    #[command(flatten)]
    pub(crate) call: CallArgs,

    /// Of a core dump: a folder with files of the machine where the process ran; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Vec<PathBuf>,

    /// Of a core dump or a debugger's text: the simulated runtime [default: that of the version that it
    /// shows]
    #[arg(long, value_name = "RUNTIME", value_parser = generations())]
    pub(crate) on: Option<Generation>,

    #[command(flatten)]
    pub(crate) output: OutputArg,
}

/// Parses the id of a thread, decimal or as debuggers print it: `0x3e7`.
pub(super) fn thread_id(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let number =
        digits.map_or_else(|| text.parse().ok(), |digits| u32::from_str_radix(digits, 16).ok());
    number.ok_or_else(|| "say a number, such as 999 or 0x3e7".to_owned())
}
