//! `clrsim gen words`: the words of the field, and what texts have for each.

use crate::PASSED;
use crate::args::WordsArgs;
use crate::render::console::{Console, HEAD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::style::Style;
use crate::render::wrap::write_wrapped;
use clr_scenario::{Meaning, SYNONYMS, interface_names, meaning};
use serde::Serialize;
use std::collections::BTreeSet;

/// A word of the field.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Word<'w> {
    kind: &'static str,
    #[serde(rename = "word")]
    said: &'w str,
    /// A sentence without full stop: the words that scenarios have for it.
    here: String,
    /// Words of this project for the same thing, which searches find.
    find: Vec<&'static str>,
}

/// Prints the words that `args` name, or all, and returns the exit code.
pub(crate) fn words(args: &WordsArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let own = SYNONYMS.iter().flat_map(|synonym| synonym.words).copied();
    let mut seen = BTreeSet::new();
    let all = own.chain(interface_names()).filter(|word| seen.insert(*word));
    let wanted: Vec<&str> = if args.words.is_empty() {
        all.collect()
    } else {
        args.words.iter().map(String::as_str).collect()
    };
    for word in wanted {
        let Meaning { here, find } = meaning(word)
            .ok_or_else(|| CliError::new(word, "is no word that scenarios have another one for"))?;
        if args.json.wanted {
            write_json(&Word { kind: "word", said: word, here, find }, console)?;
        } else {
            write!(console.out, "{HEAD}{word}{HEAD:#}\n  ")?;
            write_wrapped(console.out, 2, Style::new(), &here, "")?;
        }
    }
    Ok(PASSED)
}
