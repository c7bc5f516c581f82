//! The tables that lead to unwind data: alignment, order, overlap, chains.

use crate::coverage::Coverage;
use crate::extent::Extents;
use crate::finding::{Cause, Finding};
use crate::layout::Layout;
use clr_unwind::compact::CompactProblem;
use clr_unwind::win64::UnwindInfo;
use clr_unwind::{CodeRegion, RuntimeFunction};
use core::ops::Range;

/// `DW_EH_PE_sdata4 | DW_EH_PE_datarel`: the form of entries in a table that can be searched.
const RELATIVE_WORDS: u8 = 0x3B;

/// `DW_EH_PE_udata4`: the form of the number of entries.
const PLAIN_WORD: u8 = 3;

/// Returns what is wrong with the tables of a region, whatever its code does.
pub(crate) fn faults(
    region: &CodeRegion<'_>,
    layout: &Layout<'_>,
    coverage: Coverage,
) -> Vec<Finding> {
    let mut faults = Vec::new();
    if coverage.is_next_to_nothing() {
        faults.push(of_all_code(Cause::NoUnwindData, layout, coverage));
    }
    if region.cfi().is_some() {
        search_table(layout, &mut faults);
        compact_table(region, &mut faults);
    } else {
        function_table(region, layout, &mut faults);
    }
    faults
}

/// Returns a finding about all code of an image.
pub(crate) fn of_all_code(cause: Cause, layout: &Layout<'_>, coverage: Coverage) -> Finding {
    let ends = layout.code.first().zip(layout.code.last());
    let code = ends.map_or(0..0, |(first, last)| first.start..last.end);
    Finding::of_tables(cause, code, coverage.described as u32)
}

/// Checks a table of RUNTIME_FUNCTIONs. Windows searches it by halves, so it has to ascend without an
/// overlap, and both tables and data have to be aligned to 4 bytes.
fn function_table(region: &CodeRegion<'_>, layout: &Layout<'_>, faults: &mut Vec<Finding>) {
    let mut add = |cause, entry: RuntimeFunction, number| {
        faults.push(Finding::of_tables(cause, entry.begin..entry.end, number));
    };
    let mut before = RuntimeFunction::default();
    for entry in region.functions().iter() {
        if let Some(table) = layout.function_table.filter(|table| table % 4 != 0)
            && before == RuntimeFunction::default()
        {
            add(Cause::Misaligned, entry, table);
        }
        if entry.end <= entry.begin {
            add(Cause::EmptyRange, entry, entry.end);
        } else if !is_code(layout, entry.begin..entry.end) {
            add(Cause::OutsideCode, entry, entry.begin);
        }
        if entry.begin < before.begin {
            add(Cause::Unordered, entry, before.begin);
        } else if entry.begin < before.end {
            add(Cause::Overlap, entry, before.end);
        }
        if entry.indirect().is_none() && entry.unwind_info % 4 != 0 {
            add(Cause::Misaligned, entry, entry.unwind_info);
        }
        if let Some(last) = endless_chain(region, entry) {
            add(Cause::ChainLoop, entry, last);
        }
        before = entry;
    }
}

/// Returns true if the range is within code; of a region without headers all may be.
fn is_code(layout: &Layout<'_>, range: Range<u32>) -> bool {
    layout.code.is_empty()
        || layout.code.iter().any(|code| code.start <= range.start && range.end <= code.end)
}

/// Returns the begin of the entry at which Windows stops to follow the chain of an entry, if the chain does
/// not end before.
fn endless_chain(region: &CodeRegion<'_>, mut entry: RuntimeFunction) -> Option<u32> {
    for _ in 0..Extents::CHAIN_LIMIT {
        let indirect =
            entry.indirect().and_then(|at| region.unwind_data(at)?.first_chunk().copied());
        entry = match indirect {
            Some(bytes) => RuntimeFunction::from_bytes(&bytes),
            None => UnwindInfo::read(region, entry.unwind_info).ok()?.parent().ok()??,
        };
    }
    Some(entry.begin)
}

/// Checks the table of `.eh_frame_hdr`, which unwinders search by halves.
fn search_table(layout: &Layout<'_>, faults: &mut Vec<Finding>) {
    let Some(table) = &layout.search_table else { return };
    let [1, _, PLAIN_WORD, RELATIVE_WORDS, _, _, _, _, count @ ..] = table.bytes else { return };
    let Some((count, entries)) = count.split_first_chunk() else { return };
    let count = u32::from_le_bytes(*count) as usize;
    let entries = entries.as_chunks::<8>().0;
    let Some(entries) = entries.get(..count) else {
        faults.push(Finding::of_tables(Cause::Unreadable, table.range(), count as u32));
        return;
    };
    let begin = |[a, b, c, d, ..]: &[u8; 8]| {
        table.rva.wrapping_add_signed(i32::from_le_bytes([*a, *b, *c, *d]))
    };
    for pair in entries.array_windows::<2>() {
        let [before, begin] = pair.each_ref().map(begin);
        if begin < before {
            faults.push(Finding::of_tables(Cause::Unordered, begin..begin + 1, before));
        }
    }
}

/// Checks the two levels of compact unwind information.
fn compact_table(region: &CodeRegion<'_>, faults: &mut Vec<Finding>) {
    let Some(table) = region.compact() else { return };
    let mut end = 0;
    for entry in table.entries() {
        match entry {
            Ok(entry) if entry.range.end <= entry.range.start => {
                let number = entry.range.end;
                faults.push(Finding::of_tables(Cause::EmptyRange, entry.range, number));
                return;
            }
            Ok(entry) => end = entry.range.end,
            Err(error) => {
                let is_order = error.problem == CompactProblem::Order;
                let cause = if is_order { Cause::Unordered } else { Cause::Unreadable };
                faults.push(Finding::of_tables(cause, end..end.saturating_add(1), error.offset));
            }
        }
    }
}
