//! `clrsim gen`: what is derived from the definitions of this tool, for shells, manuals and programs.

#[cfg(feature = "pages")]
mod output;
#[cfg(feature = "pages")]
pub(crate) mod pages;
mod schema;
mod words;

use crate::args::{Gen, GenArgs};
use crate::render::console::Console;
use crate::render::error::CliError;

/// Prints or writes what `args` name and returns the exit code.
pub(crate) fn derive(args: &GenArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    match &args.what {
        Gen::Schema(args) => schema::schema(args, console),
        Gen::Words(args) => words::words(args, console),
        #[cfg(feature = "pages")]
        Gen::Completions(args) => pages::completions(args, console),
        #[cfg(feature = "pages")]
        Gen::Man(args) => pages::man(args, console),
        #[cfg(not(feature = "pages"))]
        Gen::Completions(_) | Gen::Man(_) => Err(crate::is_left_out("pages")),
    }
}
