use super::*;
use object::U32;

const BASE: u64 = 0x1000;

/// Returns a section of records of 16 bytes of code each, at these addresses.
fn section(addresses: &[u64]) -> Vec<u8> {
    let record = |address: &u64| {
        let [length, encoding] = [16_u32, 0x0100_0000].map(u32::to_le_bytes);
        [&address.to_le_bytes()[..], &length, &encoding, &[0; 16]].concat()
    };
    addresses.iter().flat_map(record).collect()
}

/// Returns the relocation of 8 bytes at `at` by symbol 7, with other fields (`r_length`, `r_extern`,
/// `r_type`).
fn relocation(at: u32, [length, is_extern, kind]: [u32; 3]) -> Relocation<LE> {
    let word = 7 | length << 25 | is_extern << 27 | kind << 28;
    Relocation { r_word0: U32::new(LE, at), r_word1: U32::new(LE, word) }
}

/// Returns the starts of the entries. Symbol 7 is at 0x1500.
fn starts(addresses: &[u64], relocations: &[Relocation<LE>]) -> Vec<u32> {
    let symbol = |number| (number == 7).then_some(0x1500);
    let entries = entries(&section(addresses), relocations, BASE, symbol);
    assert!(entries.iter().all(|it| it.range.len() == 16 && it.encoding.0 == 0x0100_0000));
    entries.iter().map(|entry| entry.range.start).collect()
}

#[test]
fn an_address_counts_from_the_symbol_of_its_relocation() {
    assert_eq!(starts(&[0x1010, 0x1020], &[]), [0x10, 0x20]);
    assert_eq!(starts(&[0x1010, 0x20], &[relocation(32, [3, 1, 0])]), [0x10, 0x520]);
    assert_eq!(starts(&[0x20, 0x1010], &[relocation(0, [3, 1, 0])]), [0x520, 0x10]);
}

/// Only a relocation of a whole address, by a symbol, says where a function begins. The others here, in order: of the
/// personality; of the language's data; of 4 bytes; by a section; of a branch; behind the last record, twice.
#[test]
fn other_relocations_are_passed_over() {
    for (at, fields) in [
        (16, [3, 1, 0]),
        (24, [3, 1, 0]),
        (0, [2, 1, 0]),
        (0, [3, 0, 0]),
        (0, [3, 1, 2]),
        (32, [3, 1, 0]),
        (64, [3, 1, 0]),
    ] {
        assert_eq!(starts(&[0x1010], &[relocation(at, fields)]), [0x10], "{at} {fields:?}");
    }
}

#[test]
fn functions_below_the_base_or_4_gib_above_it_are_left_out() {
    let far = BASE + (1 << 32);
    assert_eq!(starts(&[BASE - 1, BASE, far, far - 16, far - 17], &[]), [0, 0xFFFF_FFEF]);
    // Symbol 8 has no value.
    let mut unknown = relocation(0, [3, 1, 0]);
    unknown.r_word1 = U32::new(LE, unknown.r_word1.get(LE) + 1);
    assert_eq!(starts(&[0x20], &[unknown]), []);
}
