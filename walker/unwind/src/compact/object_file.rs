//! `__LD,__compact_unwind` of object files: one record for each function, before the linker makes
//! `__unwind_info` of them.

use super::encoding::Encoding;
use super::table::Entry;
use alloc::vec::Vec;
use object::LittleEndian as LE;
use object::macho::{Relocation, X86_64_RELOC_UNSIGNED};

/// Size of a record: address (8 bytes), length (4), encoding (4), personality (8), data (8).
const SIZE: usize = 32;

/// Returns the entries of `section`, whose addresses count from `base` (VA). `symbol` returns the
/// value of a symbol by its number. Functions outside the first 4 GiB are left out.
pub(crate) fn entries(
    section: &[u8],
    relocations: &[Relocation<LE>],
    base: u64,
    symbol: impl Fn(u32) -> Option<u64>,
) -> Vec<Entry> {
    let mut records: Vec<(u64, u32, u32)> = Vec::with_capacity(section.len() / SIZE);
    for record in section.chunks_exact(SIZE) {
        let word = |at: usize| record.get(at..).and_then(<[u8]>::first_chunk).copied();
        let [low, high, length, encoding] =
            [0, 4, 8, 12].map(|at| u32::from_le_bytes(word(at).unwrap_or_default()));
        records.push((u64::from(high) << 32 | u64::from(low), length, encoding));
    }
    // An address counts from a symbol, or is already relative to the file's own layout.
    for relocation in relocations {
        let info = relocation.info(LE);
        let at = info.r_address as usize;
        let is_address = info.r_type == X86_64_RELOC_UNSIGNED && info.r_length == 3;
        if info.r_extern
            && is_address
            && at.is_multiple_of(SIZE)
            && let Some((address, ..)) = records.get_mut(at / SIZE)
        {
            *address = address.wrapping_add(symbol(info.r_symbolnum).unwrap_or(u64::MAX));
        }
    }
    let entry = |(address, length, encoding): (u64, u32, u32)| {
        let start = u32::try_from(address.checked_sub(base)?).ok()?;
        let range = start..start.checked_add(length)?;
        Some(Entry { range, encoding: Encoding(encoding) })
    };
    records.into_iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests;
