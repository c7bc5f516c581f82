//! DWARF expressions in infix notation.

use clr_unwind::cfi::Column;

/// Limit of the operations that are written out. The words of one may contain those of all before
/// it.
const LONGEST: usize = 64;

/// Limit of the characters that are written out.
const WIDEST: usize = 400;

/// Returns an expression in infix notation, or its bytes if it has unknown operations.
pub(super) fn words(bytes: &[u8]) -> String {
    infix(bytes).unwrap_or_else(|| {
        let bytes: Vec<_> = bytes.iter().take(LONGEST).map(|byte| format!("{byte:02x}")).collect();
        format!("expression {}", bytes.join(" "))
    })
}

fn infix(bytes: &[u8]) -> Option<String> {
    let mut rest = Bytes(bytes);
    // The initial stack of a register's rule; that of the CFA's is empty.
    let mut stack = vec!["cfa".to_owned()];
    let mut operations = 0;
    while !rest.0.is_empty() {
        operations += 1;
        let mut pop = || stack.pop();
        let word = match rest.next()? {
            0x06 => format!("[{}]", pop()?),
            0x08 => rest.next()?.to_string(),
            0x09 => rest.next()?.cast_signed().to_string(),
            0x10 => rest.unsigned()?.to_string(),
            0x11 => rest.signed()?.to_string(),
            0x1A => binary(&mut stack, "&")?,
            0x1C => binary(&mut stack, "-")?,
            0x22 => binary(&mut stack, "+")?,
            0x23 => format!("({} + {})", pop()?, rest.unsigned()?),
            0x24 => binary(&mut stack, "<<")?,
            0x2A => binary(&mut stack, ">=")?,
            literal @ 0x30..=0x4F => (literal - 0x30).to_string(),
            register @ 0x70..=0x8F => {
                let offset = i32::try_from(rest.signed()?).ok()?;
                super::sum(&super::column(Column(u16::from(register - 0x70))), offset)
            }
            _ => return None,
        };
        if operations > LONGEST || word.len() > WIDEST {
            return None;
        }
        stack.push(word);
    }
    stack.pop()
}

fn binary(stack: &mut Vec<String>, operator: &str) -> Option<String> {
    let (right, left) = (stack.pop()?, stack.pop()?);
    Some(format!("({left} {operator} {right})"))
}

/// The bytes that remain to be read.
struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Reads an unsigned number in LEB128.
    fn unsigned(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.next()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let mut number = 0_i64;
        for shift in (0..64).step_by(7) {
            let byte = self.next()?;
            number |= i64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                let sign = byte & 0x40 != 0 && shift + 7 < 64;
                return Some(if sign { number | -1 << (shift + 7) } else { number });
            }
        }
        None
    }
}
