//! Changes of texts as patches.

use crate::render::console::{BAD, GOOD, HEAD};
use crate::render::style::Style;
use similar::{ChangeTag, TextDiff};
use std::io::{self, Write};

/// Returns the change as a patch.
pub(crate) fn patch(name: &str, old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    let (before, after) = (format!("a/{name}"), format!("b/{name}"));
    diff.unified_diff().context_radius(3).header(&before, &after).to_string()
}

/// Writes the change as a patch with colours.
pub(crate) fn write_patch(name: &str, old: &str, new: &str, out: &mut dyn Write) -> io::Result<()> {
    let diff = TextDiff::from_lines(old, new);
    let unified = diff.unified_diff();
    writeln!(out, "{HEAD}--- a/{name}\n+++ b/{name}{HEAD:#}")?;
    for hunk in unified.iter_hunks() {
        writeln!(out, "{}", hunk.header())?;
        for change in hunk.iter_changes() {
            let style = match change.tag() {
                ChangeTag::Equal => Style::new(),
                ChangeTag::Delete => BAD,
                ChangeTag::Insert => GOOD,
            };
            let line = change.value().trim_end_matches(['\r', '\n']);
            writeln!(out, "{style}{}{line}{style:#}", change.tag())?;
        }
    }
    Ok(())
}
