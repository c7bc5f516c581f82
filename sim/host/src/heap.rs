//! Objects of the simulated heap, and its generations.
//!
//! All objects survive each GC where they are, and those of the generations that are collected get one generation older.

use crate::process::OBJECT_SIZE;
use clr_com::{GenerationRange, ObjectId};
use std::cell::Cell;

/// Id of the first object: an address that nothing is at (assumed: texts say no addresses).
const OBJECTS: u64 = 0x7000_0000_1000;
/// Generations of the heaps of large and of pinned objects, which texts have none of.
const LARGE: u32 = 3;
const PINNED: u32 = 4;
/// Bytes that are reserved for the youngest generation, and for each of these heaps (assumed).
const RESERVED: u64 = 0x1000_0000;

/// Returns the id of an object, given its number from 1; 0 is none. Objects do not move.
pub(crate) const fn object_id(number: u64) -> ObjectId {
    match number.checked_sub(1) {
        Some(index) => ObjectId(OBJECTS + index * OBJECT_SIZE),
        None => ObjectId(0),
    }
}

/// Returns true for the id of one of the first N objects.
pub(crate) const fn is_object(object: ObjectId, objects: u64) -> bool {
    let offset = object.0.wrapping_sub(OBJECTS);
    offset.is_multiple_of(OBJECT_SIZE) && offset / OBJECT_SIZE < objects
}

/// The generations, as a profiler of GCs is told of them.
#[derive(Debug, Default)]
pub(crate) struct Heap(Cell<Bounds>);

/// Numbers of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bounds {
    /// Objects of generation 2, and of 2 and 1.
    old: u64,
    survivors: u64,
    /// All objects at the last GC.
    known: u64,
    /// The oldest generation that a GC in progress collects.
    collects: usize,
}

impl Heap {
    /// Begins with a heap without objects.
    pub(crate) fn clear(&self) {
        self.0.set(Bounds::default());
    }

    /// Notes the number of objects at the start of a GC, and the oldest generation that it collects.
    pub(crate) fn begin_collection(&self, objects: u64, oldest: usize) {
        self.0.set(Bounds { known: objects, collects: oldest, ..self.0.get() });
    }

    /// Makes the objects of the collected generations older.
    pub(crate) fn end_collection(&self) {
        let before = self.0.get();
        let old = if before.collects > 0 { before.survivors } else { before.old };
        self.0.set(Bounds { old, survivors: before.known, ..before });
    }

    /// Returns the generation of an object, given its number from 0.
    fn generation(&self, number: u64) -> u32 {
        let Bounds { old, survivors, .. } = self.0.get();
        if number < old { 2 } else { u32::from(number < survivors) }
    }

    /// Returns the range of a generation, or of the heaps of large or of pinned objects.
    fn range(&self, generation: u32) -> GenerationRange {
        let Bounds { old, survivors, known, .. } = self.0.get();
        let (from, to, reserved) = match generation {
            0 => (survivors, known, RESERVED - survivors * OBJECT_SIZE),
            1 => (old, survivors, (survivors - old) * OBJECT_SIZE),
            2 => (0, old, old * OBJECT_SIZE),
            other => {
                let start = OBJECTS + u64::from(other - LARGE + 1) * RESERVED;
                return GenerationRange { generation, start, size: 0, reserved: RESERVED };
            }
        };
        let start = object_id(from + 1).0;
        GenerationRange { generation, start, size: (to - from) * OBJECT_SIZE, reserved }
    }

    /// Returns the ranges of the generations in the order in which CLRs list them (recorded).
    pub(crate) fn ranges(&self, has_pinned: bool) -> Vec<GenerationRange> {
        let oldest = if has_pinned { PINNED } else { LARGE };
        (0..=oldest).rev().map(|generation| self.range(generation)).collect()
    }

    /// Returns the range that an object is in.
    pub(crate) fn range_of(&self, object: ObjectId) -> Option<GenerationRange> {
        let number = object.0.checked_sub(OBJECTS)? / OBJECT_SIZE;
        Some(self.range(self.generation(number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns generation, first object and number of objects of each range.
    fn ranges(heap: &Heap) -> Vec<(u32, u64, u64)> {
        let number = |range: &GenerationRange| (range.start - object_id(1).0) / OBJECT_SIZE;
        let all = heap.ranges(false);
        all[1..].iter().map(|one| (one.generation, number(one), one.size / OBJECT_SIZE)).collect()
    }

    #[test]
    fn objects_get_older_with_each_gc_that_collects_them() {
        let heap = Heap::default();
        assert_eq!(ranges(&heap), [(2, 0, 0), (1, 0, 0), (0, 0, 0)]);
        heap.begin_collection(4, 0);
        assert_eq!(ranges(&heap), [(2, 0, 0), (1, 0, 0), (0, 0, 4)]);
        heap.end_collection();
        assert_eq!(ranges(&heap), [(2, 0, 0), (1, 0, 4), (0, 4, 0)]);
        heap.begin_collection(6, 0);
        heap.end_collection();
        assert_eq!(ranges(&heap), [(2, 0, 0), (1, 0, 6), (0, 6, 0)]);
        heap.begin_collection(7, 1);
        heap.end_collection();
        assert_eq!(ranges(&heap), [(2, 0, 6), (1, 6, 1), (0, 7, 0)]);
        let generation = |number| heap.range_of(object_id(number)).map(|range| range.generation);
        assert_eq!([1, 6, 7, 8].map(generation), [2, 2, 1, 0].map(Some));
    }

    #[test]
    fn heaps_do_not_overlap() {
        let heap = Heap::default();
        heap.begin_collection(9, 2);
        heap.end_collection();
        let mut all = heap.ranges(true);
        assert_eq!(all.iter().map(|one| one.generation).collect::<Vec<_>>(), [4, 3, 2, 1, 0]);
        all.sort_by_key(|one| one.start);
        assert!(all.windows(2).all(|pair| pair[0].start + pair[0].reserved <= pair[1].start));
    }
}
