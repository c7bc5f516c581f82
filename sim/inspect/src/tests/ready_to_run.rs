use super::Parts;
use crate::hash_map::HashMapLayout;
use crate::ready_to_run::{ReadyToRunLayout, ReadyToRunMethod};
use clr_walker::jitted::contracts::ContractDescriptor;

const MAP: u64 = 0x1000;
const BUCKETS: u64 = 0x2000;
const MODULE: u64 = 0x4000;
const INFO: u64 = 0x5000;
const FUNCTIONS: u64 = 0x6000;
const BASE: u64 = 0x10_0000;
const MASK: u64 = u64::MAX >> 1;

fn descriptor() -> ContractDescriptor {
    let text = r#"{"version":0,"baseline":"empty","types":{"HashMap":{"Buckets":16},
        "Bucket":{"!":64,"Keys":0,"Values":32},"Module":{"ReadyToRunInfo":8},
        "ReadyToRunInfo":{"CompositeInfo":0,"NumRuntimeFunctions":8,"RuntimeFunctions":16,
        "NumHotColdMap":24,"DelayLoadMethodCallThunks":32,"EntryPointToMethodDescMap":64}},
        "globals":{"HashMapSlotsPerBucket":4,"HashMapValueMask":"0x7fffffffffffffff"},"contracts":{}}"#;
    let mut parts = Parts::default();
    parts.put_descriptor(0x8000, text, 0x9000).part(0x9000, 24);
    ContractDescriptor::read(&parts.memory(), 0x8000).unwrap()
}

/// Returns the place of a key's first bucket, and of its second one, of five.
fn buckets(key: u64) -> [u64; 2] {
    let step = 1 + ((key >> 5) + 1) % 4;
    [key >> 2, (key >> 2) + step].map(|place| BUCKETS + 64 * (place % 5 + 1))
}

fn map(parts: &mut Parts) -> &mut Parts {
    parts.part(BUCKETS, 64 * 6).put(BUCKETS, 5)
}

#[test]
fn a_key_is_found_in_its_bucket_and_after_others() {
    let layout = HashMapLayout::new(&descriptor()).unwrap();
    let mut parts = Parts::default();
    map(&mut parts).part(MAP, 24).put(MAP + 16, BUCKETS);
    let (here, later, none) = (0x1_2340, 0x1_2340 + 20 * 4 * 8, 0x1_2344);
    let [first, _] = buckets(here);
    // The third slot.
    parts.put(first + 16, here).put(first + 32 + 16, 0x700);
    // A key whose bucket was full: the bucket's first value says so.
    let [full, second] = buckets(later);
    parts.put(full + 32, !MASK | 0x10).put(second, later).put(second + 32, 0x800);
    let get = |parts: &Parts, key| layout.get(&parts.memory(), MAP, key).unwrap();
    assert_eq!(get(&parts, here), Some(0xE00), "a pointer is stored without its lowest bit");
    assert_eq!(get(&parts, later), Some(0x1000));
    assert_eq!(get(&parts, none), None);
    // Without that mark the search ends.
    parts.put(full + 32, 0x10);
    assert_eq!(get(&parts, later), None);
}

#[test]
fn a_search_in_a_damaged_map_ends() {
    let layout = HashMapLayout::new(&descriptor()).unwrap();
    let mut parts = Parts::default();
    map(&mut parts).part(MAP, 24).put(MAP + 16, BUCKETS);
    for bucket in 1..6 {
        parts.put(BUCKETS + 64 * bucket + 32, u64::MAX);
    }
    assert_eq!(layout.get(&parts.memory(), MAP, 0x1_2340), Ok(None));
    for size in [0, 1] {
        parts.put(BUCKETS, size);
        assert_eq!(layout.get(&parts.memory(), MAP, 0x1_2340), Ok(None));
    }
}

/// A method with a funclet after it, and thunks.
fn image() -> Parts {
    let mut parts = Parts::default();
    map(&mut parts).part(MODULE, 16).put(MODULE + 8, INFO).part(INFO, 0x58).put(INFO, INFO);
    parts.put(INFO + 8, 3).put(INFO + 16, FUNCTIONS).put(INFO + 64 + 16, BUCKETS);
    parts.part(FUNCTIONS, 36);
    for (index, begin) in [0x1000_u32, 0x1100, 0x1200].into_iter().enumerate() {
        parts.put_bytes(FUNCTIONS + 12 * index as u64, &begin.to_le_bytes());
    }
    let [bucket, _] = buckets(BASE + 0x1000);
    parts.put(bucket, BASE + 0x1000).put(bucket + 32, 0x7000 >> 1);
    parts
}

#[test]
fn a_method_is_found_from_each_of_its_functions() {
    let layout = ReadyToRunLayout::new(&descriptor()).unwrap();
    let mut parts = image();
    let find = |parts: &Parts, rva| layout.find(&parts.memory(), MODULE, BASE, BASE + rva).unwrap();
    let method = Some(ReadyToRunMethod { desc: 0x7000, start: BASE + 0x1000 });
    for (rva, found) in [(0xFFF, None), (0x1000, method), (0x10FF, method), (0x11FF, method)] {
        assert_eq!(find(&parts, rva), found, "{rva:#x}");
    }
    assert_eq!(layout.find(&parts.memory(), MODULE, BASE, BASE - 1), Ok(None));
    // Thunks at the end of the code.
    parts.part(0x7800, 8).put(0x7800, 0x1200 | 0x100 << 32).put(INFO + 32, 0x7800);
    assert_eq!([find(&parts, 0x11FF), find(&parts, 0x1200)], [method, None]);
    // A method in two parts would need another table.
    parts.put(INFO + 24, 1);
    assert_eq!(find(&parts, 0x1000), None);
}
