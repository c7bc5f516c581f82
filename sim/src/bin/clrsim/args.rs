//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use clr_walker::unwind::Rules;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Of a fixed width, so that the help is the same on every terminal.
const HELP_WIDTH: usize = 100;

const EXIT_CODES: &str = "\
Exit codes:
  0  everything asked for was done, and every case passed
  1  some case failed
  2  the arguments are wrong, or an input is missing or cannot be read";

const CLI_EXAMPLES: &str = "\
Examples:
  clrsim                                   replay the embedded fixtures
  clrsim run my/fixtures                   replay all that lies in a folder
  clrsim show win64/vec/gcc_O2.vec.gz      draw the first case of a file
  clrsim dump my.dll                       print the function table of an image";

const RUN_EXAMPLES: &str = "\
Examples:
  clrsim run
  clrsim run my/fixtures --filter gcc --rules windows
  clrsim run vec/gcc_O2.vec.gz --json --max-failures 0

Vectors in DIR/vec/NAME.vec.gz are of the image DIR/img/NAME.dll or, where that is missing, of
NAME.dll beside them.

Exit codes:
  0  every case passed, or was skipped because no answer is expected
  1  some case failed
  2  the arguments are wrong, or an input is missing or cannot be read; the others are replayed";

const SHOW_EXAMPLES: &str = "\
Examples:
  clrsim show win64/vec/asm_raw.vec.gz --case 1200
  clrsim show win64/diff/fuzz.bin.gz --case 7 --rules windows

Exit codes:
  0  the case was drawn, whether it passes or not
  2  the arguments are wrong, the input is missing or cannot be read, or there is no such case";

const DUMP_EXAMPLES: &str = "\
Examples:
  clrsim dump my.dll
  clrsim dump win64/img/gcc_O2.dll --function t_ack
  clrsim dump win64/img/gcc_O2.dll --function 0x24f0 --json

Exit codes:
  0  the functions were printed; broken entries are printed as what is wrong with them
  2  the arguments are wrong, the image is missing or cannot be read, or there is no such function";

/// Replays recorded unwinds, draws single ones, and prints the function tables of images.
///
/// Without a command: `run` on the embedded fixtures.
#[derive(Debug, Parser)]
#[command(name = "clrsim", bin_name = "clrsim", version, term_width = HELP_WIDTH)]
#[command(after_help = CLI_EXAMPLES, after_long_help = format!("{CLI_EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Show(ShowArgs),
    Dump(DumpArgs),
}

/// Replay recorded unwinds and compare the answers with what is known of them.
///
/// A case passes if every known register is as recorded. It is skipped if no answer is
/// expected, because its code cannot be unwound or because nothing is known of it: then it is
/// replayed all the same, and only has to come to an end.
#[derive(Debug, Default, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    /// Files of vectors or fuzz records, or folders of them: in folders, *.vec.gz and *.bin.gz.
    /// Without any: the embedded fixtures
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) rules: RulesArg,

    /// Only files whose path contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,

    /// Threads to replay on; the output does not depend on it [default: one for each processor]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,

    /// How many failures of each file to explain; all are counted [default: 5]
    #[arg(long, value_name = "N")]
    pub(crate) max_failures: Option<u64>,

    /// One JSON object a line: one for each file, and a total
    #[arg(long)]
    pub(crate) json: bool,
}

/// Draw one recorded unwind: code, unwind data, stack and frames.
#[derive(Debug, Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub(crate) struct ShowArgs {
    /// A file of vectors or fuzz records, or the name of an embedded one
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Which case of the file, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) case: u64,

    #[command(flatten)]
    pub(crate) rules: RulesArg,
}

/// Print the function table of an image: ranges of code and how to unwind them.
#[derive(Debug, Args)]
#[command(after_help = DUMP_EXAMPLES)]
pub(crate) struct DumpArgs {
    /// An x86-64 PE image, or the name of an embedded one
    #[arg(value_name = "IMAGE")]
    pub(crate) image: PathBuf,

    /// Only the function of this name, or the one that has code at this RVA (0x…)
    #[arg(long, value_name = "NAME|RVA")]
    pub(crate) function: Option<String>,

    /// One JSON object a line for each function
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct RulesArg {
    /// Which rules decide where unwinders disagree
    #[arg(long = "rules", value_name = "RULES", default_value = "precise")]
    choice: RulesChoice,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum RulesChoice {
    /// What execution shows, compared with the truth
    #[default]
    Precise,
    /// What Windows does, mistakes included, compared with CoreCLR's answers
    Windows,
}

impl RulesArg {
    /// The walker's rules.
    pub(crate) const fn rules(self) -> Rules {
        match self.choice {
            RulesChoice::Precise => Rules::Precise,
            RulesChoice::Windows => Rules::Windows,
        }
    }

    /// The name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self.choice {
            RulesChoice::Precise => "precise",
            RulesChoice::Windows => "windows",
        }
    }
}
