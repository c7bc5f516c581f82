//! Replacements of imports.

use std::ffi::c_void;

/// A function that an import is to lead to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replacement {
    pub(crate) name: &'static str,
    pub(crate) with: *const c_void,
}

/// A loaded object with imports.
pub(crate) trait Importer {
    /// Returns true if the object's imports are to be replaced.
    fn is_replaced(&self) -> bool;

    /// Replaces imports.
    ///
    /// # Errors
    /// Returns the address (VA) of a page that cannot be made writable.
    fn replace_imports(&self, replacements: &[Replacement]) -> Result<(), u64>;
}

/// Replaces the imports of the objects whose imports are to be replaced.
///
/// # Errors
/// Returns the address (VA) of the first page that cannot be made writable. The imports of other objects are replaced all the
/// same.
pub(super) fn replace_imports<'o>(
    objects: impl IntoIterator<Item = &'o (impl Importer + 'o)>,
    replacements: &[Replacement],
) -> Result<(), u64> {
    let mut result = Ok(());
    for object in objects.into_iter().filter(|object| object.is_replaced()) {
        result = result.and(object.replace_imports(replacements));
    }
    result
}
