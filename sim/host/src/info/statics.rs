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
        if class.0 == 0 || !is_wanted {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        self.class_of(class.0)?;
        Ok(HResult::INVALID_ARGUMENT)
    }

    /// Returns true if the caller is a thread of the runtime.
    fn is_managed(&self) -> bool {
        self.runtime().object_of(self.session.caller()).is_some()
    }

    ICorProfilerInfo2Methods!(rva_static = GetRVAStaticAddress(self, class, _field, address) {
        self.begin()?;
        if class.0 != 0 && !address.is_null() && !self.is_managed() {
            return Ok(HResult::NOT_MANAGED_THREAD);
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
        let own = self.runtime().object_of(self.session.caller());
        let is_own = own.is_some() && (thread.0 == 0 || own == Some(thread));
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
            return if self.is_managed() {
                Ok(())
            } else {
                Err(HResult::NOT_MANAGED_THREAD.into())
            };
        }
        self.runtime().thread_of(thread, |_| ()).map_or_else(|| self.unknown(thread.0), Ok)
    }

    ICorProfilerInfo2Methods!(static_info = GetStaticFieldInfo(self, class, _field, info) {
        self.begin()?;
        self.no_field(class, !info.is_null())
    });
}
