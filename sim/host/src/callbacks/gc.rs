//! Callbacks of objects, handles and the GC.
//!
//! The simulated heap is one range: all objects survive each GC, where they were, whether it is one that
//! compacts or not. Of the roots the handles are known.

use super::{HANDLE_SIZE, Raised, handle_id};
use crate::heap::object_id;
use crate::inner::Inner;
use crate::process::OBJECT_SIZE;
use crate::target::Target;
use clr_com::{Bool, GcHandleId, ObjectId};
use clr_runtime::OsThreadId;
use clr_runtime::profiling::CallbackKind as Kind;
use clr_walker::profiling::HResult;
use clr_world::{CallbackArguments, Collection};

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
        let object = object_id(arguments.object);
        if raised.kind == Kind::ObjectAllocated {
            let class = inner.object_class();
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
                Kind::MovedReferences => self.moved(inner, arguments.objects),
                Kind::SurvivingReferences => self.survived(inner, arguments.objects),
                Kind::RootReferences => self.roots(inner, arguments),
                Kind::ObjectReferences => {
                    // Objects of texts have no references.
                    let (class, none) = (inner.object_class(), core::ptr::null());
                    for number in 1..=arguments.objects {
                        let object = object_id(number);
                        call(&mut || to.ObjectReferences(object, class, 0, none));
                    }
                }
                Kind::ObjectsAllocatedByClass => {
                    let (class, count) = (inner.object_class(), arguments.allocated as u32);
                    call(&mut || to.ObjectsAllocatedByClass(1, &raw const class, &raw const count));
                }
                Kind::FinalizeableObjectQueued => {
                    let last = object_id(arguments.objects);
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
    fn moved(&self, inner: &Inner, objects: u64) {
        let Some(range) = Range::of(objects) else { return };
        let (start, size, short) = (range.start, range.size, range.short_size());
        let mut result = HResult::OK;
        // SAFETY: the profiler's object, which there is a reference to; the pointers are to locals, one each.
        unsafe {
            if let Some(to) = &self.fourth {
                result = inner.enter("MovedReferences2", || {
                    to.MovedReferences2(1, &raw const start, &raw const start, &raw const size)
                });
            }
            if !result.is_failure() {
                let to = &self.first;
                inner.enter("MovedReferences", || {
                    to.MovedReferences(1, &raw const start, &raw const start, &raw const short)
                });
            }
        }
    }

    /// Calls `SurvivingReferences2` and `SurvivingReferences` in the same way.
    fn survived(&self, inner: &Inner, objects: u64) {
        let Some(range) = Range::of(objects) else { return };
        let (start, size, short) = (range.start, range.size, range.short_size());
        let mut result = HResult::OK;
        // SAFETY: the profiler's object, which there is a reference to; the pointers are to locals, one each.
        unsafe {
            if let Some(to) = &self.fourth {
                result = inner.enter("SurvivingReferences2", || {
                    to.SurvivingReferences2(1, &raw const start, &raw const size)
                });
            }
            if let (Some(to), false) = (&self.second, result.is_failure()) {
                inner.enter("SurvivingReferences", || {
                    to.SurvivingReferences(1, &raw const start, &raw const short)
                });
            }
        }
    }

    /// Calls `RootReferences2` and `RootReferences` in the same way (`EEToProfInterfaceImpl::RootReferences2`). A GC always has roots
    /// (recorded on 3.1.23 to 11.0.0): on the stack, where the id is the FunctionID of the frame, the newest object is in the method that
    /// collects (assumed); the id of a handle's root is the handle (`ScanHandleForProfilerAndETW` of src/vm/gcenv.ee.cpp of CoreCLR 3.1.23).
    fn roots(&self, inner: &Inner, arguments: &CallbackArguments) {
        let newest =
            if arguments.objects == 0 { ObjectId(0) } else { object_id(arguments.objects) };
        let handles = &arguments.roots;
        let (mut objects, mut ids) = (vec![newest], vec![arguments.function.0]);
        objects.extend(handles.iter().map(|(_, object)| object_id(*object)));
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

/// The range of all objects.
#[derive(Clone, Copy)]
struct Range {
    start: ObjectId,
    /// Size in bytes.
    size: u64,
}

impl Range {
    /// Returns the range of the first N objects.
    fn of(objects: u64) -> Option<Self> {
        (objects > 0).then(|| Self { start: object_id(1), size: objects * OBJECT_SIZE })
    }

    /// Returns the size for callbacks with 32 bits, which get the greatest number instead of a greater one.
    fn short_size(self) -> u32 {
        u32::try_from(self.size).unwrap_or(u32::MAX)
    }
}
