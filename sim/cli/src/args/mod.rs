//! Arguments of the commands.

mod begin;
#[cfg(feature = "pages")]
mod candidates;
mod generators;
mod histories;
mod host;
mod import;
mod inspect;
mod lint;
mod renamed;
mod run;
mod scenarios;
mod shared;
mod snapshot_call;

#[cfg(feature = "pages")]
pub(crate) use begin::{CompletionsArgs, ManArgs};
pub(crate) use begin::{Gen, GenArgs, LspArgs, SchemaArgs, SchemaOf, WordsArgs};
pub(crate) use generators::{GenerateArgs, GenerateKind, MinimizeArgs};
pub(crate) use histories::{
    DrawArgs, ExploreArgs, MergeArgs, ReplayArgs, SearchArgs, SettingsArgs, Shard, StrategyChoice,
};
pub(crate) use host::HostArgs;
#[cfg(feature = "host")]
pub(crate) use host::LimitArgs;
pub(crate) use import::ImportArgs;
pub(crate) use inspect::{DiagnoseArgs, DumpArgs, InspectArgs};
pub(crate) use lint::{LintArgs, LintFormat};
pub(crate) use renamed::renamed;
pub(crate) use run::RunArgs;
pub(crate) use scenarios::{CompareArgs, FmtArgs, ListArgs, MatrixArgs, NewArgs, NewKind};
pub(crate) use shared::{
    FunctionArg, Jobs, Json, Limit, On, OutputArg, RulesArg, ScenarioArg, SnapshotArg, Timeout,
    WalkArg,
};
use shared::{generations, sets};
use snapshot_call::CallArgs;

use crate::output::Replacing;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
#[cfg(feature = "pages")]
use clap_complete::engine::ArgValueCompleter;
use clr_runtime::clause::Chapter;
use clr_runtime::generation::{Generation, Generations};
use clr_sim::book::references::{Reference, find};
use std::ffi::OsString;
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
  0  everything asked for was done, and every case passed
  1  some case failed
  2  the arguments are wrong, or an input is missing or cannot be read";

const CLI_EXAMPLES: &str = "\
Examples:
  clrsim                                   print where to begin
  clrsim run --summary                     run the embedded fixtures, and print a summary
  clrsim run my/fixtures                   run all files of a folder
  clrsim matrix my.kdl                     a scenario's snapshots on all runtimes, side by side
  clrsim compare my.kdl                    the frames that each kind of profiler finds
  clrsim explore my.kdl                    search a profiler's interleavings for one that fails
  clrsim host libMyProfiler.so my.kdl      run a profiler's library over a scenario
  clrsim list --clause C-044               the embedded scenarios about a rule
  clrsim list stackwalk lock               the embedded scenarios with these words
  clrsim list --print gallery/seeds/hole-at-the-leaf.kdl
                                           print an embedded text
  clrsim new my.kdl                        write a scenario to start from
  clrsim show win64/vec/gcc_O2.vec.gz      draw the first case of a file
  clrsim show my.dll                       print the function table of an image, or its CFI
  clrsim explain clr/win31-async-alloc.walks.jsonl.gz --walk 12
                                           explain the result of a recorded walk
  clrsim import my.walks.jsonl.gz --walk 12 -o my.kdl
                                           write a recorded walk as a text
  clrsim lint my.dll                       judge the unwind data of an image
  clrsim inspect core.1234                 print the threads of a core dump
  clrsim diagnose core.1234                who waits for whom in a process that hangs
  clrsim trace programs/tail_call.kdl      print the run of a program, with its stack
  clrsim emit my.kdl -o my/images          write a program's images for other tools
  clrsim rules C-044                       print a rule of the CLR
  clrsim runtimes --diff net9-unix net10-unix
                                           what differs between two runtimes";

const SHOW_EXAMPLES: &str = "\
Examples:
  clrsim show win64/vec/asm_raw.vec.gz --case 1200
  clrsim show win64/diff/fuzz.bin.gz --case 7 --unwind-rules coreclr
  clrsim show clr/win31-async-alloc.walks.jsonl.gz --walk 5
  clrsim show my.dll
  clrsim show win64/img/gcc_O2.dll --function t_ack
  clrsim show win64/img/gcc_O2.dll --function 0x24f0 --json
  clrsim show my.so --function main

Recorded walks are replayed by the recorded runtime; --unwind-rules has no effect on them. clrsim
explain explains the same walk in sentences.

Of an ELF image the call frame information is printed: for each range of code where the CFA is,
which is the caller's rsp before its call, and where its registers are. [cfa-0x10] is the value in
memory there; a register that is not named has the value that it has in the caller.

JSON of an ELF image: one object a line for each function: begin, end, name, rows (begin, end, cfa,
registers by name, such as rbx, return_address, signal_frame), and error, if rows are missing.

Exit codes:
  0  the case was drawn, whether it passes or not; the functions were printed, of a broken entry its
     error
  2  the arguments are wrong, the input is missing or cannot be read, or there is no such case or
     function";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  clrsim explain clr/win31-async-alloc.walks.jsonl.gz
  clrsim explain clr/win31-async-alloc.walks.jsonl.gz --walk 12
  clrsim explain clr/linux9-states.walks.jsonl.gz --json
  clrsim explain my.kdl
  clrsim explain my.kdl --snapshot 2 --on windows

The call is replayed, and each of its decisions is a line: the values that decided it, and in
brackets its clauses, the deciding one first. Of a list that was printed before only the first
clause is repeated. clrsim rules C-044 prints a clause.

The snapshots of a scenario are explained one by one. Runtimes with the same story share it; the
addresses of programs differ between runtimes and do not count.

In the words of the story a Frame with a capital F is the explicit Frame object of the runtime, a
marker a callback with FunctionID 0, and a seed the CONTEXT that is given to DoStackSnapshot.

JSON of a walk: one object. file, walk (its number), generation, situation, variant, workload,
call (thread, walker, flags, seed), story, replayable and why (whether it is expected to come out
as recorded), as_recorded, and differences. A line of the story has kind (call, check, start, walk,
callback, refusal, end), depth (1 in a call that a callback has made), callback (its number), text,
clauses.

JSON of a scenario: an object a line, of the kind story, for each story. file, snapshot (its number
in the scenario), title, call in words, runtimes, story, result, as_expected, and differences.

Exit codes:
  0  the walk or the snapshots were explained, with or without differences
  2  the arguments are wrong, the input is missing or is neither a recording nor a scenario, or
     there is no such walk or snapshot";

const TRACE_EXAMPLES: &str = "\
Examples:
  clrsim trace programs/tail_call.kdl
  clrsim trace programs/ryujit_funclet.kdl --function Method --at 7
  clrsim trace programs/msvc_region.kdl --stack --from 5 --limit 3

The program is executed without a runtime. One that goes through the runtime is shown by clrsim
matrix and clrsim compare, where it stops, and by clrsim replay --draw.

A line is an instruction, or an interrupt before one: the number of instructions executed before
it, the function, indented by the depth of its call, and the effect on the frame. [cfa-0x10] is the
stack below the CFA, which is the caller's rsp before the call. A ! marks where
Windows' rules, or call frame information that is wrong on purpose, are known to go wrong, in this
frame or in one that called it.

At the fixture's stops the stack is drawn from rsp up: a value that a register had in the caller is
saved, one that the prologue has still to save is not.

JSON: one object a line. Its kind is instruction or interrupt: number, address, function, offset,
depth (calls around it), role (prologue, body, epilogue, helper), text, effect, rsp, cfa, windows
(the mistakes: frame, function, mistake), cfi_mistakes (the same), cfi, where it is asked for (cfa,
registers by name, such as rbx, return_address, signal_frame), stops (which of the fixture are
here), and stack, where it is drawn: address, len, value, frame, role, pointing (registers). The
last line is of the kind end (number, outcome, stops, stack) or cut (why).

Exit codes:
  0  the run was printed, however the program ended
  2  the arguments are wrong, the fixture is missing or is no program, or cannot be run";

const EMIT_EXAMPLES: &str = "\
Examples:
  clrsim emit programs/tail_call.kdl -o my/images
  clrsim emit my.kdl -o my/images --force

Writes into the folder, which is made if need be:
  native.dll    the unmanaged functions, as a PE image; for the convention system-v libnative.so, an
                ELF image
  managed.dll   the ready-to-run functions, as a PE image
  jit.bin       the heap of the JIT, and jit.json: its base, RUNTIME_FUNCTIONs and nibble map
  program.json  functions, their parts, and the role of each instruction
Kinds of code that the program does not have are left out.

Exit codes:
  0  the files were written
  2  the arguments are wrong, the fixture is missing or is no program, or a file is there already or
     cannot be written";

const RUNTIMES_EXAMPLES: &str = "\
Examples:
  clrsim runtimes
  clrsim runtimes net9-windows
  clrsim runtimes windows --json
  clrsim runtimes --diff net8-windows coreclr-3.1-windows
  clrsim matrix my.kdl --on hides_exception_handling=no

Runtimes are named as everywhere with --on: by their names, by families (windows, unix or linux,
net8, net9, net10, newest, core, framework, all), and by a question with its answer. Several are
separated by commas.

Without a name: how many answers of each runtime are known how. With names: each answer. It is

  observed    in recorded calls of this runtime
  read        in its source, at the place in parentheses
  documented  in its documentation or interface definitions
  assumed     for the reason in parentheses: nobody has looked

JSON: one object a line. Of a runtime: kind (runtime), name, title, os, product, version,
legacy_exceptions, answers (question, answer, known, source). Of --diff: kind (difference),
question, meaning, runtimes, answers (as above, one of each).

Exit codes:
  0  the runtimes were printed
  2  the arguments are wrong, or there is no such runtime";

const RULES_EXAMPLES: &str = "\
Examples:
  clrsim rules
  clrsim rules C-044 C-045
  clrsim rules --on net9-unix --chapter seeds
  clrsim rules C-014 --json
  clrsim rules §2.6 H-08 D-15 E-6 G17

With --on a rule is printed that is true of each of these runtimes.

An id of another kind is that of a section of the contract, a row of its entry checks, a hazard, an
error of the documentation, a worked stack or a field bug. These are printed after the clauses.

Of each clause: its number, the runtimes in which it is true, the rule, where that stands, and how
well it is known on each. It is

  shown       by a recording of the runtime that does not come out without the rule
  observed    in recorded calls of the runtime that it applies to
  read        in the source of the runtime
  documented  in the documentation, which names no runtime
  assumed     to be as in another runtime

With ids, of each runtime the recording, the source or the page. Of Windows all was seen under wine.

Files are those of CoreCLR 3.1 unless a repository is named. Frame with a capital F is the explicit
Frame object of the runtime, a marker is a callback with FunctionID 0, a seed the CONTEXT that is
given to DoStackSnapshot, and EH exception handling.

JSON: one object a line: clause, chapter, rule, generations, support, source; of other kinds kind,
id, title, text, page.

Exit codes:
  0  the rules were printed
  2  the arguments are wrong, there is no such id, or none meets all conditions";

/// Simulates .NET runtimes: runs scenario files, checks each stack walk against its expected result,
/// and explains every decision.
///
/// Without a command: where to begin.
#[derive(Debug, Parser)]
#[command(name = "clrsim", bin_name = "clrsim", version)]
#[command(after_help = CLI_EXAMPLES, after_long_help = format!("{CLI_EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Cli {
    /// Parses the arguments. Help and errors are wrapped at a number of characters.
    pub(crate) fn parse_within(args: Vec<OsString>, width: usize) -> Result<Self, clap::Error> {
        let matches = Self::command().term_width(width).try_get_matches_from(args)?;
        Self::from_arg_matches(&matches)
    }
}

impl Cli {
    /// Returns true if the output is a text for a file or for another program, whose lines must stay as they are.
    pub(crate) fn prints_document(&self) -> bool {
        match &self.command {
            Some(Command::Run(args)) => args.bless || args.format.is_some(),
            Some(Command::Lint(args)) => args.format.is_some(),
            Some(Command::List(args)) => args.print.is_some(),
            Some(
                Command::New(_)
                | Command::Fmt(_)
                | Command::Import(_)
                | Command::Generate(_)
                | Command::Lsp(_)
                | Command::Gen(_),
            ) => true,
            _ => false,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Matrix(MatrixArgs),
    Compare(CompareArgs),
    Explain(ExplainArgs),
    Show(ShowArgs),
    Trace(TraceArgs),
    Explore(ExploreArgs),
    Merge(MergeArgs),
    Replay(ReplayArgs),
    Host(Box<HostArgs>),
    Lint(LintArgs),
    Inspect(InspectArgs),
    Diagnose(DiagnoseArgs),
    New(NewArgs),
    List(ListArgs),
    Fmt(FmtArgs),
    Import(ImportArgs),
    Generate(GenerateArgs),
    Minimize(MinimizeArgs),
    Emit(EmitArgs),
    Rules(RulesArgs),
    Runtimes(RuntimesArgs),
    Lsp(LspArgs),
    Gen(GenArgs),
}

/// Draw a recorded unwind or walk, or print what an image says of its functions.
///
/// Of an unwind: code, unwind data, stack and frames. Of a walk: its managed frames and the explicit
/// Frames where they lie on the stack, what the walk did with them, and how often it read each word.
/// Of an image: its function table, or its CFI: ranges of code and how to unwind them.
#[derive(Debug, Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub(crate) struct ShowArgs {
    /// A recording of walks, a file of vectors or fuzz records, an x86-64 PE or ELF image, or the name
    /// of an embedded one
    #[arg(value_name = "FILE")]
    #[cfg_attr(feature = "pages", arg(add = ArgValueCompleter::new(candidates::files)))]
    pub(crate) file: PathBuf,

    /// Of vectors and fuzz records: which case, counted from 0 [default: the first one]
    #[arg(long, value_name = "N")]
    pub(crate) case: Option<u64>,

    #[command(flatten)]
    pub(crate) walk: WalkArg,

    #[command(flatten)]
    pub(crate) rules: RulesArg,

    #[command(flatten)]
    pub(crate) function: FunctionArg,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// Explain the result of a recorded walk or of the snapshots of a scenario: each decision of the
/// runtime, with its clauses.
#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// A recording of walks (*.walks.jsonl.gz or *.walks.jsonl), a scenario (*.kdl), or the name of an
    /// embedded one
    #[arg(value_name = "FILE")]
    #[cfg_attr(feature = "pages", arg(add = ArgValueCompleter::new(candidates::files)))]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) walk: WalkArg,

    #[command(flatten)]
    pub(crate) snapshot: SnapshotArg,

    #[command(flatten)]
    pub(crate) on: On,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// Print a program's run instruction by instruction, and its stack.
#[derive(Debug, Args)]
#[command(after_help = TRACE_EXAMPLES)]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArg,

    /// Which of its threads [default: the first one]
    #[arg(long, value_name = "NAME")]
    pub(crate) thread: Option<String>,

    /// Only from the instruction with this number on
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) from: u64,

    /// Maximum number of lines that are printed, or all
    #[arg(long, value_name = "N|all", default_value = "1000")]
    pub(crate) limit: Limit,

    /// Only instructions of this function
    #[arg(long, value_name = "NAME")]
    pub(crate) function: Option<String>,

    /// Draw the stack before the instruction with this number too; can be repeated
    #[arg(long, value_name = "N")]
    pub(crate) at: Vec<u64>,

    /// Draw the stack at every line
    #[arg(long)]
    pub(crate) stack: bool,

    /// Print what the call frame information of ELF images says, where that changes
    #[arg(long)]
    pub(crate) cfi: bool,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// Write a program's images, for use with other tools.
#[derive(Debug, Args)]
#[command(after_help = EMIT_EXAMPLES)]
pub(crate) struct EmitArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArg,

    /// The folder to write to
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) replacing: Replacing,
}

/// Print the rules of the CLR that the simulator keeps.
#[derive(Debug, Args)]
#[command(after_help = RULES_EXAMPLES)]
pub(crate) struct RulesArgs {
    /// Only these (C-014, 14, "§2.6", "Row 13a", H-08, D-15, E-6, G17) [default: all clauses]
    #[arg(value_name = "ID", value_parser = find)]
    #[cfg_attr(feature = "pages", arg(add = ArgValueCompleter::new(candidates::rules)))]
    pub(crate) ids: Vec<&'static Reference>,

    #[command(flatten)]
    pub(crate) on: On,

    /// Only this chapter
    #[arg(long, value_name = "NAME", value_parser = chapters())]
    pub(crate) chapter: Option<Chapter>,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// List the simulated runtimes: what each of them does, and how that is known.
#[derive(Debug, Args)]
#[command(after_help = RUNTIMES_EXAMPLES)]
pub(crate) struct RuntimesArgs {
    /// Print the answers of these: names of runtimes, or of sets of them [default: an overview]
    #[arg(value_name = "RUNTIMES", value_parser = sets)]
    #[cfg_attr(feature = "pages", arg(add = ArgValueCompleter::new(candidates::runtimes)))]
    pub(crate) runtimes: Vec<Generations>,

    /// Print what two runtimes answer differently
    #[arg(
        long,
        num_args = 2,
        value_names = ["A", "B"],
        value_parser = generations(),
        conflicts_with = "runtimes"
    )]
    pub(crate) diff: Option<Vec<Generation>>,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// Returns a parser of the names of chapters.
fn chapters() -> impl TypedValueParser<Value = Chapter> {
    PossibleValuesParser::new(Chapter::ALL.iter().map(|chapter| chapter.name()))
        .try_map(|name| Chapter::from_name(&name).ok_or("there is no such chapter"))
}
