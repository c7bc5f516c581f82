use super::*;

/// Returns how often a budget for a file of 128 bytes pays for a name.
fn paid(name: Option<&[u8]>) -> usize {
    let mut budget = NameBudget::new(&[0; 128]);
    (0..200).take_while(|_| budget.pay_for(name)).count()
}

#[test]
fn names_may_have_as_many_bytes_as_the_file() {
    assert_eq!(paid(Some(b"")), 128, "each is followed by a 0");
    assert_eq!(paid(Some(&[b'a'; 15])), 8);
    assert_eq!(paid(Some(&[b'a'; 127])), 1);
    assert_eq!(paid(Some(&[b'a'; 128])), 0);
    // A search for the end of a name may read much: it costs a 64th of the file, and 1.
    assert_eq!(paid(None), 42);
}
