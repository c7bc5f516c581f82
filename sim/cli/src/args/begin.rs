//! Arguments of the commands for other tools: `gen`, `lsp`.

use super::Json;
use crate::output::Replacing;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

const GEN_EXAMPLES: &str = "\
Examples:
  clrsim gen completions bash > ~/.local/share/bash-completion/completions/clrsim
  clrsim gen man -o ~/.local/share/man/man1
  clrsim gen schema > clrsim.schema.json
  clrsim gen words --json > words.jsonl";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  clrsim gen completions bash > ~/.local/share/bash-completion/completions/clrsim
  clrsim gen completions zsh > ~/.zfunc/_clrsim
  clrsim gen completions fish > ~/.config/fish/completions/clrsim.fish
  clrsim gen completions powershell >> $PROFILE

The shell asks this tool what fits: commands, options, paths, the names of embedded files, of
runtimes and of rules.";

const MAN_EXAMPLES: &str = "\
Examples:
  clrsim gen man | man -l -
  clrsim gen man -o ~/.local/share/man/man1

Exit codes:
  0  the pages were printed or written
  2  the arguments are wrong, or a page is there already or cannot be written";

const SCHEMA_EXAMPLES: &str = "\
Examples:
  clrsim gen schema > clrsim.schema.json
  clrsim gen schema text > scenario.schema.json

A node of a scenario is, in JSON, an object: name, arguments, properties, children. The schema of the
output is made of what this tool prints; sim/cli/src/schema.md says what the fields mean.";

const WORDS_EXAMPLES: &str = "\
Examples:
  clrsim gen words SIGUSR1 FunctionEnter
  clrsim gen words --json > words.jsonl

Public names of the profiling interfaces are among them. With --json an object a line: kind (word),
word, here (what scenarios have for it), find (words that clrsim list and the site's search know).

Exit codes:
  0  the words were printed
  2  the arguments are wrong, or a word is none of these";

/// Print or write what other tools read about this one.
#[derive(Debug, Args)]
#[command(after_help = GEN_EXAMPLES)]
pub(crate) struct GenArgs {
    #[command(subcommand)]
    pub(crate) what: Gen,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Gen {
    Completions(CompletionsArgs),
    Man(ManArgs),
    Schema(SchemaArgs),
    Words(WordsArgs),
}

/// The subject of a schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SchemaOf {
    /// The objects that commands print with --json
    Output,
    /// The nodes of scenarios
    Text,
}

/// Print a JSON Schema: of the output, or of the nodes of scenarios.
#[derive(Debug, Args)]
#[command(after_help = SCHEMA_EXAMPLES)]
pub(crate) struct SchemaArgs {
    /// What it describes
    #[arg(value_name = "SUBJECT", default_value = "output")]
    pub(crate) of: SchemaOf,
}

/// Print the words of the field, and what scenarios have for each: for searches and for editors.
#[derive(Debug, Args)]
#[command(after_help = WORDS_EXAMPLES)]
pub(crate) struct WordsArgs {
    /// Only these words [default: all]
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// Print the completions of this command line for a shell.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_parser = ["bash", "elvish", "fish", "powershell", "zsh"])]
    pub(crate) shell: String,
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

const LSP_EXAMPLES: &str = "\
Examples:
  clrsim lsp                          speaks the language server protocol on stdin and stdout

VS Code: the extension of a release, or of sim/cli/editors/vscode.

Neovim 0.11, in init.lua (for 0.7 and later: sim/cli/editors/neovim/clrsim.lua):

  vim.filetype.add({ extension = { kdl = 'kdl' } })
  vim.lsp.config('clrsim', { cmd = { 'clrsim', 'lsp' }, filetypes = { 'kdl' } })
  vim.lsp.enable('clrsim')

Helix, in languages.toml:

  [language-server.clrsim]
  command = \"clrsim\"
  args = [\"lsp\"]

  [[language]]
  name = \"kdl\"
  language-servers = [\"clrsim\"]

What it does: problems of a scenario while it is written, with the corrections that they suggest,
and after a save the expectations that do not come out; completion of nodes, properties, words and
names; on an id such as C-044 or H-08 its rule, on a node its meaning with an example, on a name
where it is defined; symbols, definitions, uses and new names of functions, threads, locks, events
and buffers, where the scenario is valid before and after; layout (clrsim fmt); and two commands, to
run a scenario on all runtimes, and to write what the simulator gives into its expectations (clrsim
run --bless). Names of modules and types are in symbols alone.

Exit codes:
  0  the editor has ended the session
  2  the editor has sent something that is no message of the protocol";

/// Serve an editor: check, complete, explain, lay out and run scenarios while they are written.
#[derive(Debug, Args)]
#[command(after_help = LSP_EXAMPLES)]
pub(crate) struct LspArgs {
    /// Speak over standard input and output, as the server does in any case: some editors add this
    #[arg(long)]
    stdio: bool,
}
