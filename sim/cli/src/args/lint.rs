//! Arguments of `clrsim lint`.

use super::{FunctionArg, Jobs, Json, Limit};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use clr_lint::Cause;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  clrsim lint my.dll
  clrsim lint libmine.so --function my_function
  clrsim lint my.dll --function 0x24f0 --json
  clrsim lint --summary *.dll               figures only, an image a line
  clrsim lint my.so --allow no-unwind-data  an image that is known to have none
  clrsim lint my.dll --json > known.jsonl      what there is today,
  clrsim lint my.dll --baseline known.jsonl    and what comes new: that alone fails
  clrsim lint my.dll --format sarif > lint.sarif

Every function is executed from its entry, along both sides of each branch, with a return address
and nonvolatile registers that are known. At each instruction, and at each return address, the
unwinder's answer is compared with the execution. What cannot be known, such as rsp after alloca, is
not judged. Of Go, OCaml and Haskell the registers that these preserve are judged, and no others.

A finding is a function and a kind of difference:

  frame-gone          the data describes a frame, or a part of one, that is not there
  frame-grown         the data does not describe that rsp was moved
  register-lost       a register was overwritten, and by the data it was not, or was saved elsewhere
  saved-elsewhere     a register of the caller is in another place than the data says
  no-data             code without unwind data is no leaf
  handler-alone       UNWIND_INFO without codes: only the handler knows the frame
  own-return-address  the data takes a word that the function pushed for the return address
  refused             the data cannot be used
  other               the data leads elsewhere

or an image and a fault of its tables, which no execution shows:

  no-unwind-data  no more than a twentieth of the code has unwind data
  nothing-judged  the code has unwind data, and no function in it could be judged
  misaligned      a table or an entry's data is at no multiple of 4
  unordered       an entry begins before the one in front of it
  overlap         an entry begins before the one in front of it ends
  empty-range     an entry ends where it begins, or before
  outside-code    an entry describes bytes that are not code
  chain-loop      a chain of entries does not end
  unreadable      a table is cut off

and says what is wrong:

  data           the unwind data, or code of a form that it cannot describe
  windows-rules  the rules of RtlVirtualUnwind; clr-unwind's precise rules are right
  walker         clr-unwind: the bytes, or other rules, give the answer
  unknown        not known: the data is right if the code is entered in another way than by a call

The first lines say how much of all code has unwind data and was executed, and in how many functions
nothing was decided, and why. An image of NativeAOT or ready-to-run code says which .NET made it.

A baseline is the output of an earlier run with --json. A finding is known if the baseline has one
of its kind in the same function: by name, or, of a function without a name, by its code.

JSON: one object a line for each finding, and one for each image: see sim/cli/src/schema.md.

Exit codes:
  0  there is no finding, or each is allowed or known
  1  there is a finding that is neither allowed by --allow nor known by --baseline
  2  the arguments are wrong, an image or the baseline is missing or cannot be read, or there is no
     such function";

/// A form of findings, for other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LintFormat {
    // Without a doc comment: with one, the whole help takes two lines for each option.
    Sarif,
}

fn cause() -> impl clap::builder::TypedValueParser<Value = Cause> {
    let parser = PossibleValuesParser::new(Cause::ALL.map(Cause::name));
    parser.try_map(|name| Cause::ALL.into_iter().find(|it| it.name() == name).ok_or("no kind"))
}

/// Judge the unwind data of images: execute each function, and compare at each instruction.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LintArgs {
    /// x86-64 PE, ELF or Mach-O images, or the names of embedded ones
    #[arg(value_name = "IMAGE", required = true)]
    pub(crate) images: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) function: FunctionArg,

    /// Maximum number of findings of each kind that are printed as text, or all
    #[arg(long, value_name = "N|all", default_value = "3")]
    pub(crate) limit: Limit,

    #[command(flatten)]
    pub(crate) jobs: Jobs,

    /// Findings of this kind do not fail, such as no-unwind-data; may be given more than once
    #[arg(long, value_name = "KIND", value_parser = cause(), hide_possible_values = true)]
    pub(crate) allow: Vec<Cause>,

    /// The output of an earlier run with --json: only findings that it lacks are printed as text, and fail
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,

    /// All findings in the form of other tools: SARIF 2.1.0, which CI servers show
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["json", "summary"])]
    pub(crate) format: Option<LintFormat>,

    /// Only the figures of each image
    #[arg(long)]
    pub(crate) summary: bool,

    #[command(flatten)]
    pub(crate) json: Json,
}
