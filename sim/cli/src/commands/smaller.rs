//! Texts that were made smaller: never larger than what was given, and with an account of what is
//! missing.

use crate::args::MinimizeArgs;
use crate::input::slashed;
use crate::output::Replacing;
use crate::render::console::{Console, GOOD, HEAD};
use crate::render::error::CliError;
use crate::render::words::counted;
use clr_generate::minimize_list;
use clr_scenario::{ExpectedSnapshot, Provenance, Scenario, comment_count};
use std::io;
use std::path::Path;

/// A file to write, and the permission to replace one.
#[derive(Clone, Copy)]
pub(crate) struct Output<'a> {
    pub(crate) path: &'a Path,
    pub(crate) replacing: Replacing,
}

impl<'a> From<&'a MinimizeArgs> for Output<'a> {
    fn from(args: &'a MinimizeArgs) -> Self {
        Self { path: &args.output, replacing: args.replacing }
    }
}

/// Returns the first line of a text that was made smaller.
pub(crate) fn head(original: &str) -> String {
    format!("// Made smaller by clrsim minimize, from {} lines.\n", original.lines().count())
}

/// Widest line of a compact text in characters.
const WIDEST: usize = 100;

/// Puts blocks of the canonical text on one line where they fit: `a {`, `b`, `}` become `a { b }`.
pub(crate) fn compact(canonical: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in canonical.lines() {
        let begin = if line.trim() == "}" { begin_of_block(&lines, line) } else { None };
        let Some(begin) = begin else {
            lines.push(line.to_owned());
            continue;
        };
        let inner: Vec<_> = lines[begin + 1..].iter().map(|line| line.trim()).collect();
        let joined = format!("{} {} }}", lines[begin], inner.join("; "));
        if joined.chars().count() <= WIDEST && inner.iter().all(|line| !line.starts_with("//")) {
            lines.truncate(begin);
            lines.push(joined);
        } else {
            lines.push(line.to_owned());
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Returns the index of the line that begins the block which ends with a line of this indentation, if no block in it has
/// several lines.
fn begin_of_block(lines: &[String], end: &str) -> Option<usize> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let begin = lines.iter().rposition(|line| line.ends_with(" {"))?;
    let is_own = indent(&lines[begin]) == indent(end);
    let has_blocks = lines[begin..].iter().any(|line| line.trim() == "}");
    (is_own && !has_blocks && begin + 1 < lines.len()).then_some(begin)
}

/// Returns true if a text is smaller than another one, and has not more lines.
pub(crate) fn is_smaller(text: &str, original: &str) -> bool {
    text.len() < original.len() && text.lines().count() <= original.lines().count()
}

/// Returns the first of the candidates that is smaller than the original and `holds`. If there is
/// none, whole lines of the original are removed as long as it holds: the layout of the candidates
/// may need more lines than that of the original.
pub(crate) fn smaller_text(
    original: &str,
    candidates: &[String],
    mut holds: impl FnMut(&str) -> bool,
) -> Option<String> {
    let first = candidates.iter().find(|text| is_smaller(text, original) && holds(text));
    if let Some(first) = first {
        return Some(first.clone());
    }
    let text = fewer_lines(original, holds);
    is_smaller(&text, original).then_some(text)
}

/// Removes lines as long as the rest holds.
pub(crate) fn fewer_lines(text: &str, mut holds: impl FnMut(&str) -> bool) -> String {
    let lines: Vec<_> = text.split_inclusive('\n').collect();
    minimize_list(lines, |lines| holds(&lines.concat())).concat()
}

/// Writes the smaller text, or the original if there is none, and prints what is missing in it.
pub(crate) fn write_text(
    output: Output<'_>,
    original: &str,
    smaller: Option<&str>,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    let text = smaller.unwrap_or(original);
    output.replacing.write(output.path, text)?;
    let before = original.lines().count();
    let Some(text) = smaller else {
        let what = format!("unchanged: nothing smaller was found than its {before} lines");
        return Ok(written(output, &what, console)?);
    };
    let after = text.lines().filter(|line| !line.starts_with("//")).count();
    written(output, &format!("{after} lines of {before}"), console)?;
    if let Some(dropped) = dropped(original, text) {
        writeln!(console.out, "  dropped: {dropped}")?;
    }
    Ok(())
}

fn written(output: Output<'_>, size: &str, console: &mut Console<'_>) -> io::Result<()> {
    let name = slashed(output.path);
    writeln!(console.out, "{GOOD}written{GOOD:#}: {HEAD}{name}{HEAD:#}, {size}")
}

/// Returns the numbers of parts that a smaller text has not any more; `None` if it has all, or if
/// one of them is no scenario.
fn dropped(original: &str, smaller: &str) -> Option<String> {
    let (Ok(old), Ok(new)) = (Scenario::parse(original), Scenario::parse(smaller)) else {
        return None;
    };
    // The head is a comment, too.
    let comments = |text: &str| {
        let own = text.lines().take_while(|line| line.starts_with("// Made smaller by")).count();
        comment_count(text) - own
    };
    let gone = parts(&old, comments(original)).into_iter().zip(parts(&new, comments(smaller)));
    let gone = gone.filter(|((_, before), (_, after))| after < before);
    let gone: Vec<_> = gone
        .map(|(([one, many], before), (_, after))| counted(before - after, one, many))
        .collect();
    (!gone.is_empty()).then(|| gone.join(", "))
}

/// Returns the numbers of the parts of a text, with their names: for one, and for several.
fn parts(scenario: &Scenario, comments: usize) -> [([&'static str; 2], usize); 13] {
    let calls = || scenario.snapshots().map(|at| at.call);
    let expectations = || calls().flat_map(|call| &call.expect);
    let is_observed = |one: &&ExpectedSnapshot| matches!(one.from, Provenance::Observed(_));
    let profiler = scenario.profiler.as_ref();
    let (threads, callbacks, actions) = profiler.map_or((0, 0, 0), |profiler| {
        (profiler.threads.len(), profiler.callbacks.len(), profiler.action_count())
    });
    [
        (["comment", "comments"], comments),
        (["function", "functions"], scenario.program.functions.len()),
        (["thread", "threads"], scenario.threads.len() + threads),
        (["callback", "callbacks"], callbacks),
        (["action", "actions"], actions),
        (["stop", "stops"], scenario.stops.len()),
        (
            ["node of the stack", "nodes of the stack"],
            scenario.stack.as_ref().map_or(0, |stack| stack.items.len()),
        ),
        (["snapshot", "snapshots"], calls().count()),
        (["mixed walk", "mixed walks"], scenario.mixed_walks().count()),
        (["search", "searches"], scenario.explore.len()),
        (["expectation", "expectations"], expectations().count()),
        (["of them observed"; 2], expectations().filter(is_observed).count()),
        (["tag", "tags"], scenario.about.tags.len()),
    ]
}

#[cfg(test)]
mod tests {
    use super::compact;

    #[test]
    fn blocks_that_fit_are_on_one_line() {
        let text = "a {\n    b {\n        c 1\n        d\n    }\n}\n\ne\n";
        assert_eq!(compact(text), "a { b { c 1; d } }\n\ne\n");
        let long = format!("a {{\n    b \"{}\"\n    c\n}}\n", "x".repeat(95));
        assert_eq!(compact(&long), long);
    }
}
