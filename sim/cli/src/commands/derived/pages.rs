//! Completions for shells, and manual pages.

use crate::PASSED;
use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::input::slashed;
use crate::render::console::Console;
use crate::render::error::CliError;
use clap::CommandFactory as _;
use clap_complete::env::{CompleteEnv, Shells};
use clap_mangen::Man;

/// The variable by which the shell asks for completions.
const ASKED: &str = "COMPLETE";
/// The name of the tool.
const TOOL: &str = "clrsim";

/// Answers a shell that asks for completions, and ends the process; otherwise does nothing.
pub(crate) fn answer_shell() {
    CompleteEnv::with_factory(Cli::command).var(ASKED).bin(TOOL).complete();
}

/// Prints what asks for completions in a shell and returns the exit code.
pub(crate) fn completions(
    args: &CompletionsArgs,
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    let shells = Shells::builtins();
    let shell = shells.completer(&args.shell);
    let shell = shell.ok_or_else(|| CliError::new(&args.shell, "is no shell that is known"))?;
    let mut text = Vec::new();
    shell.write_registration(ASKED, TOOL, TOOL, TOOL, &mut text)?;
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
    let mut files = Vec::new();
    for (name, page) in pages {
        let mut text = Vec::new();
        page.render(&mut text)?;
        files.push((folder.join(name), text));
    }
    let contents: Vec<_> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    args.replacing.write_all(&contents)?;
    for (path, _) in &files {
        writeln!(console.out, "{}", slashed(path))?;
    }
    Ok(PASSED)
}
