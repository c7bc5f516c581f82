//! Hints that follow from what the text has at a problem: units, quotes, and numbers in other notations.

use crate::text::error::{LineColumn, Problem};
use crate::text::grammar::Kind;
use crate::text::help::{DOUBLE_QUOTES, is_other_quote};
use crate::text::problem::{ProblemKind, SyntaxError};

/// Units of time, with their microseconds.
const TIMES: [(&str, f64); 7] = [
    ("ns", 0.001),
    ("us", 1.0),
    ("\u{B5}s", 1.0),
    ("\u{3BC}s", 1.0),
    ("ms", 1000.0),
    ("s", 1_000_000.0),
    ("min", 60_000_000.0),
];

/// Units of sizes, with their bytes.
const SIZES: [(&str, f64); 8] = [
    ("b", 1.0),
    ("kb", 1000.0),
    ("kib", 1024.0),
    ("k", 1024.0),
    ("mb", 1_000_000.0),
    ("mib", 1_048_576.0),
    ("m", 1_048_576.0),
    ("gb", 1_000_000_000.0),
];

impl Problem {
    /// Returns a hint on how to mend the problem, by what the text has there, and by its kind.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        let own = self.text();
        let word = if own.starts_with('"') { own } else { self.word() }.trim_matches('"');
        let special = match &self.kind {
            ProblemKind::Syntax(SyntaxError::Character(c)) if is_other_quote(*c) => {
                Some(DOUBLE_QUOTES.to_owned())
            }
            ProblemKind::Syntax(SyntaxError::Number | SyntaxError::Space | SyntaxError::Entry) => {
                number(word)
            }
            ProblemKind::WrongType { found: "string", expected: Kind::Number(..) } => number(word)
                .or_else(|| is_number(word).then(|| format!("numbers have no quotes: {word}"))),
            ProblemKind::FunctionTwice { first, .. } => {
                let line = LineColumn::of(self.source_text(), *first).line;
                Some(format!("the first one is in line {line}: give one of them another name"))
            }
            _ => None,
        };
        special.or_else(|| self.kind.help())
    }
}

/// Returns the hint for a number in another notation.
fn number(word: &str) -> Option<String> {
    let lower = word.to_lowercase();
    let unit =
        lower.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '_' | ' '));
    let digits = lower.strip_suffix(unit)?.trim();
    let of = |units: &[(&str, f64)]| {
        units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
    };
    let hexadecimal = lower
        .strip_suffix('h')
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if let Some(digits) = hexadecimal.filter(|digits| !digits.is_empty()) {
        return Some(format!("hexadecimal numbers begin with 0x: 0x{digits}"));
    }
    if digits.is_empty() {
        return None;
    }
    let amount: f64 = digits.replace('_', "").parse().ok()?;
    // A whole number of 52 bits is exact.
    let whole = |factor: f64| (amount * factor).round().clamp(0.0, 4_503_599_627_370_496.0);
    if let Some(factor) = of(&TIMES) {
        return Some(format!("times are whole microseconds, without a unit: {}", whole(factor)));
    }
    if let Some(factor) = of(&SIZES) {
        return Some(format!("sizes are in bytes, without a unit: {}", whole(factor)));
    }
    if unit == "%" {
        return Some("there are no percentages here".to_owned());
    }
    let is_hexadecimal = lower.bytes().all(|byte| byte.is_ascii_hexdigit()) && !unit.is_empty();
    is_hexadecimal.then(|| format!("hexadecimal numbers begin with 0x: 0x{lower}"))
}

fn is_number(word: &str) -> bool {
    match word.strip_prefix("0x") {
        Some(digits) => !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()),
    }
}
