//! Tests of the shrinking of lists.

use clr_generate::{MAX_TRIALS, minimize_list};

#[test]
fn only_what_is_needed_remains() {
    let all: Vec<u32> = (0..1000).collect();
    let fails = |items: &[u32]| items.contains(&17) && items.contains(&900);
    assert_eq!(minimize_list(all.clone(), fails), [17, 900]);
    assert_eq!(minimize_list(all.clone(), |_| true), [0_u32; 0]);
    assert_eq!(minimize_list(all.clone(), |items| items.len() == 1000), all);
}

#[test]
fn the_number_of_trials_is_limited() {
    let mut trials = 0;
    let bytes = vec![1; MAX_TRIALS];
    let same = minimize_list(bytes.clone(), |_| {
        trials += 1;
        false
    });
    assert_eq!(same, bytes);
    assert!(trials <= MAX_TRIALS, "{trials}");
}
