//! Objects: their classes and sizes.

use super::Call;
use crate::heap::{number_of, size_in};
use crate::non_gc_heap;
use crate::out::{Answer, put};
use clr_com::{ClassId, ICorProfilerInfoMethods, ObjectId};
use clr_runtime::Outcome;
use clr_runtime::thread::ThreadObject;
use clr_walker::profiling::{CallError, HResult};

impl Call<'_> {
    /// Checks that an object may be looked at: by a thread of the runtime in cooperative mode
    /// (`AllowObjectInspection`; in a GC any thread may, which is not simulated).
    pub(super) fn look_at(&self, object: ObjectId) -> Result<(), CallError<Outcome>> {
        if object.0 == 0 {
            return Err(HResult::INVALID_ARGUMENT.into());
        }
        let Some(own) = self.own_thread() else {
            return Err(HResult::NOT_MANAGED_THREAD.into());
        };
        let memory = self.runtime().memory.borrow();
        if !ThreadObject(own).is_cooperative(&*memory).unwrap_or_default() {
            return Err(HResult::UNSUPPORTED_CALL_SEQUENCE.into());
        }
        drop(memory);
        self.check_object(object)
    }

    /// Refuses an object that is in no heap.
    pub(super) fn check_object(&self, object: ObjectId) -> Result<(), CallError<Outcome>> {
        let exists = self.session.class_of_object(object).is_some() || self.is_constant(object);
        if exists { Ok(()) } else { self.unknown(object.0) }
    }

    /// Returns true for an object of the heap that no GC looks at.
    pub(super) fn is_constant(&self, object: ObjectId) -> bool {
        non_gc_heap::size_of(self.session.generation, object).is_some()
    }

    ICorProfilerInfoMethods!(get_class_from_object = GetClassFromObject(self, object, class) {
        self.begin()?;
        self.look_at(object)?;
        // The core library of a text has none of their classes.
        if self.is_constant(object) {
            return self.not_simulated();
        }
        // SAFETY: the profiler's pointer.
        unsafe { put(class, self.session.class_of_object(object).unwrap_or(ClassId(0))) };
        Ok(HResult::OK)
    });

    /// Answers GetObjectSize and GetObjectSize2.
    pub(super) unsafe fn get_object_size<T: From<u32>>(
        &self,
        object: ObjectId,
        size: *mut T,
    ) -> Answer {
        self.begin()?;
        self.look_at(object)?;
        let constant = non_gc_heap::size_of(self.session.generation, object);
        let of_object = number_of(object).map_or(0, |(_, heap)| size_in(heap));
        // Objects of texts have the size of one without fields.
        if let Some(class) = self.session.class_of_object(object)
            && u64::from(self.layout_of(class)?.size) > of_object
        {
            return self.not_simulated();
        }
        // SAFETY: the profiler's pointer.
        unsafe { put(size, T::from(constant.unwrap_or(of_object as u32))) };
        Ok(HResult::OK)
    }
}
