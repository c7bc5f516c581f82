//! The heap: generations, references, objects that do not move.
//!
//! Results were recorded on 3.1.23, 8.0.34, 9.0.23, 10.0.15 and 11.0.0.

use super::Call;
use crate::heap::{number_of, object_id};
use crate::non_gc_heap;
use crate::out::{Answer, count, put, put_all};
use crate::results;
use crate::threads::Objects;
use clr_com::{
    Bool, GenerationRange, ICorProfilerInfo2Methods, ICorProfilerInfo10Methods,
    ICorProfilerInfo14Methods, ICorProfilerInfo15Methods, NonGcRange, ObjectId,
};
use clr_runtime::profiling::CallbackKind as Kind;
use clr_runtime::thread::{CallbackState, ThreadObject};
use clr_runtime::{Outcome, Suspension};
use clr_walker::profiling::{CallError, HResult};
use std::ffi::c_void;

/// Smallest size of a large object (bytes): the default of GCLOHThreshold.
const LARGE_OBJECT: u32 = 85_000;

/// An `ObjectReferenceCallback` of EnumerateObjectReferences: it returns 0 to end the enumeration.
type ReferenceCallback = unsafe extern "system" fn(ObjectId, *mut ObjectId, *mut c_void) -> Bool;

/// An `ObjectCallback` of EnumerateGCHeapObjects: it returns 0 to end the enumeration.
type ObjectCallback = unsafe extern "system" fn(ObjectId, *mut c_void) -> Bool;

impl Call<'_> {
    /// Fails unless the runtime has a table of generations: it has one for profilers of GCs (recorded).
    fn check_generations(&self) -> Result<(), CallError<Outcome>> {
        let process = self.runtime().process.get();
        let follows = process.requests(Kind::GarbageCollectionStarted);
        if follows && process.gc_initialized { Ok(()) } else { Err(HResult::FAIL.into()) }
    }

    ICorProfilerInfo2Methods!(generation_bounds = GetGenerationBounds(self, room, len, ranges) {
        self.begin()?;
        self.check_generations()?;
        // The runtimes since .NET 8 check what CoreCLR 3.1 does not.
        if room > 0 && ranges.is_null() {
            let checks = self.session.generation.family().is_core_since(8);
            return if checks { Ok(HResult::INVALID_ARGUMENT) } else { self.null("ranges") };
        }
        let has_pinned = self.session.generation.family().is_core_since(5);
        let all = self.session.heap.ranges(has_pinned, &self.runtime().objects.borrow());
        // SAFETY: the profiler's pointers.
        unsafe {
            put_all(ranges, room, &all);
            put(len, count(all.len()));
        }
        Ok(HResult::OK)
    });

    ICorProfilerInfo2Methods!(object_generation = GetObjectGeneration(self, object, range) {
        self.begin()?;
        // The runtimes since .NET 8 ask the GC, earlier ones look into a table for profilers of GCs.
        let asks_gc = self.session.generation.family().is_core_since(8);
        if !asks_gc {
            self.check_generations()?;
        }
        let is_object = self.session.class_of_object(object).is_some();
        let find = || self.session.heap.range_of(object, &self.runtime().objects.borrow());
        let Some(found) = is_object.then(find).flatten() else {
            return Ok(if asks_gc { results::NOT_GC_OBJECT } else { HResult::FAIL });
        };
        if range.is_null() {
            return self.null("range");
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(range, found) };
        Ok(HResult::OK)
    });

    ICorProfilerInfo10Methods!(references = EnumerateObjectReferences(self, object, callback, data) {
        self.begin()?;
        if callback.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        self.check_object(object)?;
        if self.is_constant(object) {
            return self.not_simulated();
        }
        let found = number_of(object);
        let found = found.and_then(|(number, _)| self.runtime().objects.borrow().get(number));
        let mut referred = self.session.object_id(found.unwrap_or_default().refers_to);
        if referred.0 == 0 {
            return Ok(HResult::FALSE);
        }
        // SAFETY: the profiler's callback has this signature.
        let callback = unsafe { std::mem::transmute::<*const c_void, ReferenceCallback>(callback) };
        self.session.enter("ObjectReferenceCallback", || {
            // SAFETY: as above; the data are the profiler's own.
            unsafe { callback(object, &raw mut referred, data) };
            HResult::OK
        });
        Ok(HResult::OK)
    });

    ICorProfilerInfo10Methods!(is_frozen = IsFrozenObject(self, object, frozen) {
        self.begin()?;
        if object.0 != 0 {
            self.check_object(object)?;
        }
        if frozen.is_null() {
            return self.null("pbFrozen");
        }
        // An address outside of the heap counts as frozen, as 0 is.
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(frozen, Bool::from(object.0 == 0 || self.is_constant(object))) };
        Ok(HResult::OK)
    });

    pub(super) unsafe fn large_object_threshold(&self, threshold: *mut u32) -> Answer {
        self.begin()?;
        if threshold.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(threshold, LARGE_OBJECT) };
        Ok(HResult::OK)
    }

    ICorProfilerInfo14Methods!(non_gc_bounds = GetNonGCHeapBounds(self, room, len, ranges) {
        self.begin()?;
        if room > 0 && ranges.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        // The heap is made after the profiler is loaded.
        let started = self.runtime().process.get().gc_initialized;
        let heap = started.then(|| non_gc_heap::range(self.session.generation));
        let all = heap.as_slice();
        // SAFETY: the profiler's pointers.
        unsafe {
            put_all(ranges, room, all);
            put(len, count(all.len()));
        }
        Ok(HResult::OK)
    });

    pub(super) unsafe fn non_gc_objects(&self, enumerator: *mut *mut c_void) -> Answer {
        self.begin()?;
        if enumerator.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let started = self.runtime().process.get().gc_initialized;
        let all = non_gc_heap::objects(self.session.generation).filter(|_| started);
        let all = all.map(|(object, _)| object).collect();
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(enumerator, Objects::make(self.session, all)) };
        Ok(HResult::OK)
    }

    ICorProfilerInfo15Methods!(heap_objects = EnumerateGCHeapObjects(self, callback, data) {
        self.begin_enumeration()?;
        if callback.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        if !self.runtime().process.get().started {
            return Ok(HResult::RUNTIME_UNINITIALIZED);
        }
        // SAFETY: the profiler's callback has this signature.
        let callback = unsafe { std::mem::transmute::<*const c_void, ObjectCallback>(callback) };
        let alive: Vec<_> = self.session.alive();
        let before = self.let_inspect((true, Kind::ObjectReferences.state()));
        for (number, found) in alive {
            let mut goes_on = 0;
            self.session.enter("ObjectCallback", || {
                // SAFETY: as above; the data are the profiler's own.
                goes_on = unsafe { callback(object_id(number, found.heap), data) };
                HResult::OK
            });
            if goes_on == 0 {
                break;
            }
        }
        self.let_inspect(before);
        Ok(HResult::OK)
    });

    /// Changes the mode of the calling thread and the state by which callers of methods are checked, if the runtime knows the
    /// thread; returns those from before. The objects of the heap may be looked at as they are listed, as in callbacks of a GC
    /// (recorded on 10.0.15 and 11.0.0 for GetClassFromObject, GetClassIDInfo2 and GetModuleMetaData).
    fn let_inspect(&self, (is_cooperative, state): (bool, CallbackState)) -> (bool, CallbackState) {
        let Some(own) = self.own_thread() else { return Default::default() };
        let mut state_before = CallbackState::default();
        self.runtime().change_thread(self.session.caller(), |thread| {
            state_before = std::mem::replace(&mut thread.callback_state, state);
        });
        let mut memory = self.runtime().memory.borrow_mut();
        let was_cooperative = ThreadObject(own).is_cooperative(&*memory).unwrap_or_default();
        // A Thread object is always mapped.
        let _ = ThreadObject(own).set_cooperative(&mut *memory, is_cooperative);
        (was_cooperative, state_before)
    }

    /// Makes the checks of EnumerateGCHeapObjects. A CLR suspends the runtime for it, unless the profiler has; here nothing
    /// runs meanwhile. Recorded on 10.0.15 and 11.0.0: it is answered outside of callbacks, and refused in those of a GC.
    fn begin_enumeration(&self) -> Result<(), CallError<Outcome>> {
        self.begin()?;
        self.caller().outside_callbacks_without_triggers()?;
        let process = self.runtime().process.get();
        if process.suspension != Suspension::None && !process.suspended_by_profiler {
            return Err(HResult::SUSPENSION_IN_PROGRESS.into());
        }
        Ok(())
    }
}
