//! The library of C whose heap the guest uses.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Functions of the library of C whose heap the guest uses, of which a process may have several.
pub(super) static MALLOC: AtomicUsize = AtomicUsize::new(0);
pub(super) static CALLOC: AtomicUsize = AtomicUsize::new(0);
pub(super) static REALLOC: AtomicUsize = AtomicUsize::new(0);
pub(super) static FREE: AtomicUsize = AtomicUsize::new(0);

/// Returns true if an import of this name, which led to a function (VA), may lead to one here: it is none of these, or of
/// the library of C that the first such import was of.
pub(super) fn may_replace(name: &[u8], function: u64) -> bool {
    let known = match name {
        b"malloc" => &MALLOC,
        b"calloc" => &CALLOC,
        b"realloc" => &REALLOC,
        b"free" => &FREE,
        _ => return true,
    };
    let function = function as usize;
    let before = known.compare_exchange(0, function, Ordering::Relaxed, Ordering::Relaxed);
    before.is_ok() || before == Err(function)
}
