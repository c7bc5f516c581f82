//! RUNTIME_FUNCTION entries, which lead from an address to its unwind data.

use crate::search::last_up_to;

/// Size in bytes of a RUNTIME_FUNCTION.
pub const SIZE_OF_RUNTIME_FUNCTION: usize = 12;

/// `IMAGE_RUNTIME_FUNCTION_ENTRY`: a range of code and its unwind data (contract §8.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RuntimeFunction {
    /// RVA of the first byte.
    pub begin: u32,
    /// RVA after the last byte.
    pub end: u32,
    /// RVA of the UNWIND_INFO, or, if odd, 1 more than the RVA of another RUNTIME_FUNCTION
    /// (an indirect entry).
    pub unwind_info: u32,
}

impl RuntimeFunction {
    /// Reads an entry from its bytes.
    #[inline]
    pub const fn from_bytes(bytes: &[u8; SIZE_OF_RUNTIME_FUNCTION]) -> Self {
        let [b0, b1, b2, b3, e0, e1, e2, e3, u0, u1, u2, u3] = *bytes;
        Self {
            begin: u32::from_le_bytes([b0, b1, b2, b3]),
            end: u32::from_le_bytes([e0, e1, e2, e3]),
            unwind_info: u32::from_le_bytes([u0, u1, u2, u3]),
        }
    }

    /// Returns the bytes of the entry.
    pub fn to_bytes(&self) -> [u8; SIZE_OF_RUNTIME_FUNCTION] {
        let mut bytes = [0; SIZE_OF_RUNTIME_FUNCTION];
        let fields = [self.begin, self.end, self.unwind_info];
        for (to, field) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(fields) {
            *to = field.to_le_bytes();
        }
        bytes
    }

    /// Returns true if `rva` is in the range.
    #[inline]
    pub const fn contains(&self, rva: u32) -> bool {
        self.begin <= rva && rva < self.end
    }

    /// Returns the RVA of the RUNTIME_FUNCTION that an indirect entry refers to; `None` for a
    /// direct entry.
    #[inline]
    pub const fn indirect(&self) -> Option<u32> {
        if self.unwind_info & 1 == 1 { Some(self.unwind_info & !1) } else { None }
    }
}

/// A table of RUNTIME_FUNCTION entries ascending by begin, as in a PE image's exception directory.
///
/// Entries are read on demand: a look-up in a table that is not sorted may miss an entry, and does
/// no other harm.
#[derive(Clone, Copy, Debug, Default)]
pub struct FunctionTable<'a> {
    entries: &'a [[u8; SIZE_OF_RUNTIME_FUNCTION]],
}

impl<'a> FunctionTable<'a> {
    /// Creates the table in `bytes`; bytes after the last whole entry are ignored.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { entries: bytes.as_chunks().0 }
    }

    /// Returns the number of entries.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there are no entries.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the entries in table order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = RuntimeFunction> + 'a {
        self.entries.iter().map(RuntimeFunction::from_bytes)
    }

    /// Returns the entry whose range contains `rva`, by binary search.
    #[inline]
    pub fn find(&self, rva: u32) -> Option<RuntimeFunction> {
        self.find_from_begin(rva).filter(|entry| entry.contains(rva))
    }

    /// Returns the last entry that begins at or before `rva`, wherever it ends, by binary search.
    #[inline]
    pub fn find_from_begin(&self, rva: u32) -> Option<RuntimeFunction> {
        let is_before = |[b0, b1, b2, b3, ..]: &[u8; SIZE_OF_RUNTIME_FUNCTION]| {
            u32::from_le_bytes([*b0, *b1, *b2, *b3]) <= rva
        };
        let at = last_up_to(self.entries, is_before)?;
        self.entries.get(at).map(RuntimeFunction::from_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn bytes(entries: &[[u32; 3]]) -> Vec<u8> {
        entries.iter().flatten().flat_map(|field| field.to_le_bytes()).collect()
    }

    #[test]
    fn look_up_takes_begin_and_refuses_end() {
        let bytes = bytes(&[[0x10, 0x20, 0x100], [0x20, 0x28, 0x104], [0x40, 0x41, 0x109]]);
        let table = FunctionTable::new(&bytes);
        assert_eq!((table.len(), table.is_empty()), (3, false));
        assert!(FunctionTable::default().is_empty() && FunctionTable::new(&[]).is_empty());
        let info = |rva| table.find(rva).map(|entry| entry.unwind_info);
        assert_eq!(info(0x0F), None);
        assert_eq!(info(0x10), Some(0x100));
        assert_eq!(info(0x1F), Some(0x100));
        assert_eq!(info(0x20), Some(0x104));
        assert_eq!(info(0x27), Some(0x104));
        assert_eq!(info(0x28), None);
        assert_eq!(info(0x40), Some(0x109));
        assert_eq!(info(0x41), None);
        assert_eq!(table.find(0x40).unwrap().indirect(), Some(0x108));
        assert_eq!(table.find(0x20).unwrap().indirect(), None);
    }

    #[test]
    fn looked_up_by_begin_an_entry_has_no_end() {
        let bytes = bytes(&[[0x10, 0x20, 0x100], [0x20, 0x28, 0x104], [0x40, 0x41, 0x109]]);
        let table = FunctionTable::new(&bytes);
        for (rva, expected) in [
            (0, None),
            (0x0F, None),
            (0x10, Some([0x10, 0x20, 0x100])),
            (0x1F, Some([0x10, 0x20, 0x100])),
            (0x20, Some([0x20, 0x28, 0x104])),
            // In the gap after it.
            (0x28, Some([0x20, 0x28, 0x104])),
            (0x3F, Some([0x20, 0x28, 0x104])),
            (0x40, Some([0x40, 0x41, 0x109])),
            // Beyond the last.
            (0x41, Some([0x40, 0x41, 0x109])),
            (u32::MAX, Some([0x40, 0x41, 0x109])),
        ] {
            let found = table.find_from_begin(rva);
            let found = found.map(|entry| [entry.begin, entry.end, entry.unwind_info]);
            assert_eq!(found, expected, "{rva:#x}");
        }
        for rva in [0, 0x10, u32::MAX] {
            assert_eq!(FunctionTable::new(&[]).find_from_begin(rva), None);
        }
    }

    #[test]
    fn a_cut_off_entry_is_ignored() {
        let bytes = bytes(&[[0x10, 0x20, 0x100], [0x20, 0x28, 0x104]]);
        for len in 0..bytes.len() {
            assert_eq!(FunctionTable::new(&bytes[..len]).len(), len / 12);
        }
        assert!(FunctionTable::new(&[]).find(0).is_none());
    }
}
