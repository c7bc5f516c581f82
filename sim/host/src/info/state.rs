//! Events, threads, the suspension of the runtime.

use super::Call;
use crate::journal::Entry;
use crate::out::{Answer, count, put, put_all, put_cut, wide};
use crate::report::Report;
use crate::results;
use crate::threads::{Modules, Threads};
use clr_com::{
    AppDomainId, ClauseInfo, ContextId, ICorProfilerInfo2Methods, ICorProfilerInfo3Methods,
    ModuleId,
};
use clr_runtime::metadata::APP_DOMAIN;
use clr_runtime::{HighEvents, Lock, Outcome, ProfilerStatus};
use clr_walker::profiling::{CallError, EventMask, HResult, ProfilerInfo as _, ThreadId};
use std::ffi::c_void;

/// `COR_PRF_HIGH_MONITOR_IMMUTABLE`: COR_PRF_HIGH_DISABLE_TIERED_COMPILATION (corprof.idl).
pub(crate) const HIGH_IMMUTABLE: u32 = 0x8;
/// The events that a profiler may have that is loaded for notifications only, low and high ones: by a run of each bit on 8.0.34,
/// 9.0.23, 10.0.15 and 11.0.0.
const NOTIFICATIONS: u32 = 0xB1E3_2B7F;
const HIGH_NOTIFICATIONS: u32 = 0xFE;
/// `COR_PRF_HIGH_ALLOWABLE_AFTER_ATTACH` (corprof.idl of 3.1), and of .NET 8 and later: by a run of each bit on 3.1.23, 8.0.34,
/// 9.0.23, 10.0.15 and 11.0.0.
const HIGH_ATTACHABLE_3_1: u32 = 0x76;
const HIGH_ATTACHABLE: u32 = 0xF6;
/// `COR_PRF_DESKTOP_CLR`, `COR_PRF_CORE_CLR`.
const RUNTIME_TYPES: [u32; 2] = [1, 2];

impl Call<'_> {
    pub(super) unsafe fn get_events(&self, low: *mut u32) -> Answer {
        let mask = self.caller().get_event_mask()?;
        if low.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        // SAFETY: the profiler's pointer.
        unsafe { put(low, mask.0) };
        Ok(HResult::OK)
    }

    /// Answers GetEventMask2.
    pub(super) unsafe fn get_all_events(&self, low: *mut u32, high: *mut u32) -> Answer {
        if high.is_null() {
            self.caller().get_event_mask()?;
            return Ok(HResult::INVALID_ARGUMENT);
        }
        // SAFETY: the profiler's pointers.
        unsafe {
            let result = self.get_events(low)?;
            if result == HResult::OK {
                put(high, self.session.high_events.get());
            }
            Ok(result)
        }
    }

    /// Answers SetEventMask.
    pub(super) fn set_low_events(&self, low: u32) -> Answer {
        self.set_events(low, 0)
    }

    /// Answers SetEventMask and SetEventMask2 (EEToProfInterfaceImpl::SetEventMask).
    pub(super) fn set_events(&self, low: u32, high: u32) -> Answer {
        self.begin()?;
        // A test that has loaded no profiler plays one: it may do what `Initialize` may.
        let plays = self.session.profiler.borrow().is_none();
        let status = self.runtime().process.get().profiler;
        let set_status =
            |status| self.runtime().change_process(|process| process.profiler = status);
        if plays && status == ProfilerStatus::Active {
            set_status(ProfilerStatus::InitializingForStartup);
        }
        let answer = self.set_mask(low, high);
        set_status(status);
        answer
    }

    fn set_mask(&self, low: u32, high: u32) -> Answer {
        let process = self.runtime().process.get();
        let starting = process.profiler == ProfilerStatus::InitializingForStartup;
        let before = self.session.high_events.get();
        if low & !NOTIFICATIONS != 0 || high & !HIGH_NOTIFICATIONS != 0 {
            self.check_may_change()?;
        }
        if !starting && (high ^ before) & HIGH_IMMUTABLE != 0 {
            return Ok(HResult::FAIL);
        }
        let is_new = self.session.generation.family().is_core_since(8);
        let attachable = if is_new { HIGH_ATTACHABLE } else { HIGH_ATTACHABLE_3_1 };
        if process.attached && high & !attachable != 0 {
            return Ok(HResult::UNSUPPORTED_FOR_ATTACHING_PROFILER);
        }
        self.caller().set_event_mask(EventMask(low))?;
        let skips = self.session.generation.family().is_core_since(11);
        let known = if skips { u32::MAX } else { !HighEvents::SKIP_STATISTIC.0 };
        self.session.high_events.set(high);
        self.runtime().change_process(|process| {
            process.high_events = HighEvents(high & known);
        });
        if EventMask(low).contains(EventMask::ENABLE_STACK_SNAPSHOT) {
            self.session.shared.with(Report::may_walk);
            self.session.shared.write(&Entry::AskedToWalk);
        }
        Ok(HResult::OK)
    }

    /// Refuses an id that is no ThreadID.
    pub(super) fn known_thread(&self, thread: ThreadId) -> Result<(), CallError<Outcome>> {
        self.runtime().thread_of(thread, |_| ()).map_or_else(|| self.unknown(thread.0), Ok)
    }

    /// Notes an id that is no ThreadID.
    pub(super) fn check_thread(&self, thread: ThreadId) {
        if self.runtime().thread_of(thread, |_| ()).is_none() {
            self.session.shared.find_unknown(self.method, thread.0);
        }
    }

    ICorProfilerInfo2Methods!(get_thread_app_domain = GetThreadAppDomain(self, thread, domain) {
        self.check_thread(thread);
        self.begin()?;
        if domain.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let own = thread.0 == 0;
        if own {
            self.check_managed()?;
        }
        // A CLR reads what is there.
        if !own && self.runtime().thread_of(thread, |_| ()).is_none() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        // SAFETY: the profiler's pointer.
        unsafe { put(domain, AppDomainId(APP_DOMAIN)) };
        Ok(HResult::OK)
    });

    // The context of a thread is its AppDomain (recorded on 3.1.23, 8.0.34, 9.0.23, 10.0.15 and 11.0.0).
    pub(super) unsafe fn thread_context(
        &self,
        thread: ThreadId,
        context: *mut ContextId,
    ) -> Answer {
        self.begin()?;
        self.known_thread(thread)?;
        // SAFETY: the profiler's pointer.
        unsafe { put(context, ContextId(APP_DOMAIN)) };
        Ok(HResult::OK)
    }

    /// Answers GetNotifiedExceptionClauseInfo where no exception is in flight.
    pub(super) unsafe fn clause_info(&self, info: *mut ClauseInfo) -> Answer {
        self.begin()?;
        if info.is_null() {
            return self.null("pinfo");
        }
        let os = self.session.caller();
        let trackers = self.runtime().thread(os, |thread| thread.exceptions.trackers.len());
        if trackers.is_some_and(|count| count > 0) {
            return self.not_simulated();
        }
        let none = ClauseInfo { kind: 0, ip: 0, frame_pointer: 0, shadow_stack: 0 };
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(info, none) };
        self.check_managed()?;
        Ok(HResult::FALSE)
    }

    ICorProfilerInfo3Methods!(get_runtime_information = GetRuntimeInformation(self, instance, kind,
        major, minor, build, qfe, room, len, text) {
        self.begin()?;
        if !text.is_null() && len.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let generation = self.session.generation;
        let version = generation.runtime_version();
        let new = generation.family().is_core_since(5);
        let v = if new { "" } else { "v" };
        let name = wide(&format!("{v}{}.{}.{}", version[0], version[1], version[2]));
        // SAFETY: the profiler's pointers.
        unsafe {
            put(len, count(name.len()));
            if new && !len.is_null() {
                put_cut(text, room, &name);
            } else if !len.is_null() {
                // GetCORVersionInternal (src/dlls/mscoree/mscoree.cpp of 3.1).
                if room > 0 {
                    put(text, 0);
                }
                if name.len() > room as usize {
                    return Ok(results::INSUFFICIENT_BUFFER);
                }
                if text.is_null() {
                    return Ok(results::POINTER);
                }
                put_all(text, room, &name);
            }
            put(instance, 0);
            let [desktop, core] = RUNTIME_TYPES;
            put(kind, if generation.is_core() { core } else { desktop });
            for (part, number) in [major, minor, build, qfe].into_iter().zip(version) {
                put(part, number);
            }
        }
        Ok(HResult::OK)
    });

    pub(super) unsafe fn enum_modules(&self, enumerator: *mut *mut c_void) -> Answer {
        self.begin()?;
        if enumerator.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(enumerator, std::ptr::null_mut()) };
        let process = self.runtime().process.get();
        if process.owner(Lock::ThreadStore) == Some(self.session.caller()) {
            return Ok(HResult::UNSUPPORTED_CALL_SEQUENCE);
        }
        self.caller().may_fail(self.method)?;
        let unfinished = self.runtime().unfinished.borrow();
        let modules = self.runtime().metadata.modules().iter().map(|module| ModuleId(module.id));
        let modules = modules.filter(|module| !unfinished.is_loading(module.0));
        let modules = Modules::make(self.session, modules.collect());
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(enumerator, modules) };
        Ok(HResult::OK)
    }

    pub(super) unsafe fn enum_threads(&self, enumerator: *mut *mut c_void) -> Answer {
        if enumerator.is_null() {
            self.begin()?;
            return Ok(HResult::INVALID_ARGUMENT);
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(enumerator, std::ptr::null_mut()) };
        let mut threads = self.caller().enum_threads()?;
        if !self.runtime().process.get().gc_initialized {
            // Profilers are loaded before the first Thread object is made (recorded on Unix).
            threads.clear();
        }
        let threads = Threads::make(self.session, threads);
        // SAFETY: as above.
        unsafe { put(enumerator, threads) };
        Ok(HResult::OK)
    }
}
