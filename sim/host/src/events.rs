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
//!
//! Two things are not simulated: a session that ends while another thread is in its callback waits for that
//! thread, and one that ends before the runtime has started ends when it has.

pub(crate) mod blobs;

use crate::out::count;
use crate::session::Inner;
use crate::target::Target;
use blobs::{allocation_tick, process_info};
use clr_com::{Guid, ObjectId};
use clr_runtime::profiling::CallbackKind as Kind;
use clr_walker::profiling::{HResult, ThreadId};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ptr::null;

/// `EP_MAX_NUMBER_OF_SESSIONS`.
const MOST_SESSIONS: usize = 64;
/// Ids of sessions, providers and events: addresses in a CLR.
const SESSIONS: u64 = 0x5555_0001_0000;
const PROVIDERS: u64 = 0x5555_0002_0000;
const EVENTS: u64 = 0x5555_0010_0000;
const PITCH: u64 = 0x100;
/// The index of the runtime's provider, and of the provider of EventPipe itself.
const RUNTIME: usize = 0;
const EVENT_PIPE: usize = 1;
const NAMES: [&str; 2] = ["Microsoft-Windows-DotNETRuntime", "Microsoft-DotNETCore-EventPipe"];
/// The indices of the runtime's events.
const ALLOCATION_TICK: usize = 0;
const PROCESS_INFO: usize = 1;
/// Levels `LogAlways` and `Verbose`, and the keyword of the GC.
const LOG_ALWAYS: u32 = 0;
const VERBOSE: u32 = 5;
const GC_KEYWORD: u64 = 1;
/// The activity of a thread that has none.
const NO_ACTIVITY: Guid = Guid { data1: 0, data2: 0, data3: 0, data4: [0; 8] };
/// `COR_PRF_HIGH_MONITOR_EVENT_PIPE`.
const HIGH_EVENT_PIPE: u32 = 0x80;

/// The part of a provider's events that a session asks for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Name of the provider.
    pub(crate) provider: String,
    /// Keywords.
    pub(crate) keywords: u64,
    /// Level.
    pub(crate) level: u32,
}

struct Session {
    /// Events are delivered to sessions in this order.
    slot: usize,
    wanted: Vec<Wanted>,
}

struct Provider {
    name: String,
    /// The sessions that have enabled it.
    sessions: BTreeSet<u64>,
}

/// An event of a provider.
#[derive(Clone)]
pub(crate) struct Event {
    /// Index of the provider.
    pub(crate) provider: usize,
    /// Number.
    pub(crate) id: u32,
    /// Version.
    pub(crate) version: u32,
    /// Keywords, one of which a session must have; or 0.
    pub(crate) keywords: u64,
    /// Level.
    pub(crate) level: u32,
    /// Metadata blob.
    pub(crate) metadata: Vec<u8>,
    /// The sessions that it is delivered to.
    enabled: BTreeSet<u64>,
}

impl Event {
    /// Makes an event of a number and a version, with keywords and a level.
    pub(crate) const fn new(
        provider: usize,
        (id, version): (u32, u32),
        (keywords, level): (u64, u32),
        metadata: Vec<u8>,
    ) -> Self {
        Self { provider, id, version, keywords, level, metadata, enabled: BTreeSet::new() }
    }
}

/// The state of EventPipe.
struct State {
    sessions: BTreeMap<u64, Session>,
    providers: Vec<Provider>,
    events: Vec<Event>,
    /// Number of sessions that have begun.
    begun: u64,
}

impl Default for State {
    fn default() -> Self {
        let provider = |name: &str| Provider { name: name.to_owned(), sessions: BTreeSet::new() };
        let minimal = blobs::minimal(10, GC_KEYWORD, 4, VERBOSE);
        let tick = Event::new(RUNTIME, (10, 4), (GC_KEYWORD, VERBOSE), minimal);
        let info = Event::new(EVENT_PIPE, (1, 0), (0, LOG_ALWAYS), blobs::of_process_info());
        Self {
            sessions: BTreeMap::new(),
            providers: NAMES.into_iter().map(provider).collect(),
            events: vec![tick, info],
            begun: 0,
        }
    }
}

impl State {
    /// Decides which sessions the events of a provider are delivered to.
    fn refresh(&mut self, provider: usize) {
        let of_provider = self.events.iter().enumerate();
        let of_provider = of_provider.filter(|(_, event)| event.provider == provider);
        let events: Vec<usize> = of_provider.map(|(index, _)| index).collect();
        for event in events {
            self.refresh_event(event);
        }
    }

    fn refresh_event(&mut self, index: usize) {
        let Some(event) = self.events.get(index) else { return };
        let Some(provider) = self.providers.get(event.provider) else { return };
        let wants = |session: &Session| {
            session.wanted(&provider.name).is_some_and(|wanted| {
                (event.keywords == 0 || wanted.keywords & event.keywords != 0)
                    && (event.level == LOG_ALWAYS || wanted.level >= event.level)
            })
        };
        let is_enabled = !provider.sessions.is_empty();
        let enabled = self.sessions.iter().filter(|(_, session)| is_enabled && wants(session));
        let enabled = enabled.map(|(id, _)| *id).collect();
        if let Some(event) = self.events.get_mut(index) {
            event.enabled = enabled;
        }
    }

    /// Enables a provider for the sessions that want it now.
    fn enable(&mut self, provider: usize, session: Option<u64>) {
        let Some(found) = self.providers.get_mut(provider) else { return };
        let wanting = self.sessions.iter().filter(|(id, wanting)| {
            session.is_none_or(|only| only == **id) && wanting.wanted(&found.name).is_some()
        });
        let before = found.sessions.len();
        found.sessions.extend(wanting.map(|(id, _)| *id));
        if found.sessions.len() > before {
            self.refresh(provider);
        }
    }
}

impl Session {
    fn wanted(&self, provider: &str) -> Option<&Wanted> {
        self.wanted.iter().find(|wanted| wanted.provider == provider)
    }
}

/// The sessions, providers and events of a process.
#[derive(Default)]
pub(crate) struct Events(RefCell<State>);

/// Returns the index that an id was made of.
fn index_of(id: u64, base: u64) -> Option<usize> {
    let offset = id.checked_sub(base)?;
    (offset % PITCH == 0).then_some((offset / PITCH) as usize)
}

impl Events {
    /// Forgets everything: another process or another profiler.
    pub(crate) fn clear(&self) {
        self.0.take();
    }

    /// Returns the name of a provider, by its id.
    pub(crate) fn provider(&self, id: u64) -> Option<(usize, String)> {
        let index = index_of(id, PROVIDERS)?;
        Some((index, self.0.borrow().providers.get(index)?.name.clone()))
    }

    /// Returns the index of an event, by its id.
    pub(crate) fn event(&self, id: u64) -> Option<usize> {
        index_of(id, EVENTS).filter(|index| *index < self.0.borrow().events.len())
    }

    /// Adds an event, and returns its id.
    pub(crate) fn define(&self, event: Event) -> u64 {
        let mut state = self.0.borrow_mut();
        let index = state.events.len();
        state.events.push(event);
        state.refresh_event(index);
        EVENTS + index as u64 * PITCH
    }

    /// Adds a provider to a session. Returns false if there is no such session.
    pub(crate) fn add(&self, session: u64, wanted: Wanted) -> bool {
        let mut state = self.0.borrow_mut();
        let found = state.sessions.get_mut(&session);
        found.is_some_and(|session| {
            session.wanted.push(wanted);
            true
        })
    }
}

impl Inner {
    /// Begins a session, and returns its id; `None` if there are too many.
    pub(crate) fn begin_events(&self, mut wanted: Vec<Wanted>) -> Option<u64> {
        let id = {
            let mut state = self.events.0.borrow_mut();
            let is_free = |slot: &usize| state.sessions.values().all(|one| one.slot != *slot);
            let slot = (0..MOST_SESSIONS).find(is_free)?;
            let (name, keywords) = (NAMES[EVENT_PIPE], u64::MAX);
            wanted.push(Wanted { provider: name.to_owned(), keywords, level: LOG_ALWAYS });
            let id = SESSIONS + state.begun * PITCH;
            state.begun += 1;
            state.sessions.insert(id, Session { slot, wanted });
            for provider in 0..state.providers.len() {
                state.enable(provider, Some(id));
            }
            id
        };
        self.deliver_allocations();
        Some(id)
    }

    /// Ends a session, if there is one with this id.
    pub(crate) fn end_events(&self, session: u64) {
        if !self.events.0.borrow().sessions.contains_key(&session) {
            return;
        }
        let info = process_info(self.generation.is_unix());
        self.write_event(PROCESS_INFO, &info, [null(); 2]);
        {
            let mut state = self.events.0.borrow_mut();
            state.sessions.remove(&session);
            for provider in 0..state.providers.len() {
                if let Some(found) = state.providers.get_mut(provider) {
                    found.sessions.remove(&session);
                }
                state.refresh(provider);
            }
        }
        self.deliver_allocations();
    }

    /// Makes a provider, and returns its id. The profiler is called if it has asked for that.
    pub(crate) fn create_provider(&self, name: String) -> u64 {
        let id = {
            let mut state = self.events.0.borrow_mut();
            let index = state.providers.len();
            state.providers.push(Provider { name, sessions: BTreeSet::new() });
            state.enable(index, None);
            PROVIDERS + index as u64 * PITCH
        };
        if self.high_events.get() & HIGH_EVENT_PIPE != 0 {
            let target = self.profiler.borrow().clone();
            if let (Some(stage), Some(target)) = (self.stage(), target) {
                let kind = Kind::EventPipeProviderCreated;
                stage.runtime().on(self.caller()).in_callback(kind, |_| {
                    self.enter(kind.name(), || target.provider_created(id));
                });
            }
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
        let data = allocation_tick(object, self.object_class());
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
            let target = self.profiler.borrow().clone();
            let Some(target) = target.filter(|_| is_there && !self.is_detaching()) else {
                continue;
            };
            let kind = Kind::EventPipeEventDelivered;
            process.runtime().on(self.caller()).in_callback(kind, |_| {
                self.enter(kind.name(), || {
                    target.event_delivered(provider, &event, data, [activity, related])
                });
            });
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
