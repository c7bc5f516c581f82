//! The sessions, providers and events of EventPipe in a process.

pub(crate) mod blobs;

use clr_com::Guid;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// `EP_MAX_NUMBER_OF_SESSIONS`.
pub(crate) const MOST_SESSIONS: usize = 64;
/// Ids of sessions, providers and events: addresses in a CLR.
pub(crate) const SESSIONS: u64 = 0x5555_0001_0000;
pub(crate) const PROVIDERS: u64 = 0x5555_0002_0000;
pub(crate) const EVENTS: u64 = 0x5555_0010_0000;
pub(crate) const PITCH: u64 = 0x100;
/// The index of the runtime's provider, and of the provider of EventPipe itself.
pub(crate) const RUNTIME: usize = 0;
pub(crate) const EVENT_PIPE: usize = 1;
pub(crate) const NAMES: [&str; 2] =
    ["Microsoft-Windows-DotNETRuntime", "Microsoft-DotNETCore-EventPipe"];
/// The indices of the runtime's events.
pub(crate) const ALLOCATION_TICK: usize = 0;
pub(crate) const PROCESS_INFO: usize = 1;
/// Levels `LogAlways` and `Verbose`, and the keyword of the GC.
pub(crate) const LOG_ALWAYS: u32 = 0;
pub(crate) const VERBOSE: u32 = 5;
pub(crate) const GC_KEYWORD: u64 = 1;
/// The activity of a thread that has none.
pub(crate) const NO_ACTIVITY: Guid = Guid { data1: 0, data2: 0, data3: 0, data4: [0; 8] };
/// `COR_PRF_HIGH_MONITOR_EVENT_PIPE`.
pub(crate) const HIGH_EVENT_PIPE: u32 = 0x80;

/// The part of a provider's events that a session asks for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Name of the provider.
    pub(crate) provider: String,
    /// Keywords.
    pub(crate) keywords: u64,
    /// Level.
    pub(crate) level: u32,
    /// Keys and values, each with a 0 behind it, as the provider's callback gets them; empty if there are none.
    pub(crate) filter: Vec<u8>,
}

pub(crate) struct Session {
    /// Events are delivered to sessions in this order.
    pub(crate) slot: usize,
    pub(crate) wanted: Vec<Wanted>,
}

pub(crate) struct Provider {
    pub(crate) name: String,
    /// The sessions that have enabled it.
    pub(crate) sessions: BTreeSet<u64>,
    /// The profiler's function that is told of sessions.
    pub(crate) callback: Option<ProviderCallback>,
}

/// `EventPipeProviderCallback`: source id, whether the provider is enabled, level, keywords of which an event has one, keywords
/// of which it has all, filter, and data that this interface cannot give.
pub(crate) type ProviderCallback = unsafe extern "system" fn(
    *const [u64; 2],
    u32,
    u8,
    u64,
    u64,
    *const FilterData,
    *const std::ffi::c_void,
);

/// `COR_PRF_FILTER_DATA`.
#[repr(C)]
pub(crate) struct FilterData {
    pub(crate) bytes: u64,
    pub(crate) size: u32,
    pub(crate) kind: u32,
}

/// A call of a provider's function about a session that begins or ends.
pub(crate) struct Told {
    pub(crate) callback: ProviderCallback,
    /// The provider is enabled for a session.
    pub(crate) is_enabled: bool,
    /// The level and the keywords that all sessions together ask for.
    pub(crate) level: u32,
    pub(crate) keywords: u64,
    /// The filter of the session.
    pub(crate) filter: Vec<u8>,
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
    pub(crate) enabled: BTreeSet<u64>,
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
pub(crate) struct State {
    pub(crate) sessions: BTreeMap<u64, Session>,
    pub(crate) providers: Vec<Provider>,
    pub(crate) events: Vec<Event>,
    /// Number of sessions that have begun.
    pub(crate) begun: u64,
}

impl Default for State {
    fn default() -> Self {
        let provider = |name: &str| Provider::new(name.to_owned(), None);
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
    pub(crate) fn refresh(&mut self, provider: usize) {
        let of_provider = self.events.iter().enumerate();
        let of_provider = of_provider.filter(|(_, event)| event.provider == provider);
        let events: Vec<usize> = of_provider.map(|(index, _)| index).collect();
        for event in events {
            self.refresh_event(event);
        }
    }

    pub(crate) fn refresh_event(&mut self, index: usize) {
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
    pub(crate) fn enable(&mut self, provider: usize, session: Option<u64>) {
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

    /// Returns what the functions of all providers, or of one, are told of a session. The order is that of the providers
    /// (recorded on 8.0.34, 10.0.15 and 11.0.0, with the values).
    pub(crate) fn told(&self, session: u64, provider: Option<usize>) -> Vec<Told> {
        let Some(of_session) = self.sessions.get(&session) else { return Vec::new() };
        let providers = self.providers.iter().enumerate();
        let providers = providers.filter(|(index, _)| provider.is_none_or(|only| only == *index));
        let told = providers.filter_map(|(_, provider)| {
            let (callback, wanted) = (provider.callback?, of_session.wanted(&provider.name)?);
            let all = self.sessions.values().filter_map(|one| one.wanted(&provider.name));
            let (level, keywords) = all.fold((0, 0), |(level, keywords), one| {
                (one.level.max(level), one.keywords | keywords)
            });
            let filter = wanted.filter.clone();
            let is_enabled = !provider.sessions.is_empty();
            Some(Told { callback, is_enabled, level, keywords, filter })
        });
        told.collect()
    }
}

impl Provider {
    /// Makes a provider that no session has enabled.
    pub(crate) const fn new(name: String, callback: Option<ProviderCallback>) -> Self {
        Self { name, sessions: BTreeSet::new(), callback }
    }
}

impl Session {
    pub(crate) fn wanted(&self, provider: &str) -> Option<&Wanted> {
        self.wanted.iter().find(|wanted| wanted.provider == provider)
    }
}

/// The sessions, providers and events of a process.
#[derive(Default)]
pub(crate) struct Events(pub(crate) RefCell<State>);

/// Returns the index that an id was made of.
pub(crate) fn index_of(id: u64, base: u64) -> Option<usize> {
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
