//! Objects of the simulated heap, and its generations.
//!
//! Objects survive GCs where they are, and those of the generations that are collected get one generation older. A dead one leaves
//! its place free.

use crate::process::OBJECT_SIZE;
use clr_com::{GenerationRange, ObjectId};
use clr_runtime::{HeapKind, Objects};
use std::cell::Cell;

/// Id of the first object: an address that nothing is at (assumed: texts say no addresses).
const OBJECTS: u64 = 0x7000_0000_1000;
/// Generations of the heaps of large and of pinned objects.
const LARGE: u32 = 3;
const PINNED: u32 = 4;
/// Bytes that are reserved for the youngest generation, and for each of these heaps (assumed).
const RESERVED: u64 = 0x1000_0000;

/// Size of a large object in bytes (assumed: texts say no sizes); objects of at least 85,000 bytes are large.
const LARGE_SIZE: u64 = 0x1_5000;

/// The heaps, in the order of their addresses.
const HEAPS: [HeapKind; 3] = [HeapKind::Generations, HeapKind::Large, HeapKind::Pinned];

/// Returns the size of an object of a heap in bytes.
pub(crate) const fn size_in(heap: HeapKind) -> u64 {
    match heap {
        HeapKind::Generations | HeapKind::Pinned => OBJECT_SIZE,
        HeapKind::Large => LARGE_SIZE,
    }
}

/// Returns the address of a heap.
const fn start_of(heap: HeapKind) -> u64 {
    OBJECTS + heap as u64 * RESERVED
}

/// Returns the id of an object of a heap, given its number from 1; 0 is none. Objects do not move.
pub(crate) const fn object_id(number: u64, heap: HeapKind) -> ObjectId {
    match number.checked_sub(1) {
        Some(index) => ObjectId(start_of(heap) + index * size_in(heap)),
        None => ObjectId(0),
    }
}

/// Returns the number of the object with an id, from 1, and its heap, if it can be one's.
pub(crate) fn number_of(object: ObjectId) -> Option<(u64, HeapKind)> {
    let offset = object.0.checked_sub(OBJECTS)?;
    let heap = *HEAPS.get(usize::try_from(offset / RESERVED).ok()?)?;
    let inside = offset % RESERVED;
    inside.is_multiple_of(size_in(heap)).then_some((inside / size_in(heap) + 1, heap))
}

/// A handle that the profiler has made.
#[derive(Clone, Copy)]
pub(crate) struct Handle {
    /// Its object.
    pub(crate) object: u64,
    /// The object lives as long as the handle.
    pub(crate) is_strong: bool,
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
    fn range(&self, generation: u32, objects: &Objects) -> GenerationRange {
        let Bounds { old, survivors, known, .. } = self.0.get();
        let (from, to, reserved) = match generation {
            0 => (survivors, known, RESERVED - survivors * OBJECT_SIZE),
            1 => (old, survivors, (survivors - old) * OBJECT_SIZE),
            2 => (0, old, old * OBJECT_SIZE),
            other => {
                let heap = if other == LARGE { HeapKind::Large } else { HeapKind::Pinned };
                let start = start_of(heap);
                let last = objects.alive().filter(|(_, object)| object.heap == heap).last();
                let size = last.map_or(0, |(number, _)| number * size_in(heap));
                return GenerationRange { generation, start, size, reserved: RESERVED };
            }
        };
        let start = object_id(from + 1, HeapKind::Generations).0;
        GenerationRange { generation, start, size: (to - from) * OBJECT_SIZE, reserved }
    }

    /// Returns the ranges of the generations in the order in which CLRs list them (recorded).
    pub(crate) fn ranges(&self, has_pinned: bool, objects: &Objects) -> Vec<GenerationRange> {
        let oldest = if has_pinned { PINNED } else { LARGE };
        (0..=oldest).rev().map(|generation| self.range(generation, objects)).collect()
    }

    /// Returns the range that an object is in.
    pub(crate) fn range_of(&self, object: ObjectId, objects: &Objects) -> Option<GenerationRange> {
        let (number, heap) = number_of(object)?;
        let generation = match heap {
            HeapKind::Generations => self.generation(number - 1),
            HeapKind::Large => LARGE,
            HeapKind::Pinned => PINNED,
        };
        Some(self.range(generation, objects))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clr_runtime::Object;

    /// Returns generation, first object and number of objects of each range.
    fn ranges(heap: &Heap) -> Vec<(u32, u64, u64)> {
        let number = |range: &GenerationRange| (range.start - OBJECTS) / OBJECT_SIZE;
        let all = heap.ranges(false, &Objects::default());
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
        let generation = |number| {
            let object = object_id(number, HeapKind::Generations);
            heap.range_of(object, &Objects::default()).map(|range| range.generation)
        };
        assert_eq!([1, 6, 7, 8].map(generation), [2, 2, 1, 0].map(Some));
    }

    #[test]
    fn ids_say_number_and_heap() {
        for heap in HEAPS {
            for number in [1, 2, 300] {
                assert_eq!(number_of(object_id(number, heap)), Some((number, heap)));
            }
            assert_eq!(object_id(0, heap), ObjectId(0));
            assert_eq!(number_of(ObjectId(object_id(1, heap).0 + 8)), None);
        }
        assert_eq!(
            [0, OBJECTS - 1, OBJECTS + 3 * RESERVED].map(ObjectId).map(number_of),
            [None; 3]
        );
    }

    #[test]
    fn large_and_pinned_objects_have_ranges_of_their_own() {
        let (heap, mut objects) = (Heap::default(), Objects::default());
        for kind in [HeapKind::Large, HeapKind::Pinned, HeapKind::Generations] {
            objects.make(Object { heap: kind, ..Object::default() });
        }
        let of = |number, kind| heap.range_of(object_id(number, kind), &objects).unwrap();
        let [large, pinned] = [of(1, HeapKind::Large), of(2, HeapKind::Pinned)];
        assert_eq!((large.generation, large.size), (LARGE, LARGE_SIZE));
        assert_eq!((pinned.generation, pinned.size), (PINNED, 2 * OBJECT_SIZE));
        assert_eq!(of(3, HeapKind::Generations).generation, 0);
        objects.collect(1);
        assert_eq!(heap.ranges(true, &objects)[1].size, 0);
    }

    #[test]
    fn heaps_do_not_overlap() {
        let heap = Heap::default();
        heap.begin_collection(9, 2);
        heap.end_collection();
        let mut all = heap.ranges(true, &Objects::default());
        assert_eq!(all.iter().map(|one| one.generation).collect::<Vec<_>>(), [4, 3, 2, 1, 0]);
        all.sort_by_key(|one| one.start);
        assert!(all.windows(2).all(|pair| pair[0].start + pair[0].reserved <= pair[1].start));
    }
}
