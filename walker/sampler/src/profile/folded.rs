//! The folded format: `root;caller;leaf count`.

use super::Profile;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Returns the lines in their order. A name cannot have a `;` or the end of a line.
pub(super) fn write(profile: &Profile) -> String {
    let mut lines = BTreeMap::<String, u64>::new();
    for (stack, count) in &profile.stacks {
        let names: Vec<String> = stack
            .iter()
            .map(|number| profile.label(*number).name.replace(';', ":").replace(['\n', '\r'], " "))
            .collect();
        *lines.entry(names.join(";")).or_default() += count;
    }
    let mut text = String::new();
    for (line, count) in lines {
        let _ = writeln!(text, "{line} {count}");
    }
    text
}
