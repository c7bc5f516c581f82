//! EventPipe. Results are those of proftoeeinterfaceimpl.cpp and eventpipeadapter.h of dotnet/runtime, main
//! branch: its methods may be called at any time, on any thread.

use super::Call;
use crate::event_state::blobs::{Head, Parameter, metadata};
use crate::event_state::{Event, ProviderCallback, Wanted};
use crate::out::{Answer, count, put, put_all, read_units, read_wide, wide};
use crate::results;
use clr_com::{
    Bool, EventData, EventParameter, EventProviderConfig, Guid, ICorProfilerInfo12Methods,
};
use clr_walker::profiling::HResult;
use std::ffi::c_void;

/// `EP_PARAMETER_TYPE_OBJECT`.
const OBJECT: u32 = 1;
/// Largest number of providers of a session, of parameters and of parts of an event's data: a CLR has no
/// limit, but reads an array of this length.
const MOST: u32 = 0x1000;
/// Largest part of an event's data in bytes.
const LARGEST: u32 = 0x10_0000;

/// Returns a filter `KEY=VALUE;KEY=VALUE` as a provider's function gets it: each key and value with a 0 behind it (recorded
/// on 8.0.34, 10.0.15 and 11.0.0 for one of each).
fn filter_data(text: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        text.bytes().map(|byte| if matches!(byte, b'=' | b';') { 0 } else { byte }).collect();
    bytes.push(0);
    bytes
}

/// Reads the part of a provider's events that a session asks for.
///
/// # Safety
/// The name is not NULL, and ends with a 0; so does the filter, if there is one.
unsafe fn wanted(config: &EventProviderConfig) -> Wanted {
    // SAFETY: the caller's promise.
    let provider = unsafe { read_wide(config.name) };
    let filter = if config.filter.is_null() {
        Vec::new()
    } else {
        // SAFETY: the caller's promise.
        filter_data(&unsafe { read_wide(config.filter) })
    };
    Wanted { provider, keywords: config.keywords, level: config.level, filter }
}

impl Call<'_> {
    // A synchronous session has no rundown.
    ICorProfilerInfo12Methods!(start_session = EventPipeStartSession(self, len, configs,
        _request_rundown, session) {
        self.begin()?;
        if len == 0 || configs.is_null() || session.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let mut all = Vec::new();
        for index in 0..len.min(MOST) as usize {
            // SAFETY: the profiler's array has this number of elements.
            let config = unsafe { configs.add(index).read_unaligned() };
            if config.name.is_null() {
                return self.null("providerName");
            }
            // SAFETY: the profiler's text.
            all.push(unsafe { wanted(&config) });
        }
        self.caller().may_fail(self.method)?;
        let Some(id) = self.session.begin_events(all) else { return Ok(HResult::FAIL) };
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(session, id) };
        Ok(HResult::OK)
    });

    ICorProfilerInfo12Methods!(add_to_session = EventPipeAddProviderToSession(self, session,
        config) {
        self.begin()?;
        if config.name.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        self.caller().may_fail(self.method)?;
        // SAFETY: the profiler's text.
        let added = self.session.events.add(session, unsafe { wanted(&config) });
        Ok(if added { HResult::OK } else { HResult::INVALID_ARGUMENT })
    });

    pub(super) fn stop_session(&self, session: u64) -> Answer {
        self.begin()?;
        self.session.end_events(session);
        Ok(HResult::OK)
    }

    pub(super) unsafe fn create_provider(&self, name: *const u16, provider: *mut u64) -> Answer {
        // SAFETY: the profiler's pointers.
        unsafe { self.create_provider_2(name, std::ptr::null(), provider) }
    }

    pub(super) unsafe fn create_provider_2(
        &self,
        name: *const u16,
        callback: *const c_void,
        provider: *mut u64,
    ) -> Answer {
        self.begin()?;
        if name.is_null() || provider.is_null() {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        self.caller().may_fail(self.method)?;
        // SAFETY: the profiler's function has this signature, or is NULL; its pointers are not.
        unsafe {
            let callback = std::mem::transmute::<*const c_void, Option<ProviderCallback>>(callback);
            put(provider, self.session.create_provider(read_wide(name), callback));
        }
        Ok(HResult::OK)
    }

    ICorProfilerInfo12Methods!(provider_info = EventPipeGetProviderInfo(self, provider, room, len,
        name) {
        self.begin()?;
        if room > 0 && name.is_null() || provider == 0 {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let Some((_, found)) = self.session.events.provider(provider) else {
            return self.unknown(provider);
        };
        let text = wide(&found);
        // SAFETY: the profiler's pointers.
        unsafe {
            put(len, count(text.len()));
            // Of the exact size a buffer is too small.
            if text.len() >= room as usize {
                return Ok(results::INSUFFICIENT_BUFFER);
            }
            put_all(name, room, &text);
        }
        Ok(HResult::OK)
    });

    ICorProfilerInfo12Methods!(define_event = EventPipeDefineEvent(self, provider, name, id,
        keywords, version, level, opcode, _need_stack, len, parameters, event) {
        self.begin()?;
        if provider == 0 || name.is_null() || event.is_null() || parameters.is_null() && len > 0 {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let Some((index, _)) = self.session.events.provider(provider) else {
            return self.unknown(provider);
        };
        let mut read = Vec::new();
        for at in 0..len.min(MOST) as usize {
            // SAFETY: the profiler's array has this number of elements.
            let EventParameter { kind, element, name } =
                unsafe { parameters.add(at).read_unaligned() };
            if kind == OBJECT {
                return Ok(HResult::INVALID_ARGUMENT);
            }
            if name.is_null() {
                return self.null("pParamDescs[].name");
            }
            // SAFETY: the profiler's pointer, which is not NULL.
            read.push(Parameter { kind, element, name: unsafe { read_units(name) } });
        }
        // SAFETY: the profiler's pointer, which is not NULL.
        let name = unsafe { read_units(name) };
        let head = Head { id, name: &name, keywords, version, level, opcode };
        let metadata = metadata(&head, &read);
        let defined = Event::new(index, (id, version), (keywords, level), metadata);
        // SAFETY: the profiler's pointer, which is not NULL.
        unsafe { put(event, self.session.events.define(defined)) };
        Ok(HResult::OK)
    });

    ICorProfilerInfo12Methods!(write_event = EventPipeWriteEvent(self, event, len, parts, activity,
        related) {
        self.begin()?;
        if event == 0 {
            return Ok(HResult::INVALID_ARGUMENT);
        }
        let Some(index) = self.session.events.event(event) else { return self.unknown(event) };
        let mut data = Vec::new();
        if parts.is_null() && len > 0 {
            return self.null("data");
        }
        for at in 0..len.min(MOST) as usize {
            // SAFETY: the profiler's array has this number of elements.
            let EventData { data: address, size, .. } = unsafe { parts.add(at).read_unaligned() };
            let from = address as usize as *const u8;
            if from.is_null() {
                continue;
            }
            // SAFETY: the profiler's pointer, to this number of bytes.
            let bytes = unsafe { std::slice::from_raw_parts(from, size.min(LARGEST) as usize) };
            data.extend_from_slice(bytes);
        }
        self.session.write_event(index, &data, [activity, related]);
        Ok(HResult::OK)
    });
}
