//! Layouts of objects: classes, strings, boxes and arrays.
//!
//! Results were recorded on 3.1.23, 8.0.34, 9.0.23, 10.0.15 and 11.0.0.

use super::Call;
use crate::out::{Answer, count, put, put_all};
use clr_com::{ClassId, FieldOffset, ICorProfilerInfo2Methods, ICorProfilerInfoMethods, ObjectId};
use clr_walker::profiling::HResult;

/// Offset of the capacity in a string (bytes); the length and the characters follow (`StringObject` of vm/object.h of the
/// shared source of CLR 2.0).
const STRING_CAPACITY: u32 = 8;

impl Call<'_> {
    ICorProfilerInfoMethods!(is_array_class = IsArrayClass(self, class, _element, base_class, _rank) {
        self.begin()?;
        self.class_of(class.0)?;
        // The other results are left as they are.
        // SAFETY: the profiler's pointer.
        unsafe { put(base_class, ClassId(0)) };
        Ok(HResult::FALSE)
    });

    ICorProfilerInfo2Methods!(class_layout = GetClassLayout(self, class, fields, room, len, size) {
        self.begin()?;
        if len.is_null() || room != 0 && fields.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let layout = self.layout_of(class)?;
        let all = count(layout.fields.len());
        // SAFETY: the profiler's pointers, of which the first has this room.
        unsafe {
            put_all(fields, room, &layout.fields);
            put(len, if room == 0 { all } else { all.min(room) });
            put(size, layout.size);
        }
        Ok(HResult::OK)
    });

    ICorProfilerInfo2Methods!(box_layout = GetBoxClassLayout(self, class, offset) {
        self.begin()?;
        if offset.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        self.class_of(class.0)?;
        // No type of a text is a value type.
        Ok(HResult::INVALID_ARGUMENT)
    });

    pub(super) unsafe fn string_layout(
        &self,
        capacity: *mut u32,
        length: *mut u32,
        characters: *mut u32,
    ) -> Answer {
        self.begin()?;
        // SAFETY: the profiler's pointers.
        unsafe {
            put(capacity, STRING_CAPACITY);
            // Strings have had no capacity since .NET Framework 4: the length stands for it.
            let shift = if self.session.generation.profiler_info() < 3 { 4 } else { 0 };
            put(length, STRING_CAPACITY + shift);
            put(characters, STRING_CAPACITY + 4 + shift);
        }
        Ok(HResult::OK)
    }

    pub(super) unsafe fn string_layout_2(&self, length: *mut u32, characters: *mut u32) -> Answer {
        // SAFETY: the profiler's pointers.
        unsafe { self.string_layout(std::ptr::null_mut(), length, characters) }
    }

    ICorProfilerInfo2Methods!(array_info = GetArrayObjectInfo(self, object, _len, sizes, lower_bounds,
        data) {
        self.begin()?;
        if sizes.is_null() || lower_bounds.is_null() || data.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        self.look_at(object)?;
        if self.is_constant(object) {
            return self.not_simulated();
        }
        // No object of a text is an array.
        Ok(HResult::INVALID_ARGUMENT)
    });
}
