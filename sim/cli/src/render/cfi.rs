//! Call frame information in words.

mod expression;

use crate::render::code::Code;
use crate::render::console::{BAD, DIM};
use crate::render::unwind_data::Hex;
use clr_unwind::cfi::{CfaRule, CfiTable, Column, RegisterRule, Row};
use clr_unwind::{CodeRegion, Gpr};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;

/// The call frame information of a function.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Function {
    /// RVA of the first byte.
    begin: Hex,
    /// RVA after the last byte.
    end: Hex,
    /// Name of the function, with the offset in bytes from its start.
    name: String,
    rows: Vec<Line>,
    /// The error, if the rows end before the function does.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The call frame information of a range of code.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Line {
    /// RVA of the first byte.
    begin: Hex,
    /// RVA after the last byte.
    end: Hex,
    #[serde(flatten)]
    rules: Rules,
}

/// The rules that find the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Rules {
    /// The caller's rsp before the call.
    cfa: String,
    /// Places of the caller's registers, by name; the others keep their values.
    registers: BTreeMap<&'static str, String>,
    /// Place of the return address.
    return_address: Option<String>,
    /// True if the caller was interrupted and made no call.
    signal_frame: bool,
}

impl Function {
    /// Reads the call frame information of the function at `range` (RVAs).
    pub(crate) fn new<'a>(
        code: &Code<'_, 'a>,
        region: &CodeRegion<'a>,
        table: &CfiTable<'a>,
        range: &Range<u32>,
    ) -> Self {
        let mut function = Self {
            begin: range.start.into(),
            end: range.end.into(),
            name: code.locate(region, range.start).to_string(),
            rows: Vec::new(),
            error: None,
        };
        let mut at = range.start;
        while at < range.end {
            let row = match table.row(at) {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(error) => {
                    function.error = Some(error.to_string());
                    break;
                }
            };
            // Neighbours with the same rules are one row, even across the end of a function.
            let end = row.range.end.min(range.end);
            let rules = Rules::new(table, &row);
            match function.rows.last_mut() {
                Some(last) if last.rules == rules => last.end = end.into(),
                _ => function.rows.push(Line { begin: at.into(), end: end.into(), rules }),
            }
            at = end.max(at.saturating_add(1));
        }
        function
    }

    /// Writes the function and its rows.
    pub(crate) fn write(&self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        let Self { begin, end, name, rows, error } = self;
        writeln!(out, "{begin}..{end}  {name}")?;
        for Line { begin, end, rules } in rows {
            writeln!(out, "  {DIM}{begin}..{end}{DIM:#}  {rules}")?;
        }
        match error {
            Some(error) => writeln!(out, "  {BAD}error:{BAD:#} {error}"),
            None => Ok(()),
        }
    }
}

impl Rules {
    /// Returns the rules of a row.
    pub(crate) fn new(table: &CfiTable<'_>, row: &Row) -> Self {
        let words = |expression| expression::words(table.expression(expression));
        let cfa = match row.cfa {
            CfaRule::Register { register, offset } => sum(&column(register), offset),
            CfaRule::Expression(expression) => words(expression),
        };
        let rule = |rule: RegisterRule| match rule {
            RegisterRule::Undefined => "unknown".to_owned(),
            RegisterRule::SameValue => "same".to_owned(),
            RegisterRule::Offset(offset) => format!("[{}]", sum("cfa", offset)),
            RegisterRule::ValOffset(offset) => sum("cfa", offset),
            RegisterRule::Register(register) => column(register),
            RegisterRule::Expression(expression) => format!("[{}]", words(expression)),
            RegisterRule::ValExpression(expression) => words(expression),
        };
        let said = |register: Gpr| {
            let said = row.registers.get(usize::from(register.number())).copied().flatten();
            said.filter(|said| *said != RegisterRule::SameValue)
        };
        let registers = Gpr::ALL
            .into_iter()
            .filter_map(|register| said(register).map(|said| (register.name(), rule(said))));
        Self {
            cfa,
            registers: registers.collect(),
            return_address: row.return_address.map(rule),
            signal_frame: row.signal_frame,
        }
    }
}

impl std::fmt::Display for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { cfa, registers, return_address, signal_frame } = self;
        let mut words = format!("cfa = {cfa}");
        let rip = return_address.as_ref().map(|rule| ("rip", rule));
        let registers = registers.iter().map(|(name, rule)| (*name, rule));
        for (name, rule) in registers.chain(rip) {
            write!(words, ", {name} = {rule}")?;
        }
        if *signal_frame {
            words.push_str(", interrupted");
        }
        f.write_str(&words)
    }
}

/// Returns the name of a register.
fn column(column: Column) -> String {
    match column.gpr() {
        Some(register) => register.name().to_owned(),
        None if column == Column::RIP => "rip".to_owned(),
        None => format!("register {}", column.0),
    }
}

/// Returns the words for a base and a distance in bytes.
fn sum(what: &str, distance: i32) -> String {
    let sign = if distance < 0 { '-' } else { '+' };
    match distance.unsigned_abs() {
        0 => what.to_owned(),
        distance => format!("{what}{sign}{distance:#x}"),
    }
}

#[cfg(test)]
mod tests;
