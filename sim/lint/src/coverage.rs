//! How much of the code has unwind data.

use clr_unwind::CodeRegion;
use core::ops::Range;

/// Bytes of code, by what the unwind data says of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Coverage {
    /// Size of all code in bytes.
    pub code: u64,
    /// Size in bytes of the code that has unwind data.
    pub described: u64,
    /// Size in bytes of the padding between functions.
    pub padding: u64,
}

impl Coverage {
    /// Returns true if no more than a twentieth of the code, padding apart, has unwind data. What linkers add
    /// to a program has some, even if nothing of the program itself has.
    pub const fn is_next_to_nothing(self) -> bool {
        let code = self.code.saturating_sub(self.padding);
        code > 0 && self.described.saturating_mul(20) <= code
    }
}

/// Returns how much of `code` the ranges describe, which ascend by their begin, and the runs of code that
/// they do not, each without the padding that it begins with.
pub(crate) fn coverage(
    region: &CodeRegion<'_>,
    code: &[Range<u32>],
    ranges: &[Range<u32>],
) -> (Coverage, Vec<Range<u32>>) {
    let (mut coverage, mut gaps) = (Coverage::default(), Vec::new());
    let mut ranges = ranges.iter().filter(|range| !range.is_empty()).peekable();
    for part in code {
        coverage.code += u64::from(part.end.saturating_sub(part.start));
        let mut at = part.start;
        while at < part.end {
            while ranges.next_if(|range| range.end <= at).is_some() {}
            let next = ranges.peek().map_or(part.start..part.start, |range| (*range).clone());
            if next.contains(&at) {
                let end = next.end.min(part.end);
                coverage.described += u64::from(end - at);
                at = end;
                continue;
            }
            let end = if next.start > at { next.start.min(part.end) } else { part.end };
            let start = after_padding(region, at..end);
            coverage.padding += u64::from(start - at);
            if start < end {
                gaps.push(start..end);
            }
            at = end;
        }
    }
    (coverage, gaps)
}

/// Returns the RVA of the first byte in `range` that is no padding: its end if all are.
pub(crate) fn after_padding(region: &CodeRegion<'_>, range: Range<u32>) -> u32 {
    let bytes = region.bytes_from(range.start).unwrap_or_default();
    let len = range.end.saturating_sub(range.start) as usize;
    let mut left = bytes.get(..len).unwrap_or(bytes);
    loop {
        let prefixes = left.iter().take_while(|byte| matches!(byte, 0x66 | 0x2E)).count();
        let size = match left.get(prefixes..).unwrap_or_default() {
            [0x0F, 0x1F, form, more @ ..] => prefixes + 3 + operand(*form, more),
            [0x90, ..] => prefixes + 1,
            [0xCC | 0, ..] if prefixes == 0 => 1,
            _ => return range.end.saturating_sub(left.len() as u32),
        };
        left = left.get(size..).unwrap_or_default();
    }
}

/// Returns the number of bytes after the form byte of a long nop.
fn operand(form: u8, more: &[u8]) -> usize {
    let scaled = usize::from(form & 7 == 4);
    let is_wide = form >> 6 == 0
        && (form & 7 == 5 || scaled == 1 && more.first().is_some_and(|it| it & 7 == 5));
    match form >> 6 {
        _ if is_wide => scaled + 4,
        1 => scaled + 1,
        2 => scaled + 4,
        _ => scaled,
    }
}
