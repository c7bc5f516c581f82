//! Tests of the shrinking of lists and bytes.

use crate::{MAX_TRIALS, minimize_bytes, minimize_list};

#[test]
fn only_what_is_needed_remains() {
    let all: Vec<u32> = (0..1000).collect();
    let fails = |items: &[u32]| items.contains(&17) && items.contains(&900);
    assert_eq!(minimize_list(all.clone(), fails), [17, 900]);
    assert_eq!(minimize_list(all.clone(), |_| true), []);
    assert_eq!(minimize_list(all.clone(), |items| items.len() == 1000), all);
}

#[test]
fn bytes_become_fewer_and_then_zero() {
    let bytes: Vec<u8> = (0..=255).rev().collect();
    // Seven bytes, the third of which is large: one is needed, six are padding.
    let fails = |bytes: &[u8]| bytes.get(2).is_some_and(|byte| *byte > 200) && bytes.len() >= 7;
    let small = minimize_bytes(bytes, fails);
    assert_eq!((small.len(), &small[..2], &small[3..]), (7, &[0, 0][..], &[0; 4][..]));
    assert!(fails(&small), "{small:?}");
}

/// A byte that is superfluous once another one is zero.
#[test]
fn plainer_bytes_are_shrunk_again() {
    let fails = |bytes: &[u8]| matches!(bytes, [0, ..] | [_, _, _, ..]);
    assert_eq!(minimize_bytes(vec![9, 8, 7], fails), [0]);
}

#[test]
fn the_number_of_trials_is_limited() {
    let mut trials = 0;
    let bytes = vec![1; MAX_TRIALS];
    let same = minimize_bytes(bytes.clone(), |_| {
        trials += 1;
        false
    });
    assert_eq!(same, bytes);
    assert!(trials <= MAX_TRIALS, "{trials}");
}
