//! Pointers of the profiler.

use clr_walker::profiling::HResult;

/// Writes a result, unless the profiler does not want it.
///
/// # Safety
/// `to` is NULL, or points to room for a `T`.
pub(crate) unsafe fn put<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the caller's promise; the profiler need not have aligned it.
        unsafe { to.write_unaligned(value) };
    }
}

/// Writes as many elements as there is room for.
///
/// # Safety
/// `to` is NULL, or points to room for this number of `T`s.
pub(crate) unsafe fn put_all<T: Copy>(to: *mut T, capacity: u32, values: &[T]) {
    if to.is_null() {
        return;
    }
    for (index, value) in values.iter().take(capacity as usize).enumerate() {
        // SAFETY: the index is below `capacity`.
        unsafe { to.add(index).write_unaligned(*value) };
    }
}

/// Returns a text as UTF-16 with its final 0.
pub(crate) fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

/// Returns `len` as the interfaces count.
pub(crate) fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// Writes a text with its final 0, cut off to the capacity. Returns true if it was whole.
///
/// # Safety
/// `to` is NULL, or points to room for this number of UTF-16 units.
pub(crate) unsafe fn put_cut(to: *mut u16, capacity: u32, text: &[u16]) -> bool {
    let whole = text.len() <= capacity as usize;
    // SAFETY: the caller's promise.
    unsafe {
        put_all(to, capacity, text);
        if !whole && !to.is_null() && capacity > 0 {
            to.add(capacity as usize - 1).write_unaligned(0);
        }
    }
    whole
}

/// Reads a text with a final 0.
///
/// # Safety
/// `from` is not NULL, and points to units of which one is 0.
pub(crate) unsafe fn read_wide(from: *const u16) -> String {
    // SAFETY: the caller's promise.
    let units = unsafe { read_units(from) };
    String::from_utf16_lossy(units.split_last().map_or(&[], |(_, units)| units))
}

/// Reads a text with a final 0; `None` for NULL.
///
/// # Safety
/// `from` is NULL, or as for [`read_wide`].
pub(crate) unsafe fn read_given(from: *const u16) -> Option<String> {
    // SAFETY: the caller's promise.
    (!from.is_null()).then(|| unsafe { read_wide(from) })
}

/// Reads a text with its final 0.
///
/// # Safety
/// As [`read_wide`].
pub(crate) unsafe fn read_units(from: *const u16) -> Vec<u16> {
    /// No name is longer.
    const LIMIT: usize = 0x1000;
    let mut units = Vec::new();
    while units.len() < LIMIT {
        // SAFETY: no unit before this was the final 0.
        let unit = unsafe { from.add(units.len()).read_unaligned() };
        if unit == 0 {
            break;
        }
        units.push(unit);
    }
    units.push(0);
    units
}

/// The final result of a method.
pub(crate) type Answer = Result<HResult, clr_walker::profiling::CallError<clr_runtime::Outcome>>;
