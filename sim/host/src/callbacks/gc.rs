//! Callbacks of objects, handles and the GC.
//!
//! Objects stay where they were, whether a GC is one that compacts or not. Of the roots the handles are known.

use super::{HANDLE_SIZE, Raised, handle_id};
use crate::heap::{object_id, size_in};
use crate::inner::Inner;
use crate::target::Target;
use clr_com::{Bool, ClassId, GcHandleId, ObjectId};
use clr_runtime::profiling::CallbackKind as Kind;
use clr_runtime::{Object, OsThreadId};
use clr_walker::profiling::HResult;
use clr_world::{CallbackArguments, Collection};
use core::ptr::null;

/// Numbers of generations: 0 to 2 and the large-object heap; since .NET 5 the heap of pinned objects, too
/// (`GarbageCollectionStartedCallback` of src/vm/proftoeeinterfaceimpl.cpp of CoreCLR 3.1.23, and of
/// dotnet/runtime, commit 0049981b).
const GENERATIONS: u8 = 4;
const GENERATIONS_SINCE_5: u8 = 5;
/// `COR_PRF_GC_OTHER`, `COR_PRF_GC_INDUCED`.
const GC_OTHER: u32 = 0;
const GC_INDUCED: u32 = 1;
/// `COR_PRF_GC_ROOT_STACK`; `COR_PRF_GC_ROOT_HANDLE`, and no flags: the handle is strong.
const ROOT_STACK: u32 = 1;
const ROOT_HANDLE: u32 = 3;
const NO_FLAGS: u32 = 0;

/// Id of the first handle of threads, which nothing is at (assumed).
const THREAD_HANDLES: u64 = 0x7200_0000_1000;

impl Target {
    /// Makes a callback of objects, handles or the GC.
    pub(super) fn raise_of_gc(&self, inner: &Inner, raised: &Raised<'_>) -> bool {
        let (to, arguments) = (&self.first, raised.arguments);
        let object = inner.object_id(arguments.object);
        if raised.kind == Kind::ObjectAllocated {
            let class = inner.class_made(arguments.object);
            // SAFETY: the profiler's object, which there is a reference to.
            raised.call(inner, &mut || unsafe { to.ObjectAllocated(object, class) });
            return true;
        }
        let Some(second) = &self.second else { return false };
        let call = |act: &mut dyn FnMut() -> HResult| raised.call(inner, act);
        // SAFETY: as above; pointers are to locals.
        unsafe {
            match raised.kind {
                kind @ (Kind::HandleCreated | Kind::HandleDestroyed) => {
                    call(&mut || self.handle(kind, handle_id(arguments.handle), object));
                }
                Kind::GarbageCollectionStarted => {
                    // A GC that the program does not ask for collects the youngest generation (assumed).
                    let since_5 = inner.generation.family().is_core_since(5);
                    let count = if since_5 { GENERATIONS_SINCE_5 } else { GENERATIONS };
                    let collection =
                        if arguments.induced { arguments.collection } else { Collection::Youngest };
                    let collected = collection.generations(count.into());
                    let oldest = collected.iter().take(3).filter(|one| **one).count();
                    inner.heap.begin_collection(arguments.objects, oldest.saturating_sub(1));
                    let collected: Vec<_> = collected.into_iter().map(Bool::from).collect();
                    let is_induced = arguments.induced
                        && (collection != Collection::Compacting
                            || inner.generation.compacts_as_induced());
                    let reason = if is_induced { GC_INDUCED } else { GC_OTHER };
                    call(&mut || {
                        second.GarbageCollectionStarted(count.into(), collected.as_ptr(), reason)
                    });
                }
                Kind::GarbageCollectionFinished => {
                    inner.heap.end_collection();
                    call(&mut || second.GarbageCollectionFinished());
                }
                Kind::MovedReferences => self.moved(inner, &Ranges::of(&inner.alive())),
                Kind::SurvivingReferences => self.survived(inner, &Ranges::of(&inner.alive())),
                Kind::RootReferences => self.roots(inner, arguments),
                Kind::ObjectReferences => {
                    for (number, found) in inner.alive() {
                        let class = inner.class_or_object(found.class);
                        let object = object_id(number, found.heap);
                        let reference = inner.object_id(found.refers_to);
                        let count = u32::from(found.refers_to != 0);
                        let references = if count == 0 { null() } else { &raw const reference };
                        call(&mut || to.ObjectReferences(object, class, count, references));
                    }
                }
                Kind::ObjectsAllocatedByClass => {
                    let (classes, counts) = allocated_by_class(inner, arguments);
                    let (len, classes) = (classes.len() as u32, classes.as_ptr());
                    call(&mut || to.ObjectsAllocatedByClass(len, classes, counts.as_ptr()));
                }
                Kind::FinalizeableObjectQueued => {
                    let last = inner.object_id(arguments.objects);
                    call(&mut || second.FinalizeableObjectQueued(0, last));
                }
                _ => return false,
            }
        }
        true
    }

    /// Makes the callbacks of the two handles that a thread of the runtime has, before it is reported: nothing is in them yet (recorded on
    /// 3.1.23, 8.0.34, 9.0.23, 10.0.15 and 11.0.0). That they are never destroyed is assumed.
    pub(crate) fn thread_handles(&self, inner: &Inner, os: OsThreadId) {
        let Some(stage) = inner.stage() else { return };
        if !stage.runtime().process.get().requests(Kind::HandleCreated) {
            return;
        }
        let first = THREAD_HANDLES + 2 * HANDLE_SIZE * u64::from(os.0);
        for handle in [first, first + HANDLE_SIZE].map(GcHandleId) {
            inner.enter(Kind::HandleCreated.name(), || {
                self.handle(Kind::HandleCreated, handle, ObjectId(0))
            });
        }
    }

    /// Calls `HandleCreated` or `HandleDestroyed`.
    pub(crate) fn handle(&self, kind: Kind, handle: GcHandleId, object: ObjectId) -> HResult {
        let Some(to) = &self.second else { return HResult::OK };
        // SAFETY: the profiler's object, which there is a reference to.
        unsafe {
            match kind {
                Kind::HandleCreated => to.HandleCreated(handle, object),
                _ => to.HandleDestroyed(handle),
            }
        }
    }

    /// Calls `MovedReferences2` and `MovedReferences`: the second not if the first fails, and none without
    /// objects (`EEToProfInterfaceImpl::MovedReferences`, `EndMovedReferences`).
    fn moved(&self, inner: &Inner, ranges: &Ranges) {
        let Ranges { len, starts, sizes, short } = ranges;
        let (len, starts, sizes, short) = (*len, starts.as_ptr(), sizes.as_ptr(), short.as_ptr());
        if len == 0 {
            return;
        }
        let mut result = HResult::OK;
        // SAFETY: the profiler's object, which there is a reference to; the pointers are to this number of values.
        unsafe {
            if let Some(to) = &self.fourth {
                result = inner
                    .enter("MovedReferences2", || to.MovedReferences2(len, starts, starts, sizes));
            }
            if !result.is_failure() {
                let to = &self.first;
                inner.enter("MovedReferences", || to.MovedReferences(len, starts, starts, short));
            }
        }
    }

    /// Calls `SurvivingReferences2` and `SurvivingReferences` in the same way.
    fn survived(&self, inner: &Inner, ranges: &Ranges) {
        let Ranges { len, starts, sizes, short } = ranges;
        let (len, starts, sizes, short) = (*len, starts.as_ptr(), sizes.as_ptr(), short.as_ptr());
        if len == 0 {
            return;
        }
        let mut result = HResult::OK;
        // SAFETY: the profiler's object, which there is a reference to; the pointers are to this number of values.
        unsafe {
            if let Some(to) = &self.fourth {
                result = inner
                    .enter("SurvivingReferences2", || to.SurvivingReferences2(len, starts, sizes));
            }
            if let (Some(to), false) = (&self.second, result.is_failure()) {
                inner.enter("SurvivingReferences", || to.SurvivingReferences(len, starts, short));
            }
        }
    }

    /// Calls `RootReferences2` and `RootReferences` in the same way (`EEToProfInterfaceImpl::RootReferences2`). A GC always has roots
    /// (recorded on 3.1.23 to 11.0.0): on the stack, where the id is the FunctionID of the frame, the newest object is in the method that
    /// collects (assumed); the id of a handle's root is the handle (`ScanHandleForProfilerAndETW` of src/vm/gcenv.ee.cpp of CoreCLR 3.1.23).
    fn roots(&self, inner: &Inner, arguments: &CallbackArguments) {
        let newest = inner.object_id(arguments.objects);
        let handles = &arguments.roots;
        let (mut objects, mut ids) = (vec![newest], vec![arguments.function.0]);
        objects.extend(handles.iter().map(|(_, object)| inner.object_id(*object)));
        ids.extend(handles.iter().map(|(handle, _)| handle_id(*handle).0));
        let mut kinds = vec![ROOT_HANDLE; objects.len()];
        kinds.iter_mut().take(1).for_each(|kind| *kind = ROOT_STACK);
        let flags = vec![NO_FLAGS; objects.len()];
        let len = objects.len() as u32;
        let mut result = HResult::OK;
        // SAFETY: the profiler's object, which there is a reference to; each pointer is to this number of values.
        unsafe {
            if let Some(to) = &self.second {
                result = inner.enter("RootReferences2", || {
                    to.RootReferences2(
                        len,
                        objects.as_ptr(),
                        kinds.as_ptr(),
                        flags.as_ptr(),
                        ids.as_ptr(),
                    )
                });
            }
            if !result.is_failure() {
                let to = &self.first;
                inner.enter("RootReferences", || to.RootReferences(len, objects.as_ptr()));
            }
        }
    }
}

/// Returns the classes of the objects that were made since the last GC, in the order of their first ones, and the number of
/// objects of each.
fn allocated_by_class(inner: &Inner, arguments: &CallbackArguments) -> (Vec<ClassId>, Vec<u32>) {
    let (mut classes, mut counts) = (Vec::new(), Vec::new());
    for number in arguments.objects - arguments.allocated + 1..=arguments.objects {
        let class = inner.class_made(number);
        let known = classes.iter().zip(&mut counts).find(|(known, _)| **known == class);
        if let Some((_, count)) = known {
            *count += 1;
        } else {
            classes.push(class);
            counts.push(1);
        }
    }
    (classes, counts)
}

/// The ranges of objects that lie side by side.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ranges {
    len: u32,
    starts: Vec<ObjectId>,
    /// Sizes in bytes.
    sizes: Vec<u64>,
    /// The same for callbacks with 32 bits, which get the greatest number instead of a greater one.
    short: Vec<u32>,
}

impl Ranges {
    /// Returns the ranges of objects.
    fn of(objects: &[(u64, Object)]) -> Self {
        let place = |(number, object): &(u64, Object)| {
            (object_id(*number, object.heap), size_in(object.heap))
        };
        let mut places: Vec<_> = objects.iter().map(place).collect();
        places.sort_unstable_by_key(|(start, _)| start.0);
        let mut ranges = Self::default();
        for side_by_side in places.chunk_by(|(start, size), (next, _)| start.0 + size == next.0) {
            let size = side_by_side.iter().map(|(_, size)| size).sum();
            ranges.len += 1;
            ranges.starts.extend(side_by_side.first().map(|(start, _)| *start));
            ranges.sizes.push(size);
            ranges.short.push(u32::try_from(size).unwrap_or(u32::MAX));
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::OBJECT_SIZE;
    use clr_runtime::HeapKind;

    #[test]
    fn objects_that_have_died_leave_gaps() {
        let in_heap = |heap| move |number| (number, Object { heap, ..Object::default() });
        let mut objects = [1, 2, 4, 7, 8, 9].map(in_heap(HeapKind::Generations)).to_vec();
        objects.extend([3, 5].map(in_heap(HeapKind::Pinned)));
        let ranges = Ranges::of(&objects);
        let mut starts = [1, 4, 7].map(|one| object_id(one, HeapKind::Generations)).to_vec();
        starts.extend([3, 5].map(|number| object_id(number, HeapKind::Pinned)));
        assert_eq!((ranges.len, ranges.starts), (5, starts));
        assert_eq!(ranges.sizes, [2, 1, 3, 1, 1].map(|count| count * OBJECT_SIZE));
        assert_eq!(ranges.short, [48, 24, 72, 24, 24]);
        assert_eq!(Ranges::of(&[]), Ranges::default());
    }
}
