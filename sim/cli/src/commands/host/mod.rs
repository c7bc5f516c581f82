//! `clrsim host`: a profiler's library over a text, on simulated runtimes.

pub(crate) mod account;
mod child;
#[cfg_attr(
    not(all(target_arch = "x86_64", any(windows, all(target_os = "linux", target_env = "gnu")))),
    path = "no_histories.rs"
)]
pub(crate) mod histories;
mod journal;
mod scratch;
mod table;
pub(crate) mod trace;
mod write;

use crate::args::HostArgs;
use crate::input::program::ProgramFixture;
use crate::input::{Source, slashed};
use crate::output::Replacing;
use crate::render::console::Console;
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::report::walk::refuse_unchecked;
use crate::{FAILED, PASSED};
use account::{Account, Judged, Verdict};
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::Demands;
use scratch::Scratch;
use std::io::{self, ErrorKind};

/// Runs the profiler and returns the exit code.
pub(crate) fn host(args: &HostArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    if let Some(journal) = &args.journal {
        return child::visit(args, journal);
    }
    #[cfg(all(windows, target_arch = "x86_64"))]
    if let Some(asked) = &args.history {
        return histories::execute(args, asked);
    }
    let source = Source::find(&args.scenario.path)?;
    let fixture = ProgramFixture::read(&source)?;
    if fixture.scenario.stack.is_some() {
        return Err(source.error("is a stack placed by hand: a profiler needs a program"));
    }
    let on = args.on.runtimes.unwrap_or(if args.matrix { Generations::ALL } else { newest() });
    refuse_unchecked(&source, &fixture.scenario, on)?;
    let library = slashed(&args.library);
    match args.library.metadata() {
        Ok(metadata) if metadata.is_dir() => return Err(CliError::new(&library, "is a folder")),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(CliError::new(&library, "no such file").with_code("not-found"));
        }
        Err(error) => {
            return Err(CliError::new(&library, format_args!("cannot be read: {}", error.kind())));
        }
    }
    if let Some(name) = &args.replay {
        if let Some(page) = &args.draw.html {
            Replacing::check_is_not(page, &source)?;
            Replacing::check_is_not(page, &Source::find(&args.library)?)?;
            args.draw.replacing.check_page(page)?;
        }
        return histories::replay(args, name, &source, console);
    }
    if let Some(schedules) = args.search.schedules {
        return histories::search(args, schedules, &source, console);
    }
    let asked = trace::Asked::new(args, on.iter().count())?;
    let mut is_same = true;
    let mut accounts = Vec::new();
    for generation in on.iter() {
        let mut lines = asked.as_ref().map(|_| Scratch::new("trace")).transpose()?;
        let remains =
            child::run(args, generation, lines.as_ref()).map_err(|error: io::Error| {
                CliError::new(&library, format_args!("its process cannot be started: {error}"))
            })?;
        let (library, file) = (library.clone(), source.name.clone());
        let judged = Judged {
            demands: Demands::of_library(&fixture.scenario.coverage, generation),
            expects_of_own: fixture.scenario.expects_of_searches(generation),
            allowed: &args.allow,
        };
        let account = Account::new(library, file, generation, remains, &judged);
        if args.json.wanted {
            write_json(&account, console)?;
        } else if !args.matrix {
            account.write(console.out)?;
        }
        accounts.push(account);
        if let Some((asked, lines)) = asked.as_ref().zip(lines.as_mut()) {
            let text = source.read_text()?;
            is_same &= asked.finish(&lines.read(u64::MAX)?, &text, generation, console)?;
        }
    }
    if args.matrix && !args.json.wanted {
        table::write(&accounts, console.out)?;
    }
    let is_clean = accounts.iter().all(|account| account.verdict == Verdict::Clean);
    Ok(if is_clean && is_same { PASSED } else { FAILED })
}

/// Returns the newest runtime of the system that the tool runs on.
fn newest() -> Generations {
    let is_own = |generation: &Generation| generation.is_unix() == cfg!(unix);
    let newest = Generation::ALL.into_iter().find(is_own);
    newest.map_or(Generations::NONE, |newest| Generations::of(&[newest]))
}
