//! Handles that the profiler makes. With MONITOR_GC the profiler hears of its own, in the call (recorded on 10.0.15).

use super::Call;
use crate::heap::{Handle, number_of};
use crate::out::{Answer, put};
use clr_com::{GcHandleId, ICorProfilerInfo13Methods, ObjectHandleId, ObjectId};
use clr_runtime::profiling::CallbackKind as Kind;
use clr_walker::profiling::HResult;

/// Id of the first handle of a profiler (assumed: nothing is there), and the distance to the next one.
const HANDLES: u64 = 0x7110_0000_1000;
const HANDLE_SIZE: u64 = 8;
/// `COR_PRF_HANDLE_TYPE_WEAK`, `COR_PRF_HANDLE_TYPE_STRONG`, `COR_PRF_HANDLE_TYPE_PINNED`.
const KINDS: std::ops::RangeInclusive<u32> = 1..=3;
const WEAK: u32 = 1;

impl Call<'_> {
    ICorProfilerInfo13Methods!(create_handle = CreateHandle(self, object, kind, handle) {
        self.begin()?;
        if object.0 == 0 || handle.is_null() || !KINDS.contains(&kind) {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        self.check_object(object)?;
        if let Some((number, _)) = number_of(object).filter(|_| kind != WEAK) {
            self.runtime().objects.borrow_mut().hold(number);
        }
        let id = {
            let mut handles = self.session.handles.borrow_mut();
            let last = handles.last_key_value();
            let id = last.map_or(HANDLES, |(last, _)| last + HANDLE_SIZE);
            handles.insert(id, Handle { object: object.0, is_strong: kind != WEAK });
            id
        };
        self.raise(Kind::HandleCreated, id, object);
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(handle, ObjectHandleId(id)) };
        Ok(HResult::OK)
    });

    ICorProfilerInfo13Methods!(destroy_handle = DestroyHandle(self, handle) {
        self.begin()?;
        if handle.0 == 0 {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let removed = self.session.handles.borrow_mut().remove(&handle.0);
        let Some(removed) = removed else { return self.unknown(handle.0) };
        let held = number_of(ObjectId(removed.object)).filter(|_| removed.is_strong);
        if let Some((number, _)) = held {
            self.runtime().objects.borrow_mut().let_go(number);
        }
        self.raise(Kind::HandleDestroyed, handle.0, ObjectId(0));
        Ok(HResult::OK)
    });

    ICorProfilerInfo13Methods!(object_of_handle = GetObjectIDFromHandle(self, handle, object) {
        self.begin()?;
        if handle.0 == 0 || object.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let found = self.session.handles.borrow().get(&handle.0).copied();
        let Some(found) = found else { return self.unknown(handle.0) };
        // A weak handle of an object that was collected has none (recorded on 8.0.34, 10.0.15 and 11.0.0).
        let is_alive = self.session.class_of_object(ObjectId(found.object)).is_some();
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(object, ObjectId(if is_alive { found.object } else { 0 })) };
        Ok(HResult::OK)
    });

    /// Makes the callback about a handle, if the profiler has asked for it.
    fn raise(&self, kind: Kind, handle: u64, object: ObjectId) {
        if self.runtime().process.get().requests(kind) && !self.session.is_detaching() {
            self.session.call_back((kind, kind.name()), |target| {
                target.handle(kind, GcHandleId(handle), object)
            });
        }
    }
}
