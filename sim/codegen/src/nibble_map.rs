//! The nibble map of a JIT heap, which maps an address to the start of a method (contract §8.4).

use thiserror::Error;

/// Size of a bucket in bytes. A bucket has one nibble.
const BYTES_PER_BUCKET: u32 = 32;

/// Alignment of the starts of methods in bytes.
const START_ALIGNMENT: u32 = 4;

const BUCKETS_PER_WORD: u32 = 8;
const BITS_PER_NIBBLE: u32 = 4;

/// The 32-byte buckets of a heap in which a method starts, with the position in the bucket.
///
/// Offsets count bytes from the map's base.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NibbleMap {
    /// 8 buckets per word; the most significant nibble belongs to the lowest bucket. A nibble of 0
    /// means that no method starts in the bucket, a nibble n that one starts 4·(n − 1) bytes into
    /// it.
    words: Vec<u32>,
}

/// The reason why a start cannot be added to a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NibbleMapError {
    /// The start is not a multiple of 4.
    #[error("a method cannot start at offset {start:#x} of a code heap: 4-byte alignment")]
    Alignment {
        /// Offset of the start in bytes.
        start: u32,
    },
    /// The bucket of the start already has another start.
    #[error("methods at offsets {start:#x} and {other:#x} of a code heap share a 32-byte bucket")]
    Bucket {
        /// Offset of the start in bytes.
        start: u32,
        /// Offset of the start that the map already has in this bucket, in bytes.
        other: u32,
    },
}

impl NibbleMap {
    /// Creates a map without starts.
    pub const fn new() -> Self {
        Self { words: Vec::new() }
    }

    /// Records that a method starts at `start`. The map grows as needed.
    ///
    /// # Errors
    /// Returns [`NibbleMapError`] if the start is not aligned, or its bucket already has a start.
    pub fn set(&mut self, start: u32) -> Result<(), NibbleMapError> {
        if !start.is_multiple_of(START_ALIGNMENT) {
            return Err(NibbleMapError::Alignment { start });
        }
        let bucket = start / BYTES_PER_BUCKET;
        if let Some(other) = start_in(bucket, self.nibble(bucket)) {
            return Err(NibbleMapError::Bucket { start, other });
        }
        let index = (bucket / BUCKETS_PER_WORD) as usize;
        if index >= self.words.len() {
            self.words.resize(index + 1, 0);
        }
        if let Some(word) = self.words.get_mut(index) {
            *word |= nibble_of(start) << shift(bucket);
        }
        Ok(())
    }

    /// Returns the last start that is not after `offset`.
    ///
    /// The start may be any distance away: the map does not know where methods end.
    pub fn find(&self, offset: u32) -> Option<u32> {
        let bucket = offset / BYTES_PER_BUCKET;
        let nibble = self.nibble(bucket);
        if nibble <= nibble_of(offset)
            && let Some(start) = start_in(bucket, nibble)
        {
            return Some(start);
        }
        // The remaining bits belong to the buckets of the word before this one.
        let index = bucket / BUCKETS_PER_WORD;
        let before = self.word(index) >> shift(bucket) >> BITS_PER_NIBBLE;
        if before != 0 {
            // The lowest nibble of `before` belongs to the bucket directly before this one.
            return last_start(bucket.checked_sub(1)?, before);
        }
        let end = (index as usize).min(self.words.len());
        let words = self.words.get(..end)?;
        let last = words.iter().rposition(|word| *word != 0)?;
        last_start(last as u32 * BUCKETS_PER_WORD + (BUCKETS_PER_WORD - 1), *words.get(last)?)
    }

    /// Returns the words of the map as they are in the runtime's memory. All words after the last
    /// one are 0.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Returns the bytes of the words in memory, little-endian.
    pub fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn word(&self, index: u32) -> u32 {
        self.words.get(index as usize).copied().unwrap_or(0)
    }

    fn nibble(&self, bucket: u32) -> u32 {
        self.word(bucket / BUCKETS_PER_WORD) >> shift(bucket) & 15
    }
}

/// Returns the bit position of a bucket's nibble in its word.
const fn shift(bucket: u32) -> u32 {
    (BUCKETS_PER_WORD - 1 - bucket % BUCKETS_PER_WORD) * BITS_PER_NIBBLE
}

/// Returns the highest nibble of a start that is not after `offset` in its bucket.
const fn nibble_of(offset: u32) -> u32 {
    offset % BYTES_PER_BUCKET / START_ALIGNMENT + 1
}

/// Decodes the start that a nibble encodes. The map contains no nibble above 8.
fn start_in(bucket: u32, nibble: u32) -> Option<u32> {
    Some(bucket * BYTES_PER_BUCKET + nibble.checked_sub(1)? * START_ALIGNMENT)
}

/// Returns the start encoded by the lowest nonzero nibble of `word`, where `bucket` is the bucket
/// of the lowest nibble.
fn last_start(bucket: u32, word: u32) -> Option<u32> {
    let empty = word.trailing_zeros() / BITS_PER_NIBBLE;
    start_in(bucket.checked_sub(empty)?, word.checked_shr(empty * BITS_PER_NIBBLE)? & 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(starts: &[u32]) -> NibbleMap {
        let mut map = NibbleMap::new();
        for start in starts {
            map.set(*start).unwrap();
        }
        map
    }

    #[test]
    fn words_are_those_of_the_runtime() {
        // The lowest bucket has the most significant nibble; the nibble counts 4-byte words from 1.
        assert_eq!(map(&[0]).words(), [0x1000_0000]);
        assert_eq!(map(&[28]).words(), [0x8000_0000]);
        assert_eq!(map(&[32]).words(), [0x0100_0000]);
        assert_eq!(map(&[7 * 32 + 16]).words(), [0x0000_0005]);
        assert_eq!(map(&[8 * 32]).words(), [0, 0x1000_0000]);
        let map = map(&[0x1E4, 0x20, 4]);
        assert_eq!(map.words(), [0x2100_0000, 0x0000_0002]);
        assert_eq!(map.bytes(), [0, 0, 0, 0x21, 2, 0, 0, 0]);
        assert!(NibbleMap::new().bytes().is_empty());
    }

    /// C-147.
    #[test]
    fn a_start_is_found_from_itself_on() {
        let map = map(&[0x48, 0x1FC, 0x420]);
        for (offset, start) in [
            (0, None),
            // The bucket of the first start, before it: there is no earlier start.
            (0x40, None),
            (0x47, None),
            (0x48, Some(0x48)),
            (0x49, Some(0x48)),
            // Later buckets of the word, the start in the last one still after the offset.
            (0x5F, Some(0x48)),
            (0x60, Some(0x48)),
            (0x1E0, Some(0x48)),
            (0x1FB, Some(0x48)),
            (0x1FC, Some(0x1FC)),
            (0x1FF, Some(0x1FC)),
            // The next words, some of which are empty.
            (0x200, Some(0x1FC)),
            (0x3FF, Some(0x1FC)),
            (0x400, Some(0x1FC)),
            (0x41F, Some(0x1FC)),
            (0x420, Some(0x420)),
            // After the last word.
            (0x4FF, Some(0x420)),
            (0x500, Some(0x420)),
            (u32::MAX, Some(0x420)),
        ] {
            assert_eq!(map.find(offset), start, "{offset:#x}");
        }
    }

    #[test]
    fn the_ends_of_the_map_are_reached() {
        assert_eq!(NibbleMap::new().find(0), None);
        assert_eq!(NibbleMap::new().find(u32::MAX), None);
        assert_eq!(map(&[0]).find(0), Some(0));
        assert_eq!(map(&[0]).find(u32::MAX), Some(0));
        assert_eq!(map(&[0x100]).find(0xFF), None);
    }

    #[test]
    fn starts_that_cannot_be_represented_are_refused() {
        let mut map = map(&[0x20, 0x5C]);
        let before = map.clone();
        for (start, other) in [(0x20, 0x20), (0x24, 0x20), (0x3C, 0x20), (0x40, 0x5C)] {
            assert_eq!(map.set(start), Err(NibbleMapError::Bucket { start, other }));
        }
        for start in [1, 2, 3, 0x61, 0x67] {
            assert_eq!(map.set(start), Err(NibbleMapError::Alignment { start }));
        }
        assert_eq!(map, before);
        assert_eq!(map.set(0x1C), Ok(()));
        assert_eq!(map.set(0x60), Ok(()));
    }

    #[test]
    fn a_map_agrees_with_a_sorted_list() {
        let mut state = 0x2545_F491_4F6C_DD1D_u64;
        let mut random = move |below: u32| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ((state >> 32) % u64::from(below)) as u32
        };
        for round in 0..400 {
            let (mut map, mut list) = (NibbleMap::new(), Vec::new());
            let size = 64 << (round % 8);
            for _ in 0..random(30) {
                let start = random(size) & !3;
                let other = list.iter().copied().find(|other| other / 32 == start / 32);
                let expected =
                    other.map_or(Ok(()), |other| Err(NibbleMapError::Bucket { start, other }));
                assert_eq!(map.set(start), expected, "{list:x?}");
                if other.is_none() {
                    list.push(start);
                }
            }
            list.sort_unstable();
            for offset in 0..size + 600 {
                let expected = list.iter().copied().rfind(|start| *start <= offset);
                assert_eq!(map.find(offset), expected, "{offset:#x} in {list:x?}");
            }
        }
    }
}
