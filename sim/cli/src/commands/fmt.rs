//! `clrsim fmt`: lays out texts in the usual form.

use crate::args::FmtArgs;
use crate::input::{self, Source};
use crate::render::console::{Console, HEAD};
use crate::render::error::CliError;
use crate::render::patch::write_patch;
use crate::{FAILED, PASSED, UNUSABLE};
use clr_scenario::{Scenario, ScenarioError, format_text, upgrade_text};

/// Lays out the texts that `args` name and returns the exit code.
pub(crate) fn fmt(args: &FmtArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let sources = input::sources(&args.paths)?;
    let texts: Vec<_> = sources.iter().filter(|source| source.is_program()).collect();
    let (mut changed, mut failed) = (0, 0);
    for source in &texts {
        match lay_out(source, args) {
            Ok(None) => {}
            Ok(Some((old, new))) => {
                changed += 1;
                if args.check {
                    write_patch(&source.name, &old, &new, console.out)?;
                } else {
                    writeln!(console.out, "{}", source.name)?;
                }
            }
            Err(error) => {
                failed += 1;
                console.print_error(&error);
            }
        }
    }
    let word = if args.check { "would change" } else { "changed" };
    writeln!(console.out, "{HEAD}{word}{HEAD:#}: {changed} of {} scenarios", texts.len())?;
    Ok(if failed > 0 {
        UNUSABLE
    } else if args.check && changed > 0 {
        FAILED
    } else {
        PASSED
    })
}

/// Returns the text before and after if it changes, and writes it unless it is only checked.
fn lay_out(source: &Source, args: &FmtArgs) -> Result<Option<(String, String)>, CliError> {
    let old = source.read_text()?;
    let upgraded = if args.upgrade { upgrade_text(&old).0 } else { old.clone() };
    let named = |error: ScenarioError| error.with_name(source.name.clone());
    let new = format_text(&upgraded).map_err(named)?;
    if args.upgrade {
        Scenario::parse(&new).map_err(named)?;
    }
    if new == old {
        return Ok(None);
    }
    if !args.check {
        source.write(&new)?;
    }
    Ok(Some((old, new)))
}
