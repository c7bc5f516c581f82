//! Addresses of static fields. No type of a text has fields, so no token names one.
//!
//! Results were recorded on 3.1.23, 8.0.34, 9.0.23, 10.0.15 and 11.0.0.

use super::Call;
use crate::out::Answer;
use clr_com::{AppDomainId, ClassId, ICorProfilerInfo2Methods, ICorProfilerInfo3Methods, Token};
use clr_runtime::Outcome;
use clr_runtime::metadata::APP_DOMAIN;
use clr_walker::profiling::{CallError, HResult, ThreadId};
use std::ffi::c_void;

impl Call<'_> {
    /// Returns the result for a field of a class that is not there.
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

    ICorProfilerInfo2Methods!(domain_static = GetAppDomainStaticAddress(self, class, _field, domain,
        address) {
        self.begin()?;
        self.no_field(class, domain.0 == APP_DOMAIN && !address.is_null())
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

    ICorProfilerInfo2Methods!(static_info = GetStaticFieldInfo(self, class, _field, info) {
        self.begin()?;
        self.no_field(class, !info.is_null())
    });
}
