//! Lines of JSON.

use crate::render::console::Console;
use crate::render::error::CliError;
use clr_explore::is_visible;
use serde::Serialize;
use std::io;

/// The version of the JSON output, which `schema.md` describes. New fields keep the version; a
/// removed field, or one with another meaning, makes a new version.
pub(crate) const SCHEMA: &str = "clrsim/1";

/// The version of JSON Schema.
pub(crate) const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// An object with the version as the first field.
#[derive(Serialize)]
struct Versioned<'v, T> {
    schema: &'static str,
    #[serde(flatten)]
    value: &'v T,
}

/// Writes `value`, an object, on one line.
pub(crate) fn write_json(
    value: &impl Serialize,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    let value = Versioned { schema: SCHEMA, value };
    let text = serde_json::to_string(&value).map_err(io::Error::from)?;
    Ok(writeln!(console.out, "{}", escaped(&text))?)
}

/// Returns a document of JSON with escapes for all that is not visible: it means the same.
pub(crate) fn escaped(document: &str) -> String {
    let mut escaped = String::with_capacity(document.len());
    for char in document.chars() {
        if is_visible(char) || char == '\n' {
            escaped.push(char);
        } else {
            // Between strings such characters are no JSON.
            for unit in char.encode_utf16(&mut [0; 2]) {
                escaped.extend(format!("\\u{unit:04x}").chars());
            }
        }
    }
    escaped
}
