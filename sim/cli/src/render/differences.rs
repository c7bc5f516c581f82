//! Expected and found values side by side.

use crate::render::console::{BAD, DIM};
use crate::render::style::Style;
use crate::render::unwind_data::Hex;
use clr_recording::vectors::replay::VectorDifference;
use serde::Serialize;
use std::io::{self, Write};

/// A value that is not as expected.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Differing {
    pub(crate) of: String,
    pub(crate) expected: String,
    pub(crate) got: String,
}

impl From<VectorDifference> for Differing {
    fn from(difference: VectorDifference) -> Self {
        Self {
            of: difference.of.to_string(),
            expected: Hex::from(difference.expected).to_string(),
            got: Hex::from(difference.got).to_string(),
        }
    }
}

/// Writes a table of values that are not as expected.
pub(crate) fn write_differences(
    differences: &[Differing],
    indent: &str,
    out: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    if differences.is_empty() {
        return Ok(());
    }
    let width = |of: fn(&Differing) -> usize| differences.iter().map(of).max().unwrap_or(0);
    let name = width(|row| row.of.len());
    let expected = width(|row| row.expected.chars().count()).max("expected".len());
    writeln!(out, "{indent}{DIM}{:name$}  {:expected$}  got{DIM:#}", "", "expected")?;
    for row in differences {
        let Differing { of, expected: value, got } = row;
        writeln!(out, "{indent}{of:name$}  {value:expected$}  {BAD}{got}{BAD:#}")?;
    }
    Ok(())
}

/// A row of a table of expected and found items.
pub(crate) struct Pair {
    pub(crate) is_wrong: bool,
    /// Number of the row, if it has one.
    pub(crate) n: Option<usize>,
    pub(crate) expected: String,
    pub(crate) found: String,
}

/// Writes a table of expected and found items.
pub(crate) fn write_pairs(pairs: &[Pair], out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    let widths = pairs.iter().map(|pair| pair.expected.chars().count());
    let width = widths.max().unwrap_or(0).max("expected".len());
    writeln!(out, "  {DIM}   #  {:width$}  found{DIM:#}", "expected")?;
    for Pair { is_wrong, n, expected, found } in pairs {
        let (mark, style) = if *is_wrong { ('*', BAD) } else { (' ', Style::new()) };
        let n = n.map(|n| n.to_string()).unwrap_or_default();
        writeln!(out, "  {mark} {n:>2}  {expected:width$}  {style}{found}{style:#}")?;
    }
    Ok(())
}
