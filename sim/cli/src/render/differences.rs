//! Expected and found values side by side.

use crate::render::console::{BAD, DIM};
use crate::render::unwind_data::Hex;
use anstyle::Style;
use clr_recording::vectors::replay::VectorDifference;
use serde::Serialize;
use std::io::{self, Write};

/// A value that is not as expected.
#[derive(Debug, Serialize)]
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

/// Writes a row of a table of expected and found items.
pub(crate) fn write_pair(
    is_wrong: bool,
    n: &str,
    expected: &str,
    width: usize,
    found: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (mark, style) = if is_wrong { ('*', BAD) } else { (' ', Style::new()) };
    writeln!(out, "  {mark} {n:>2}  {expected:width$}  {style}{found}{style:#}")
}
