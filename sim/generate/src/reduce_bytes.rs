//! Shrinking of lists whose items mean nothing here.

use super::shrink::MAX_TRIALS;
use core::iter::successors;

/// Removes items as long as the rest still fails, many at once first. No single item of the result
/// can be removed.
///
/// `items` themselves are assumed to fail. At most [`MAX_TRIALS`] candidates are tried.
pub fn minimize_list<T: Clone>(mut items: Vec<T>, mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut trials = 0;
    loop {
        let before = items.len();
        let sizes = successors(Some(before), |size| Some(size / 2));
        for size in sizes.take_while(|size| *size > 0) {
            let mut at = 0;
            while at < items.len() && trials < MAX_TRIALS {
                let end = items.len().min(at + size);
                let fewer = [&items[..at], &items[end..]].concat();
                trials += 1;
                if fails(&fewer) {
                    items = fewer;
                } else {
                    at = end;
                }
            }
        }
        if items.len() == before || trials >= MAX_TRIALS {
            return items;
        }
    }
}
