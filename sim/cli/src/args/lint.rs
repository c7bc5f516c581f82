//! Arguments of `clrsim lint`.

use super::{FunctionArg, Jobs, Json, Limit};
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  clrsim lint my.dll
  clrsim lint libmine.so --function my_function
  clrsim lint my.dll --function 0x24f0 --json
  clrsim lint --summary *.dll               figures only, an image a line

Every function is executed from its entry, along both sides of each branch, with a return address
and nonvolatile registers that are known. At each instruction, and at each return address, the
unwinder's answer is compared with the execution. What cannot be known, such as rsp after alloca, is
not judged.

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

and says what is wrong:

  data           the unwind data, or code of a form that it cannot describe
  windows-rules  the rules of RtlVirtualUnwind; clr-unwind's precise rules are right
  walker         clr-unwind: the bytes, or other rules, give the answer
  unknown        not known: the data is right if the code is entered in another way than by a call

JSON: one object a line for each finding, and one for each image: see sim/cli/src/schema.md.

Exit codes:
  0  there is no finding; the first line says how much of the code was executed
  1  there is a finding
  2  the arguments are wrong, an image is missing or cannot be read, or there is no such function";

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

    /// Only the figures of each image
    #[arg(long)]
    pub(crate) summary: bool,

    #[command(flatten)]
    pub(crate) json: Json,
}
