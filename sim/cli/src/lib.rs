//! `clrsim`: replays recorded unwinds and walks, draws and explains single ones, runs programs and
//! holds walks of their stacks against what is known, judges the unwind data of images, and prints their
//! function tables and the rules of the CLR.
//!
//! Only [`main`] knows the process: everything below [`run_tool`] writes to what it is given, and
//! ends with an exit code.

#![cfg_attr(
    target_family = "wasm",
    allow(dead_code, unused_imports, reason = "a page lacks the commands about native code")
)]

mod args;
mod commands;
mod input;
mod interrupt;
mod output;
mod render;
mod report;

#[cfg(test)]
mod tests;

use args::{Cli, Command, renamed};
use clap::error::ErrorKind;
use clr_explore::is_visible;
use clr_scenario::meaning;
use commands::{
    begin, compare, derived, diagnose, emit, explain, explore, fmt, generate, import, inspect,
    lint, list, matrix, merge, minimize, new, replay, rules, run, runtimes, show, trace,
};
use render::clean::Clean;
use render::console::{Console, Quiet};
use render::error::{CliError, Diagnostic};
use render::fit::Fit;
use render::json::write_json;
use render::style::marked;
use render::wrap::{fit_terminal, terminal, width};
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal as _};
use std::process::ExitCode;

/// Why a page lacks the commands about native code, recordings and processes: most of the tool's size, for files that it has not.
#[cfg(target_family = "wasm")]
const IS_NATIVE: &str = "a page does not have this command: install clrsim";

/// Exit code if every case passed and every command did its work.
const PASSED: u8 = 0;
/// Exit code if a case failed.
const FAILED: u8 = 1;
/// Exit code if the arguments are wrong, or an input cannot be read.
const UNUSABLE: u8 = 2;
/// Exit code if what was asked for cannot be said for sure, or not at all: something that it depends on is not known.
const INCOMPLETE: u8 = 3;

/// Runs the tool with the arguments, streams and terminal of this process.
#[must_use]
pub fn main() -> ExitCode {
    #[cfg(feature = "pages")]
    derived::pages::answer_shell();
    // The streams remove colours if the terminal cannot show them, or NO_COLOR is set.
    let mut out = BufWriter::new(Quiet::new(anstream::stdout()));
    let mut err = Quiet::new(anstream::stderr());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let progress = io::stderr().is_terminal() && !is_dumb;
    let columns = std::env::var("COLUMNS").ok();
    fit_terminal(columns.as_deref(), columns_of_terminal());
    let mut console =
        Console { out: &mut out, err: &mut err, progress, json: false, owns_signals: true };
    ExitCode::from(run_tool(std::env::args_os(), &mut console))
}

/// Returns the width of the terminal that stdout is, in characters.
#[cfg(not(target_family = "wasm"))]
fn columns_of_terminal() -> Option<usize> {
    use terminal_size::{Width, terminal_size_of};
    terminal_size_of(io::stdout()).map(|(Width(width), _)| usize::from(width))
}

/// Returns nothing: a page says its width in `COLUMNS`.
#[cfg(target_family = "wasm")]
fn columns_of_terminal() -> Option<usize> {
    None
}

/// Runs the tool and returns its exit code. The first of `args` is the name of the tool.
fn run_tool(args: impl IntoIterator<Item = OsString>, console: &mut Console<'_>) -> u8 {
    let args: Vec<_> = args.into_iter().collect();
    let json = args.iter().any(|arg| arg == "--json");
    let parsed = Cli::parse_within(args.clone(), width());
    let has_lines = !json && parsed.as_ref().is_ok_and(|cli| !cli.prints_document());
    let fit = Fit::new(&mut *console.out, terminal().filter(|_| has_lines));
    let (mut out, mut err) = (Clean::new(fit), Clean::new(&mut *console.err));
    let console = &mut Console { out: &mut out, err: &mut err, json, ..*console };
    let result = match (renamed(&args), parsed) {
        (Some(error), _) => Err(error),
        (None, Ok(cli)) => command(cli, console),
        (None, Err(answer)) => help_or_usage(&answer, &args, console),
    };
    let result = result.and_then(|code| {
        console.out.flush()?;
        Ok(code)
    });
    let code = result.unwrap_or_else(|error| {
        console.print_error(&error);
        UNUSABLE
    });
    // Without a stream for errors nobody hears of this.
    let _: io::Result<()> = console.err.flush();
    code
}

fn command(cli: Cli, console: &mut Console<'_>) -> Result<u8, CliError> {
    let Some(command) = cli.command else { return begin::begin(console) };
    match command {
        Command::Run(args) => run::run(&args, console),
        Command::Matrix(args) => matrix::matrix(&args, console),
        Command::Compare(args) => compare::compare(&args, console),
        Command::List(args) => list::list(&args, console),
        Command::New(args) => new::new(&args, console),
        Command::Fmt(args) => fmt::fmt(&args, console),
        #[cfg(not(target_family = "wasm"))]
        Command::Import(args) => import::import(&args, console),
        Command::Generate(args) => generate::generate(&args, console),
        Command::Minimize(args) => minimize::minimize(&args, console),
        #[cfg(not(target_family = "wasm"))]
        Command::Show(args) => show::show(&args, console),
        #[cfg(not(target_family = "wasm"))]
        Command::Lint(args) => lint::lint(&args, console),
        #[cfg(not(target_family = "wasm"))]
        Command::Inspect(args) => inspect::inspect(&args, console),
        #[cfg(not(target_family = "wasm"))]
        Command::Diagnose(args) => diagnose::diagnose(&args, console),
        Command::Trace(args) => trace::trace(&args, console),
        Command::Explore(args) => explore::explore(&args, console),
        Command::Merge(args) => merge::merge(&args, console),
        Command::Replay(args) => replay::replay(&args, console),
        #[cfg(all(feature = "host", target_pointer_width = "64"))]
        Command::Host(args) => commands::host::host(&args, console),
        #[cfg(all(feature = "host", not(target_pointer_width = "64")))]
        Command::Host(_) => {
            Err(CliError::Text("profilers are run by the tool for 64 bits alone".to_owned()))
        }
        #[cfg(not(feature = "host"))]
        Command::Host(_) => Err(is_left_out("host")),
        #[cfg(not(target_family = "wasm"))]
        Command::Emit(args) => emit::emit(&args, console),
        #[cfg(target_family = "wasm")]
        Command::Import(_)
        | Command::Show(_)
        | Command::Lint(_)
        | Command::Inspect(_)
        | Command::Diagnose(_)
        | Command::Emit(_) => Err(CliError::Text(IS_NATIVE.to_owned())),
        Command::Explain(args) => explain::explain(&args, console),
        Command::Rules(args) => rules::rules(&args, console),
        Command::Runtimes(args) => runtimes::runtimes(&args, console),
        Command::Gen(args) => derived::derive(&args, console),
        #[cfg(feature = "lsp")]
        Command::Lsp(_) => commands::lsp::lsp(),
        #[cfg(not(feature = "lsp"))]
        Command::Lsp(_) => Err(is_left_out("lsp")),
    }
}

/// Returns the error for a command that was not compiled: first builds are quicker without some.
#[cfg(not(all(feature = "host", feature = "lsp", feature = "pages")))]
fn is_left_out(feature: &str) -> CliError {
    let what = "was built without this command: cargo install --path sim/cli --features";
    CliError::new("clrsim", format_args!("{what} {feature}"))
}

/// Prints help, version or a usage error, all of which clap returns as errors.
fn help_or_usage(
    answer: &clap::Error,
    args: &[OsString],
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    let text = answer.render();
    if answer.use_stderr() {
        // An argument may have sequences, and would pass as styles.
        let is_plain = args.iter().all(|arg| arg.to_string_lossy().chars().all(is_visible));
        let plain = text.to_string();
        let text = if is_plain { marked(&text.ansi().to_string()) } else { plain.clone() };
        write!(console.err, "{text}")?;
        let unknown = match answer.kind() {
            ErrorKind::InvalidSubcommand => args.get(1).and_then(|word| meaning(word.to_str()?)),
            _ => None,
        };
        if let Some(meaning) = &unknown {
            writeln!(console.err, "\n  here: {}", meaning.here)?;
        }
        if console.json {
            write_json(&Diagnostic::usage(&plain, unknown.map(|it| it.here)), console)?;
        }
        Ok(UNUSABLE)
    } else {
        write!(console.out, "{}", marked(&text.ansi().to_string()))?;
        Ok(PASSED)
    }
}
