//! Lines of JSON.

use crate::render::console::Console;
use crate::render::error::CliError;
use serde::Serialize;
use std::io;

/// The version of what is printed as JSON; `schema.md` tells what that is. What is added to it changes
/// nothing for who reads it; what is taken away or means something else makes a new version.
pub(crate) const SCHEMA: &str = "clrsim/1";

/// An object with the version in front.
#[derive(Serialize)]
struct Versioned<'v, T> {
    schema: &'static str,
    #[serde(flatten)]
    value: &'v T,
}

/// Writes `value`, an object, on a line of its own.
pub(crate) fn write_json(
    value: &impl Serialize,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    let value = Versioned { schema: SCHEMA, value };
    let text = serde_json::to_string(&value).map_err(io::Error::from)?;
    Ok(writeln!(console.out, "{text}")?)
}
