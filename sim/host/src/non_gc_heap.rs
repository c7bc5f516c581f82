//! The heap of objects that no GC looks at: strings and other constants of the class library, since .NET 8.
//!
//! The objects were recorded in `JITCompilationStarted` of the first method of a program, on 8.0.34, 9.0.23, 10.0.15 and
//! 11.0.0. There a string that a method names is added when it is compiled; texts name none.

use clr_com::{NonGcRange, ObjectId};
use clr_runtime::generation::Generation;

/// The first object (VA; where it is is assumed).
const START: u64 = 0x7200_0000_0008;
/// Bytes that are reserved.
const RESERVED: u64 = 0x3F_FFF8;
/// Bytes to which objects are aligned.
const ALIGNMENT: u64 = 8;

/// The sizes of the objects in bytes. The second is a `System.RuntimeType`; one is an array, one or two are `System.Guid`s, the
/// others strings.
const SIZES_8: [u32; 26] = [
    24, 40, 150, 122, 42, 30, 24, 24, 26, 26, 24, 24, 24, 30, 24, 50, 38, 26, 34, 126, 32, 84, 32,
    30, 98, 48,
];
const SIZES_9: [u32; 33] = [
    24, 40, 94, 74, 150, 42, 30, 122, 110, 24, 24, 26, 26, 56, 52, 24, 24, 24, 24, 84, 38, 26, 34,
    126, 32, 32, 30, 32, 94, 24, 50, 98, 48,
];
const SIZES_10: [u32; 33] = [
    24, 40, 94, 74, 150, 42, 32, 30, 30, 122, 110, 24, 24, 26, 26, 56, 52, 24, 24, 24, 24, 84, 38,
    26, 34, 126, 32, 32, 94, 24, 50, 98, 48,
];
const SIZES_11: [u32; 69] = [
    24, 40, 76, 80, 68, 40, 24, 24, 26, 26, 26, 98, 26, 28, 58, 28, 56, 28, 24, 24, 24, 28, 38, 40,
    24, 24, 24, 28, 76, 38, 32, 38, 30, 36, 34, 34, 74, 150, 122, 110, 42, 30, 28, 24, 24, 26, 26,
    56, 52, 24, 24, 24, 24, 84, 38, 26, 34, 126, 32, 30, 32, 38, 24, 44, 118, 92, 50, 98, 48,
];

/// Returns the sizes of the objects on a runtime.
const fn sizes(generation: Generation) -> &'static [u32] {
    let family = generation.family();
    if family.is_core_since(11) {
        &SIZES_11
    } else if family.is_core_since(10) {
        &SIZES_10
    } else if family.is_core_since(9) {
        &SIZES_9
    } else if family.is_core_since(8) {
        &SIZES_8
    } else {
        &[]
    }
}

/// Returns the objects on a runtime with their sizes in bytes, in the order of their addresses.
pub(crate) fn objects(generation: Generation) -> impl Iterator<Item = (ObjectId, u32)> {
    let mut next = START;
    sizes(generation).iter().map(move |size| {
        let object = ObjectId(next);
        next += u64::from(*size).next_multiple_of(ALIGNMENT);
        (object, *size)
    })
}

/// Returns the size of an object in bytes, if it is one of this heap.
pub(crate) fn size_of(generation: Generation, object: ObjectId) -> Option<u32> {
    objects(generation).find(|(other, _)| *other == object).map(|(_, size)| size)
}

/// Returns the range of the heap.
pub(crate) fn range(generation: Generation) -> NonGcRange {
    let aligned = |size: &u32| u64::from(*size).next_multiple_of(ALIGNMENT);
    let size = sizes(generation).iter().map(aligned).sum();
    NonGcRange { start: START, size, reserved: RESERVED }
}

/// The sizes of the whole heaps as `GetNonGCHeapBounds` gave them.
#[test]
fn the_objects_fill_the_heaps_that_were_recorded() {
    let size = |generation| range(generation).size;
    let recorded =
        [Generation::Net8Unix, Generation::Net9Unix, Generation::Net10Unix, Generation::Net11Unix];
    assert_eq!(recorded.map(size), [0x510, 0x718, 0x718, 0xD00]);
    assert_eq!(size(Generation::CoreClr31Unix), 0);
}
