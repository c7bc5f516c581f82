use super::Parts;
use crate::{InspectError, Runtime};

const BLOCK: u64 = 0x7000;
const DESCRIPTOR: u64 = 0x1_0000;

/// Reads the mask of a runtime whose mask object has these words.
fn mask(words: [u64; 4]) -> Result<u64, InspectError> {
    let mut parts = Parts::default();
    let text = r#"{"version":0,"baseline":"empty","types":{"ThreadStore":{"FirstThreadLink":0,"ThreadCount":0,
        "UnstartedCount":0,"BackgroundCount":0,"PendingCount":0,"DeadCount":0},"Thread":{"Id":0,"OSId":0,"State":0,
        "PreemptiveGCDisabled":0,"Frame":0,"LinkNext":0},"ProfControlBlock":{"GlobalEventMask":8}},
        "globals":{"ThreadStore":[[0],"pointer"],"ProfilerControlBlock":[[1],"pointer"]},"contracts":{"Thread":1}}"#;
    parts.put_descriptor(DESCRIPTOR, text, 0x9000).part(0x9000, 24).put(0x9008, BLOCK);
    parts.part(BLOCK, 40);
    for (index, word) in words.into_iter().enumerate() {
        parts.put(BLOCK + 8 + 8 * index as u64, word);
    }
    let memory = parts.memory();
    Runtime::read(&memory, "", DESCRIPTOR).unwrap().event_mask(&memory)
}

#[test]
fn the_mask_follows_the_constants_of_its_object() {
    let high = 0xFFFF_FFFF_0000_0000;
    assert_eq!(mask([0xFFFF_FFFF, 32, high, 0x1_0000_0002]), Ok(0x1_0000_0002));
    let error = |address| Err(InspectError::EventMask { address });
    assert_eq!(mask([0x200, 32, high, 0]), error(BLOCK + 8));
    assert_eq!(mask([0xFFFF_FFFF, 33, high, 0]), error(BLOCK + 16));
}
