//! EventPipe as a profiler uses it: sessions that deliver events to `EventPipeEventDelivered`, providers and
//! events of its own, AllocationTick of the runtime. Read in dotnet/runtime, main branch, unless said otherwise:
//! src/native/eventpipe (ep.c, ep-session.c, ep-provider.c, ep-event-source.c, ep-metadata-generator.c) and
//! src/coreclr/vm (proftoeeinterfaceimpl.cpp, eetoprofinterfaceimpl.cpp, eventpipeadapter.h, gc.cpp).
//!
//! * A profiler's sessions are synchronous: an event is delivered on the thread that writes it, in the thread's
//!   mode, and in no callback that may trigger a GC. Nothing is buffered, and no stack is captured: the callback
//!   has neither frames nor a thread (`write_event`, `ep_session_write_event`).
//! * An event is enabled when its provider or its session begins. A provider that is added to a session later
//!   is not enabled until the next session with it begins, unless it is created after that
//!   (`provider_compute_event_enable_mask`, `ep_add_provider_to_session`).
//! * AllocationTick is written where an allocation has taken memory from the GC, after the GC's lock was
//!   released (`adjust_limit_clr`). A CLR writes it once in about 100 KiB; here each allocation that does not
//!   come from the thread's own memory is one of them (assumed: a text says no sizes).
//! * The end of a session writes ProcessInfo first (`disable_holding_lock`).
//! * The function of EventPipeCreateProvider2 is called when a session with the provider begins or ends, and when the provider
//!   is created for sessions that exist, not when it is added to one (recorded on 8.0.34, 10.0.15 and 11.0.0).
//!
//! Two things are not simulated: a session that ends while another thread is in its callback waits for that
//! thread, and one that ends before the runtime has started ends when it has.

use crate::event_state::blobs::{allocation_tick, process_info};
use crate::event_state::{
    ALLOCATION_TICK, EVENT_PIPE, Event, FilterData, HIGH_EVENT_PIPE, LOG_ALWAYS, MOST_SESSIONS,
    NAMES, NO_ACTIVITY, PITCH, PROCESS_INFO, PROVIDERS, Provider, ProviderCallback, SESSIONS,
    Session, Told, Wanted,
};
use crate::inner::Inner;
use crate::out::count;
use crate::target::Target;
use clr_com::{Guid, ObjectId};
use clr_runtime::profiling::CallbackKind as Kind;
use clr_walker::profiling::{HResult, ThreadId};
use std::ptr::null;

impl Inner {
    /// Begins a session, and returns its id; `None` if there are too many.
    pub(crate) fn begin_events(&self, mut wanted: Vec<Wanted>) -> Option<u64> {
        let id = {
            let mut state = self.events.0.borrow_mut();
            let is_free = |slot: &usize| state.sessions.values().all(|one| one.slot != *slot);
            let slot = (0..MOST_SESSIONS).find(is_free)?;
            let (name, keywords) = (NAMES[EVENT_PIPE], u64::MAX);
            let filter = Vec::new();
            wanted.push(Wanted { provider: name.to_owned(), keywords, level: LOG_ALWAYS, filter });
            let id = SESSIONS + state.begun * PITCH;
            state.begun += 1;
            state.sessions.insert(id, Session { slot, wanted });
            for provider in 0..state.providers.len() {
                state.enable(provider, Some(id));
            }
            id
        };
        self.deliver_allocations();
        let told = self.events.0.borrow().told(id, None);
        self.tell(told, Some(id));
        Some(id)
    }

    /// Ends a session, if there is one with this id.
    pub(crate) fn end_events(&self, session: u64) {
        if !self.events.0.borrow().sessions.contains_key(&session) {
            return;
        }
        let info = process_info(self.generation.is_unix());
        self.write_event(PROCESS_INFO, &info, [null(); 2]);
        let told = {
            let mut state = self.events.0.borrow_mut();
            for provider in &mut state.providers {
                provider.sessions.remove(&session);
            }
            // What it asked for counts until its end.
            let told = state.told(session, None);
            state.sessions.remove(&session);
            for provider in 0..state.providers.len() {
                state.refresh(provider);
            }
            told
        };
        self.deliver_allocations();
        self.tell(told, None);
    }

    /// Calls the functions of providers, which the calling thread does in a CLR, too. The source is the session that begins.
    fn tell(&self, told: Vec<Told>, session: Option<u64>) {
        let source = session.map(|id| [id, 0]);
        for Told { callback, is_enabled, level, keywords, filter } in told {
            let bytes = filter.as_ptr() as usize as u64;
            let data = FilterData { bytes, size: count(filter.len()), kind: 0 };
            let data = if filter.is_empty() { null() } else { &raw const data };
            self.enter("EventPipeProviderCallback", || {
                let source = source.as_ref().map_or(null(), |source| &raw const *source);
                // SAFETY: the profiler's function has this signature; the pointers are to locals.
                unsafe {
                    callback(source, is_enabled.into(), level as u8, keywords, 0, data, null());
                };
                HResult::OK
            });
        }
    }

    /// Makes a provider, and returns its id. The profiler is called if it has asked for that.
    pub(crate) fn create_provider(&self, name: String, callback: Option<ProviderCallback>) -> u64 {
        let (index, sessions) = {
            let mut state = self.events.0.borrow_mut();
            let index = state.providers.len();
            state.providers.push(Provider::new(name, callback));
            state.enable(index, None);
            let sessions = state.providers.last().map(|one| one.sessions.clone());
            (index, sessions.unwrap_or_default())
        };
        for session in sessions {
            let told = self.events.0.borrow().told(session, Some(index));
            self.tell(told, Some(session));
        }
        let id = PROVIDERS + index as u64 * PITCH;
        if self.high_events.get() & HIGH_EVENT_PIPE != 0 {
            let kind = Kind::EventPipeProviderCreated;
            self.call_back((kind, kind.name()), |target| target.provider_created(id));
        }
        id
    }

    /// Makes the program deliver AllocationTick as long as a session has enabled it.
    fn deliver_allocations(&self) {
        let events = self.events.0.borrow();
        let ticks = events.events.get(ALLOCATION_TICK).is_some_and(|tick| !tick.enabled.is_empty());
        if let Some(stage) = self.stage() {
            stage.runtime().change_process(|process| process.allocation_ticks = ticks);
        }
    }

    /// Writes AllocationTick: the calling thread has allocated an object.
    pub(crate) fn write_allocation_tick(&self, object: ObjectId) {
        let class = self.class_of_object(object).unwrap_or_else(|| self.class_or_object(0));
        let name = self.stage().and_then(|stage| {
            let (_, found) = stage.runtime().metadata.class(class.0)?;
            let dot = if found.namespace.is_empty() { "" } else { "." };
            Some(format!("{}{dot}{}", found.namespace, found.name))
        });
        let data = allocation_tick(object, class, &name.unwrap_or_default());
        self.write_event(ALLOCATION_TICK, &data, [null(); 2]);
    }

    /// Writes an event on the calling thread: delivers it to the sessions that it is enabled for.
    pub(crate) fn write_event(&self, event: usize, data: &[u8], activities: [*const Guid; 2]) {
        let found = self.events.0.borrow().events.get(event).cloned();
        let (Some(event), Some(process)) = (found, self.stage()) else { return };
        if event.enabled.is_empty() {
            return;
        }
        let [activity, related] = activities;
        // The activity of a thread that the runtime knows is of the thread itself, and never set here.
        let own = NO_ACTIVITY;
        let is_known = process.runtime().object_of(self.caller()).is_some();
        let activity = if activity.is_null() && is_known { &raw const own } else { activity };
        let mut sessions: Vec<_> = {
            let events = self.events.0.borrow();
            let slot = |id: &u64| events.sessions.get(id).map(|session| (session.slot, *id));
            event.enabled.iter().filter_map(slot).collect()
        };
        sessions.sort_unstable();
        let provider = PROVIDERS + event.provider as u64 * PITCH;
        for (_, session) in sessions {
            let is_there = self.events.0.borrow().sessions.contains_key(&session);
            if is_there && !self.is_detaching() {
                let kind = Kind::EventPipeEventDelivered;
                self.call_back((kind, kind.name()), |target| {
                    target.event_delivered(provider, &event, data, [activity, related])
                });
            }
        }
    }
}

impl Target {
    /// Calls `EventPipeProviderCreated`.
    pub(crate) fn provider_created(&self, provider: u64) -> HResult {
        // SAFETY: the profiler's object, which there is a reference to.
        self.tenth
            .as_ref()
            .map_or(HResult::OK, |to| unsafe { to.EventPipeProviderCreated(provider) })
    }

    /// Calls `EventPipeEventDelivered`.
    pub(crate) fn event_delivered(
        &self,
        provider: u64,
        event: &Event,
        data: &[u8],
        [activity, related]: [*const Guid; 2],
    ) -> HResult {
        let Some(to) = &self.tenth else { return HResult::OK };
        let metadata = &event.metadata;
        // SAFETY: as above; the pointers are to what is announced with them, or the profiler's own.
        unsafe {
            to.EventPipeEventDelivered(
                provider,
                event.id,
                event.version,
                count(metadata.len()),
                metadata.as_ptr(),
                count(data.len()),
                data.as_ptr(),
                activity,
                related,
                ThreadId(0),
                0,
                null(),
            )
        }
    }
}
