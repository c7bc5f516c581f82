//! Shrinking of inputs whose format is not known: removing parts of a list, and plainer bytes.

use super::shrink::MAX_TRIALS;

/// Removes items as long as the rest still fails, many at once first. No single item of the result
/// can be removed.
///
/// `items` themselves are assumed to fail. At most [`MAX_TRIALS`] candidates are tried.
pub fn minimize_list<T: Clone>(items: Vec<T>, mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut trials = 0;
    fewer(items, &mut trials, &mut fails)
}

/// Removes bytes as [`minimize_list`] does, and sets to zero those that remain and need no other
/// value.
pub fn minimize_bytes(bytes: Vec<u8>, mut fails: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut trials = 0;
    let mut bytes = fewer(bytes, &mut trials, &mut fails);
    loop {
        let before = bytes.clone();
        zero(&mut bytes, &mut trials, &mut fails);
        // Bytes that were told apart by their values may be superfluous now.
        if bytes != before {
            bytes = fewer(bytes, &mut trials, &mut fails);
        }
        if bytes == before || trials >= MAX_TRIALS {
            return bytes;
        }
    }
}

/// Returns the sizes of the parts that are changed at once, the largest first.
fn sizes(len: usize) -> impl Iterator<Item = usize> {
    core::iter::successors(Some(len), |size| Some(size / 2)).take_while(|size| *size > 0)
}

fn fewer<T: Clone>(
    mut items: Vec<T>,
    trials: &mut usize,
    fails: &mut impl FnMut(&[T]) -> bool,
) -> Vec<T> {
    loop {
        let before = items.len();
        for size in sizes(before) {
            let mut at = 0;
            while at < items.len() && *trials < MAX_TRIALS {
                let end = items.len().min(at + size);
                let fewer = [&items[..at], &items[end..]].concat();
                *trials += 1;
                if fails(&fewer) {
                    items = fewer;
                } else {
                    at = end;
                }
            }
        }
        if items.len() == before || *trials >= MAX_TRIALS {
            return items;
        }
    }
}

/// Sets bytes to zero as long as the result still fails.
fn zero(bytes: &mut [u8], trials: &mut usize, fails: &mut impl FnMut(&[u8]) -> bool) {
    for size in sizes(bytes.len()) {
        for at in (0..bytes.len()).step_by(size) {
            let part = at..bytes.len().min(at + size);
            if *trials >= MAX_TRIALS || bytes[part.clone()].iter().all(|byte| *byte == 0) {
                continue;
            }
            let before = bytes[part.clone()].to_vec();
            bytes[part.clone()].fill(0);
            *trials += 1;
            if !fails(bytes) {
                bytes[part].copy_from_slice(&before);
            }
        }
    }
}
