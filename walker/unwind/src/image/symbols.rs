//! Symbol names in images of any format.

use alloc::vec::Vec;

/// Symbol names of an image, by RVA.
#[derive(Clone, Debug, Default)]
pub struct Symbols<'a> {
    /// Ascending by RVA.
    names: Vec<(u32, &'a str)>,
}

impl<'a> Symbols<'a> {
    /// Creates the symbols from names that must be ascending by RVA.
    pub(super) const fn ascending(names: Vec<(u32, &'a str)>) -> Self {
        Self { names }
    }

    /// Returns the last name at or before `rva`, and the distance in bytes from there to `rva`.
    pub fn find(&self, rva: u32) -> Option<(&'a str, u32)> {
        let after = self.names.partition_point(|(start, _)| *start <= rva);
        let (start, name) = self.names.get(after.checked_sub(1)?)?;
        Some((name, rva - start))
    }

    /// Returns the RVAs and names, ascending by RVA.
    pub fn as_slice(&self) -> &[(u32, &'a str)] {
        &self.names
    }
}

/// A limit on the bytes of names that are read: the size of the file. Names of a sound image do not
/// overlap; in a hostile one, each could be as long as the file.
pub(super) struct NameBudget {
    left: usize,
    file: usize,
}

impl NameBudget {
    pub(super) const fn new(data: &[u8]) -> Self {
        Self { left: data.len(), file: data.len() }
    }

    /// Deducts the cost of reading a name, or of a failed search for its end. Returns true if the
    /// budget sufficed.
    pub(super) fn pay_for(&mut self, name: Option<&[u8]>) -> bool {
        let price = name.map_or(self.file / 64, <[u8]>::len) + 1;
        let paid = self.left.checked_sub(price);
        self.left = paid.unwrap_or(0);
        paid.is_some()
    }
}

#[cfg(test)]
mod tests;
