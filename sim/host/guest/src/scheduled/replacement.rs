//! Replacements of imports.

use std::ffi::c_void;

/// A function that an import is to lead to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replacement {
    pub(crate) name: &'static str,
    pub(crate) with: *const c_void,
}
