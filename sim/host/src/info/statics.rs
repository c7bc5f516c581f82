//! Addresses of static fields. None of a text has an RVA, or is a thread's.
//!
//! Results were recorded on 3.1.23, 8.0.34, 9.0.23, 10.0.15 and 11.0.0; those of fields that are there on 8.0.34, 10.0.15 and 11.0.0.

use super::Call;
use crate::out::{Answer, put};
use clr_com::{AppDomainId, ClassId, ICorProfilerInfo2Methods, ICorProfilerInfo3Methods, Token};
use clr_runtime::Outcome;
use clr_runtime::metadata::APP_DOMAIN;
use clr_walker::profiling::{CallError, HResult, ThreadId};
use std::ffi::c_void;

/// Bytes of a static field at most.
const FIELD_SIZE: usize = 8;
/// `COR_PRF_FIELD_NOT_A_STATIC`, `COR_PRF_FIELD_APP_DOMAIN_STATIC`.
const NOT_STATIC: u32 = 0;
const APP_DOMAIN_STATIC: u32 = 1;

impl Call<'_> {
    /// Returns the result for a field of a class that is not there, or is another one.
    fn no_field(&self, class: ClassId, is_wanted: bool) -> Answer {
        if is_wanted {
            self.class_of(class.0)?;
        }
        Ok(HResult::INVALID_ARGUMENT)
    }

    ICorProfilerInfo2Methods!(rva_static = GetRVAStaticAddress(self, class, _field, address) {
        self.begin()?;
        if class.0 != 0 && !address.is_null() {
            self.check_managed()?;
        }
        self.no_field(class, !address.is_null())
    });

    // The fields hold zeros: no code of a text writes to them.
    ICorProfilerInfo2Methods!(domain_static = GetAppDomainStaticAddress(self, class, field, domain,
        address) {
        self.begin()?;
        if domain.0 != APP_DOMAIN || address.is_null() || !self.is_static(class, field)?.unwrap_or_default() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        if self.has_static_constructor(class) {
            return self.not_simulated();
        }
        let known = self.session.statics.borrow().get(&(class.0, field)).copied();
        let place = known.unwrap_or_else(|| self.session.allocate(FIELD_SIZE) as usize);
        self.session.statics.borrow_mut().insert((class.0, field), place);
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(address, place as *mut c_void) };
        Ok(HResult::OK)
    });

    ICorProfilerInfo2Methods!(thread_static = GetThreadStaticAddress(self, class, _field, thread,
        address) {
        self.begin()?;
        let is_own = self.own_thread().is_some_and(|own| thread.0 == 0 || own == thread);
        self.no_field(class, is_own && !address.is_null())
    });

    ICorProfilerInfo3Methods!(thread_static_2 = GetThreadStaticAddress2(self, class, _field, domain,
        thread, address) {
        self.begin()?;
        self.check_static_thread(thread)?;
        self.no_field(class, domain.0 == APP_DOMAIN && !address.is_null())
    });

    /// Refuses a thread whose fields nobody has: 0 stands for the caller.
    fn check_static_thread(&self, thread: ThreadId) -> Result<(), CallError<Outcome>> {
        if thread.0 == 0 {
            return self.check_managed();
        }
        self.known_thread(thread)
    }

    ICorProfilerInfo2Methods!(static_info = GetStaticFieldInfo(self, class, field, info) {
        self.begin()?;
        if info.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let Some(is_static) = self.is_static(class, field)? else {
            return Ok(HResult::INVALID_ARGUMENT);
        };
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(info, if is_static { APP_DOMAIN_STATIC } else { NOT_STATIC }) };
        Ok(HResult::OK)
    });
}
