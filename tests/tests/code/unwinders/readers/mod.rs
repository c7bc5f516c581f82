//! The unwind data of an image as `clr_walker` reads it, and as other readers do: entry by entry.
//!
//! Frames that the readers compute are not compared here, only what they say of the data.

mod compact;
mod rows;
#[cfg(test)]
mod tests;
mod unwind_info;

#[cfg(test)]
pub(crate) use rows::{compare_row, convert};
use std::collections::BTreeMap;

/// The outcome of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// `PE`, `ELF` or `Mach-O`.
    pub(crate) format: &'static str,
    /// Number of RUNTIME_FUNCTION entries, of FDEs, and of compact entries that both readers read.
    pub(crate) entries: u64,
    /// Number of the parts of these that were compared: unwind codes, rows, and layouts.
    pub(crate) parts: u64,
    /// Number of differences of a kind, and the RVA of the first.
    pub(crate) differences: BTreeMap<&'static str, (u64, u32)>,
}

impl Comparison {
    fn differ(&mut self, kind: &'static str, rva: u32) {
        self.differences.entry(kind).or_insert((0, rva)).0 += 1;
    }

    fn compare<T: PartialEq>(&mut self, kind: &'static str, rva: u32, ours: &T, theirs: &T) {
        if ours != theirs {
            self.differ(kind, rva);
        }
    }
}

/// Compares the unwind data of an image; `None` if one of the readers refuses its headers.
pub(crate) fn compare(image: &[u8]) -> Option<Comparison> {
    let mut comparison = Comparison::default();
    match image {
        [0x7F, b'E', b'L', b'F', ..] => {
            comparison.format = "ELF";
            rows::compare_elf(image, &mut comparison)?;
        }
        [0xCF, 0xFA, 0xED, 0xFE, ..] => {
            comparison.format = "Mach-O";
            rows::compare_macho(image, &mut comparison)?;
            compact::compare(image, &mut comparison)?;
        }
        _ => {
            comparison.format = "PE";
            unwind_info::compare(image, &mut comparison)?;
        }
    }
    Some(comparison)
}
