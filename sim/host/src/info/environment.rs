//! Environment variables. Results were recorded on 3.1.23, 8.0.34, 9.0.23, 10.0.15 and 11.0.0.

use super::Call;
use crate::out::{Answer, count, put, put_all, read_given, read_wide, wide};
use crate::results;
use clr_com::ICorProfilerInfo11Methods;
use clr_walker::profiling::HResult;

impl Call<'_> {
    // The length is that of the value if there is room for it, else of the value with its final 0.
    ICorProfilerInfo11Methods!(get_environment_variable = GetEnvironmentVariable(self, name, room,
        len, value) {
        self.begin()?;
        if name.is_null() || room != 0 && value.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        if len.is_null() && value.is_null() {
            return Ok(HResult::OK);
        }
        // SAFETY: the profiler's text, which is not NULL.
        let found = self.session.environment.get(&unsafe { read_wide(name) });
        let Some(found) = found else {
            // SAFETY: the profiler's pointer.
            unsafe { put(len, 0) };
            return Ok(results::NO_ENVIRONMENT_VARIABLE);
        };
        let text = wide(&found);
        let fits = text.len() <= room as usize;
        // SAFETY: the profiler's pointers.
        unsafe {
            put(len, count(text.len() - usize::from(fits)));
            if fits {
                put_all(value, room, &text);
            }
        }
        let is_cut = !fits && !value.is_null();
        Ok(if is_cut { results::INSUFFICIENT_BUFFER } else { HResult::OK })
    });

    pub(super) unsafe fn set_environment_variable(
        &self,
        name: *const u16,
        value: *const u16,
    ) -> Answer {
        self.begin()?;
        if name.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        // SAFETY: the profiler's texts, of which the first is not NULL.
        let (name, value) = unsafe { (read_wide(name), read_given(value)) };
        if value.is_none() && self.session.environment.get(&name).is_none() {
            return Ok(results::NO_ENVIRONMENT_VARIABLE);
        }
        self.session.environment.set(name, value);
        Ok(HResult::OK)
    }
}
