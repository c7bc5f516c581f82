//! `clrsim` without a command, and what a shell needs to know of the tool: completions and manual pages.

use crate::PASSED;
use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::input::slashed;
use crate::render::console::{Console, DIM, HEAD};
use crate::render::error::CliError;
use clap::CommandFactory as _;
use clap_mangen::Man;

/// The first commands to try.
const FIRST: [(&str, &str); 7] = [
    ("new my.kdl", "write a text to start from: a stack, and a call of DoStackSnapshot"),
    ("run my.kdl", "hold it against what it expects"),
    ("matrix gallery/seeds/c-039-stubs.kdl", "one text on all runtimes, and why"),
    ("explore gallery/hazards/h-08-callback-takes-a-lock.kdl", "find a profiler's deadlock"),
    ("list lock", "the embedded texts about something; clrsim cat NAME prints one"),
    ("run --summary", "replay the evidence that comes with the tool"),
    ("--help", "all commands"),
];

/// Prints where to begin and returns the exit code.
pub(crate) fn begin(console: &mut Console<'_>) -> Result<u8, CliError> {
    let about = Cli::command().get_about().map(ToString::to_string).unwrap_or_default();
    for line in crate::render::wrap::wrapped(&about, crate::render::wrap::width()) {
        writeln!(console.out, "{line}")?;
    }
    writeln!(console.out)?;
    for (command, what) in FIRST {
        writeln!(console.out, "  {HEAD}clrsim {command}{HEAD:#}")?;
        writeln!(console.out, "      {DIM}{what}{DIM:#}")?;
    }
    Ok(PASSED)
}

/// Prints the completions for a shell and returns the exit code.
pub(crate) fn completions(
    args: &CompletionsArgs,
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "clrsim", &mut text);
    console.out.write_all(&text)?;
    Ok(PASSED)
}

/// Prints the manual page, or writes one for each command, and returns the exit code.
pub(crate) fn man(args: &ManArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let Some(folder) = &args.output else {
        Man::new(command).render(&mut console.out)?;
        return Ok(PASSED);
    };
    let commands: Vec<_> = command.get_subcommands().filter(|it| !it.is_hide_set()).collect();
    let mut pages = vec![("clrsim.1".to_owned(), Man::new(command.clone()))];
    for subcommand in commands {
        let name = format!("clrsim-{}.1", subcommand.get_name());
        pages.push((name, Man::new(subcommand.clone())));
    }
    for (name, _) in &pages {
        args.replacing.check(&folder.join(name))?;
    }
    for (name, page) in pages {
        let mut text = Vec::new();
        page.render(&mut text)?;
        let path = folder.join(name);
        args.replacing.write(&path, text)?;
        writeln!(console.out, "{}", slashed(&path))?;
    }
    Ok(PASSED)
}
