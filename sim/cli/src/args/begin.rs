//! Arguments of the commands around the others: `cat`, `completions`, `man`.

use crate::output::Replacing;
use clap::{Args, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;

const CAT_EXAMPLES: &str = "\
Examples:
  clrsim cat gallery/seeds/hole-at-the-leaf.kdl
  clrsim cat gallery/seeds/hole-at-the-leaf.kdl > my.kdl
  clrsim cat clr/win31-async-alloc.walks.jsonl.gz

Compressed recordings are printed decompressed. clrsim list prints the names of the embedded texts.

Exit codes:
  0  the text was printed
  2  the arguments are wrong, or there is no such text, or it has no text form";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  clrsim completions bash > ~/.local/share/bash-completion/completions/clrsim
  clrsim completions zsh > ~/.zfunc/_clrsim
  clrsim completions fish > ~/.config/fish/completions/clrsim.fish
  clrsim completions powershell >> $PROFILE";

const MAN_EXAMPLES: &str = "\
Examples:
  clrsim man | man -l -
  clrsim man -o ~/.local/share/man/man1

Exit codes:
  0  the pages were printed or written
  2  the arguments are wrong, or a page is there already or cannot be written";

const SCHEMA_EXAMPLES: &str = "\
Examples:
  clrsim schema output > clrsim.schema.json
  clrsim schema text > scenario.schema.json

A node of a text is, in JSON, an object: name, arguments, properties, children. In the output an
object and the objects in it have fields of one section of the tables in sim/cli/src/schema.md.";

/// The subject of a schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SchemaOf {
    /// The objects that commands print with --json
    Output,
    /// The nodes of texts
    Text,
}

/// Print a JSON Schema: of the output, or of the nodes of texts.
#[derive(Debug, Args)]
#[command(after_help = SCHEMA_EXAMPLES)]
pub(crate) struct SchemaArgs {
    /// What it describes
    #[arg(value_name = "SUBJECT")]
    pub(crate) of: SchemaOf,
}

/// Print a text as it is stored: an embedded one by its name, or a file.
#[derive(Debug, Args)]
#[command(after_help = CAT_EXAMPLES)]
pub(crate) struct CatArgs {
    /// A text (*.kdl), a recording of walks, or the name of an embedded one
    #[arg(value_name = "NAME")]
    pub(crate) name: PathBuf,
}

/// Print the completions of this command line for a shell.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Print the manual page, or write one for each command.
#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct ManArgs {
    /// Write the page of each command to this folder
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) replacing: Replacing,
}
