//! The runtime's hash map of pointers (`PtrHashMap` in hash.h of dotnet/runtime), which other threads may read while it changes.

use crate::error::InspectError;
use clr_unwind::{Memory, Unreadable};
use clr_walker::jitted::contracts::{ContractDescriptor, ContractError};

/// Numbers below are marks of the map; a key that is one is stored with this added (`HashMap::NON_SPECIAL_OFFSET`).
const FIRST_KEY: u64 = 2;
const KEY_OFFSET: u64 = 100;
/// Slots of a bucket at most.
const SLOT_LIMIT: u64 = 16;

/// Where a hash map has its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashMapLayout {
    buckets: u32,
    bucket_size: u32,
    keys: u32,
    values: u32,
    slots: u64,
    /// The bits of a value; the highest one of a bucket's first value says that keys went on to other buckets.
    mask: u64,
}

impl HashMapLayout {
    pub(crate) fn new(descriptor: &ContractDescriptor) -> Result<Self, ContractError> {
        Ok(Self {
            buckets: descriptor.field("HashMap", "Buckets")?,
            bucket_size: descriptor.field("Bucket", "!")?,
            keys: descriptor.field("Bucket", "Keys")?,
            values: descriptor.field("Bucket", "Values")?,
            slots: descriptor.global("HashMapSlotsPerBucket")?.min(SLOT_LIMIT),
            mask: descriptor.global("HashMapValueMask")?,
        })
    }

    /// Returns the pointer that the map at `map` (VA) has for a key.
    pub(crate) fn get<M: Memory + ?Sized>(
        &self,
        memory: &M,
        map: u64,
        key: u64,
    ) -> Result<Option<u64>, InspectError> {
        let key = if key < FIRST_KEY { key + KEY_OFFSET } else { key };
        let array = memory.read_u64(map.wrapping_add(self.buckets.into()))?;
        // The first bucket has the number of the others instead.
        let size = memory.read_u32(array)?;
        let Some(step) = ((key >> 5) as u32).wrapping_add(1).checked_rem(size.saturating_sub(1))
        else {
            return Ok(None);
        };
        let mut place = (key >> 2) as u32;
        for _ in 0..size {
            let number = u64::from(place % size) + 1;
            let bucket = array.wrapping_add(number * u64::from(self.bucket_size));
            match self.in_bucket(memory, bucket, key)? {
                Found::Value(value) => return Ok(Some(value << 1)),
                Found::Elsewhere => place = place.wrapping_add(step + 1),
                Found::Nowhere => return Ok(None),
            }
        }
        Ok(None)
    }

    fn in_bucket<M: Memory + ?Sized>(
        &self,
        memory: &M,
        bucket: u64,
        key: u64,
    ) -> Result<Found, Unreadable> {
        let slot = |array: u32, slot: u64| {
            memory.read_u64(bucket.wrapping_add(u64::from(array) + 8 * slot))
        };
        for index in 0..self.slots {
            if slot(self.keys, index)? == key {
                return Ok(Found::Value(slot(self.values, index)? & self.mask));
            }
        }
        let goes_on = slot(self.values, 0)? & !self.mask != 0;
        Ok(if goes_on { Found::Elsewhere } else { Found::Nowhere })
    }
}

enum Found {
    Value(u64),
    /// Not here; keys went on to other buckets.
    Elsewhere,
    Nowhere,
}
