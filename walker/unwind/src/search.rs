//! Binary search for addresses that recur.

/// Returns the index of the last element for which `is_before` is true, if it is true for the first
/// elements and false for the others; `None` if it is true for none.
///
/// The search branches, unlike `partition_point`: code that depends on a predicted look-up need not wait
/// for the loads, and the same return addresses recur.
#[inline]
pub(crate) fn last_up_to<T>(sorted: &[T], is_before: impl Fn(&T) -> bool) -> Option<usize> {
    let (mut after, mut end) = (0, sorted.len());
    while after < end {
        let middle = after + (end - after) / 2;
        match sorted.get(middle) {
            Some(element) if is_before(element) => after = middle + 1,
            _ => end = middle,
        }
    }
    after.checked_sub(1)
}
