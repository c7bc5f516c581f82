//! Modules beyond their names: AppDomains, symbols in memory, changed metadata. No module of a text is in memory alone.

use super::Call;
use crate::out::{Answer, count, put, put_all};
use clr_com::{AppDomainId, ICorProfilerInfo3Methods, ICorProfilerInfo7Methods, ModuleId};
use clr_runtime::metadata::APP_DOMAIN;
use clr_walker::profiling::HResult;

impl Call<'_> {
    ICorProfilerInfo3Methods!(app_domains_of = GetAppDomainsContainingModule(self, module, room, len,
        domains) {
        self.begin()?;
        if room != 0 && domains.is_null() || len.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        self.module_of(module.0)?;
        // Before the load has finished it is in none; a CLR before .NET 9 ends with an access violation then.
        let is_loaded = self.caller().is_loaded(module.0);
        let found: &[_] = if is_loaded { &[AppDomainId(APP_DOMAIN)] } else { &[] };
        // SAFETY: the profiler's pointers.
        unsafe {
            put_all(domains, room, found);
            put(len, count(found.len()));
        }
        Ok(HResult::OK)
    });

    pub(super) fn apply_metadata(&self, module: ModuleId) -> Answer {
        self.begin()?;
        self.module_of(module.0)?;
        Ok(HResult::OK)
    }

    pub(super) unsafe fn symbols_length(&self, module: ModuleId, len: *mut u32) -> Answer {
        self.begin()?;
        if len.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(len, 0) };
        self.module_of(module.0)?;
        Ok(HResult::OK)
    }

    ICorProfilerInfo7Methods!(read_symbols = ReadInMemorySymbols(self, module, _offset, bytes, _room,
        len) {
        self.begin()?;
        if bytes.is_null() || len.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(len, 0) };
        self.module_of(module.0)?;
        // There are none to read.
        Ok(HResult::INVALID_ARGUMENT)
    });
}
