//! EventPipe: a profiler's sessions and events.
#![allow(non_snake_case)]

use clr_com::*;
use clr_runtime::generation::Generation;
use clr_walker::profiling::{FunctionId, HResult, ThreadId};
use clrsim::{Report, Session, results};
use std::cell::RefCell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::{null, null_mut};

const TEXT: &str = r#"
function "App.Main" kind="jit" { body { call "App.Load"; new } }
function "App.Load" kind="jit" { body { new } }
stop at="App.Load"
"#;
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// An event as it was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Delivered {
    provider: String,
    id: u32,
    version: u32,
    metadata: Vec<u8>,
    data: Vec<u8>,
    /// True for an activity that is not NULL, and for a related one.
    activities: [bool; 2],
    walked: HResult,
    frames: Vec<FunctionId>,
}

/// A function that the profiler calls in a callback, by the callback's name.
type Act = fn(&ICorProfilerInfo12);

thread_local! {
    static INFO: RefCell<Option<ManuallyDrop<ICorProfilerInfo12>>> = const { RefCell::new(None) };
    static DELIVERED: RefCell<Vec<Delivered>> = const { RefCell::new(Vec::new()) };
    static CREATED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    static INITIALIZE: RefCell<Option<Act>> = const { RefCell::new(None) };
    static DELIVER: RefCell<Option<Act>> = const { RefCell::new(None) };
    static SESSION: RefCell<u64> = const { RefCell::new(0) };
}

fn info() -> ManuallyDrop<ICorProfilerInfo12> {
    INFO.with_borrow(|info| ManuallyDrop::new(ICorProfilerInfo12::clone(info.as_ref().unwrap())))
}

struct Profiler;

impl IUnknownMethods for Profiler {}
impl ICorProfilerCallbackMethods for Profiler {
    unsafe fn Initialize(&self, info: *mut c_void) -> HResult {
        // SAFETY: the runtime's object; its references are not counted.
        let unknown = ManuallyDrop::new(unsafe { IUnknown::from_raw(info) }.unwrap());
        let Ok(info) = unknown.cast::<ICorProfilerInfo12>() else { return HResult::FAIL };
        INFO.set(Some(ManuallyDrop::new(info)));
        // COR_PRF_ENABLE_STACK_SNAPSHOT, COR_PRF_HIGH_MONITOR_EVENT_PIPE.
        // SAFETY: no pointers.
        let events = unsafe { self::info().SetEventMask2(0x1000_0000, 0x80) };
        assert_eq!(events, HResult::OK);
        if let Some(act) = INITIALIZE.take() {
            act(&self::info());
        }
        HResult::OK
    }
}
impl ICorProfilerCallback2Methods for Profiler {}
impl ICorProfilerCallback3Methods for Profiler {}
impl ICorProfilerCallback4Methods for Profiler {}
impl ICorProfilerCallback5Methods for Profiler {}
impl ICorProfilerCallback6Methods for Profiler {}
impl ICorProfilerCallback7Methods for Profiler {}
impl ICorProfilerCallback8Methods for Profiler {}
impl ICorProfilerCallback9Methods for Profiler {}
impl ICorProfilerCallback10Methods for Profiler {
    unsafe fn EventPipeEventDelivered(
        &self,
        provider: u64,
        id: u32,
        version: u32,
        metadata_len: u32,
        metadata: *const u8,
        data_len: u32,
        data: *const u8,
        activity: *const Guid,
        related: *const Guid,
        thread: ThreadId,
        frames_len: u32,
        frames: *const u64,
    ) -> HResult {
        // Sessions of profilers have neither (`write_event` of src/native/eventpipe/ep.c).
        assert_eq!((thread, frames_len, frames), (ThreadId(0), 0, null()));
        // SAFETY: the runtime passes this number of bytes.
        let bytes = |from, len| unsafe { std::slice::from_raw_parts(from, len as usize) }.to_vec();
        let (walked, frames) = walk();
        let delivered = Delivered {
            provider: name_of(provider),
            id,
            version,
            metadata: bytes(metadata, metadata_len),
            data: bytes(data, data_len),
            activities: [!activity.is_null(), !related.is_null()],
            walked,
            frames,
        };
        DELIVERED.with_borrow_mut(|all| all.push(delivered));
        if let Some(act) = DELIVER.take() {
            act(&info());
        }
        HResult::OK
    }

    unsafe fn EventPipeProviderCreated(&self, provider: u64) -> HResult {
        CREATED.with_borrow_mut(|all| all.push(provider));
        HResult::OK
    }
}

unsafe extern "system" fn on_frame(
    function: FunctionId,
    _: u64,
    _: FrameHandle,
    _: u32,
    _: *mut u8,
    frames: *mut c_void,
) -> HResult {
    // SAFETY: the vector of `walk`.
    unsafe { (*frames.cast::<Vec<FunctionId>>()).push(function) };
    HResult::OK
}

fn walk() -> (HResult, Vec<FunctionId>) {
    let mut frames = Vec::new();
    let data = (&raw mut frames).cast();
    // SAFETY: the callback gets what it expects.
    let walked = unsafe { info().DoStackSnapshot(ThreadId(0), Some(on_frame), 0, data, null(), 0) };
    (walked, frames)
}

fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

fn name_of(provider: u64) -> String {
    let (mut len, mut name) = (0, [0; 64]);
    // SAFETY: the room is as large as announced.
    let result =
        unsafe { info().EventPipeGetProviderInfo(provider, 64, &raw mut len, name.as_mut_ptr()) };
    assert_eq!(result, HResult::OK);
    String::from_utf16_lossy(&name[..len as usize - 1])
}

fn config(name: &[u16], keywords: u64, level: u32) -> EventProviderConfig {
    EventProviderConfig { name: name.as_ptr(), keywords, level, filter: null() }
}

/// Begins a session with a provider, and notes its id.
fn start(info: &ICorProfilerInfo12, name: &str, keywords: u64, level: u32) {
    let name = wide(name);
    let mut session = 0;
    // SAFETY: the pointers are to what is announced.
    let result = unsafe {
        info.EventPipeStartSession(1, &config(&name, keywords, level), 0, &raw mut session)
    };
    assert_eq!(result, HResult::OK);
    assert_ne!(session, 0);
    SESSION.set(session);
}

fn stop(info: &ICorProfilerInfo12) {
    // SAFETY: no pointers.
    assert_eq!(unsafe { info.EventPipeStopSession(SESSION.take()) }, HResult::OK);
}

fn open(generation: Generation) -> Session {
    DELIVERED.take();
    CREATED.take();
    Session::open(TEXT, generation).unwrap()
}

/// Runs the program with the profiler. Returns its events.
fn run(generation: Generation, initialize: Act) -> (Vec<Delivered>, Report) {
    let session = open(generation);
    INITIALIZE.set(Some(initialize));
    let profiler: ICorProfilerCallback10 = create(Profiler);
    // SAFETY: a profiler's object.
    assert_eq!(unsafe { session.initialize(profiler.as_raw()) }, HResult::OK);
    session.run().unwrap();
    (DELIVERED.take(), session.final_report())
}

fn ticks(events: &[Delivered]) -> usize {
    events.iter().filter(|event| event.provider == RUNTIME && event.id == 10).count()
}

/// The runtimes that have EventPipe for profilers.
fn with_events() -> impl Iterator<Item = Generation> {
    Generation::ALL.into_iter().filter(|one| one.profiler_info() >= 12)
}

#[test]
fn allocations_are_delivered_on_their_thread_which_can_be_walked() {
    let mut runtimes = 0;
    for generation in with_events() {
        let (events, report) = run(generation, |info| start(info, RUNTIME, 1, 5));
        runtimes += 1;
        assert_eq!(report.findings(), [], "{generation}");
        assert_eq!((events.len(), ticks(&events)), (2, 2), "{generation}");
        // App.Load was called by App.Main, which allocates then itself.
        let depth: Vec<_> = events.iter().map(|event| event.frames.len()).collect();
        assert_eq!(depth[0], depth[1] + 1, "{generation}");
        // The address of the object: that of ObjectAllocated.
        let object = |event: &Delivered| event.data[event.data.len() - 16..][..8].to_vec();
        let objects: Vec<_> = events.iter().map(object).collect();
        let ids = [0x7000_0000_1000_u64, 0x7000_0000_1018];
        assert_eq!(objects, ids.map(u64::to_le_bytes), "{generation}");
        for event in &events {
            assert_eq!((event.version, event.walked), (4, HResult::OK), "{generation}");
            assert_eq!(event.activities, [true, false]);
            // Number, no name, keyword, version, level, no parameters.
            let mut metadata = vec![10, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
            metadata.extend([4, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(event.metadata, metadata);
            let name: Vec<u8> =
                wide("System.Object").into_iter().flat_map(u16::to_le_bytes).collect();
            assert_eq!(event.data[26..26 + name.len()], name);
            assert_eq!(event.data.len(), 26 + name.len() + 4 + 8 + 8);
            assert_eq!(event.data[..4], event.data[10..14], "the amount comes twice");
        }
    }
    assert!(runtimes >= 5);
}

#[test]
fn runtimes_before_5_0_do_not_have_the_interface() {
    for generation in Generation::ALL.into_iter().filter(|one| one.profiler_info() < 12) {
        let session = open(generation);
        let profiler: ICorProfilerCallback10 = create(Profiler);
        // SAFETY: a profiler's object.
        let result = unsafe { session.initialize(profiler.as_raw()) };
        assert_eq!(result, HResult::FAIL, "{generation}");
    }
}

#[test]
fn keywords_and_levels_choose_events() {
    let wants: [(Act, usize); 4] = [
        (|info| start(info, RUNTIME, 1, 4), 0),
        (|info| start(info, RUNTIME, 2, 5), 0),
        (|info| start(info, "Other", u64::MAX, 5), 0),
        (|info| start(info, RUNTIME, u64::MAX, 5), 2),
    ];
    for (act, wanted) in wants {
        assert_eq!(run(Generation::Net8Unix, act).0.len(), wanted);
    }
}

#[test]
fn two_sessions_get_an_event_each() {
    let (events, _) = run(Generation::Net9Windows, |info| {
        start(info, RUNTIME, 1, 5);
        start(info, RUNTIME, 1, 5);
    });
    assert_eq!(ticks(&events), 4);
}

#[test]
fn the_end_of_a_session_writes_process_info_and_then_nothing() {
    let (events, report) = run(Generation::Net8Unix, |info| {
        start(info, RUNTIME, 1, 5);
        DELIVER.set(Some(stop));
    });
    assert_eq!(report.findings(), []);
    let ids: Vec<_> = events.iter().map(|one| (one.provider.as_str(), one.id)).collect();
    assert_eq!(ids, [(RUNTIME, 10), ("Microsoft-DotNETCore-EventPipe", 1)]);
    // The version of its metadata is not its own.
    assert_eq!(events[1].version, 0);
    let name = wide("ProcessInfo").len() * 2;
    assert_eq!(events[1].metadata[4 + name + 8], 1);
}

#[test]
fn a_provider_that_is_added_later_is_enabled_when_it_is_created() {
    let (events, _) = run(Generation::Net10Unix, |info| {
        start(info, "Other", 1, 5);
        let session = SESSION.take();
        let before = provider(info, "Before");
        for name in [RUNTIME, "Before", "Own"] {
            let name = wide(name);
            // SAFETY: the pointer is to a text.
            let added = unsafe { info.EventPipeAddProviderToSession(session, config(&name, 1, 5)) };
            assert_eq!(added, HResult::OK);
        }
        let event = define(info, before, 1, 5);
        assert_eq!(write(info, event, &[b"x"]), HResult::OK);
        let event = define(info, provider(info, "Own"), 1, 5);
        assert_eq!(write(info, event, &[b"ab", b"c"]), HResult::OK);
    });
    // Not of the providers that were there before.
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].provider.as_str(), events[0].id), ("Own", 7));
    assert_eq!(events[0].data, b"abc");
    assert_eq!(CREATED.take().len(), 2);
}

fn provider(info: &ICorProfilerInfo12, name: &str) -> u64 {
    let mut provider = 0;
    // SAFETY: the pointers are to a text, and to room.
    let made = unsafe { info.EventPipeCreateProvider(wide(name).as_ptr(), &raw mut provider) };
    assert_eq!(made, HResult::OK);
    provider
}

fn define(info: &ICorProfilerInfo12, provider: u64, keywords: u64, level: u32) -> u64 {
    let (mut event, array) = (0, wide("bytes"));
    // An array of bytes.
    let parameter = EventParameter { kind: 19, element: 6, name: array.as_ptr() };
    // SAFETY: the pointers are to what is announced.
    let defined = unsafe {
        info.EventPipeDefineEvent(
            provider,
            wide("Mine").as_ptr(),
            7,
            keywords,
            2,
            level,
            3,
            0,
            1,
            &raw const parameter,
            &raw mut event,
        )
    };
    assert_eq!(defined, HResult::OK);
    event
}

fn write(info: &ICorProfilerInfo12, event: u64, parts: &[&[u8]]) -> HResult {
    let part = |part: &&[u8]| EventData {
        data: part.as_ptr() as u64,
        size: part.len() as u32,
        reserved: 0,
    };
    let parts: Vec<_> = parts.iter().map(part).collect();
    // SAFETY: the pointers are to what is announced.
    unsafe { info.EventPipeWriteEvent(event, parts.len() as u32, parts.as_ptr(), null(), null()) }
}

#[test]
fn metadata_of_arrays_has_the_second_form() {
    let (events, _) = run(Generation::Net8Unix, |info| {
        start(info, "Own", 0, 5);
        let event = define(info, provider(info, "Own"), 0, 0);
        write(info, event, &[]);
    });
    let name: Vec<u8> = wide("Mine").into_iter().flat_map(u16::to_le_bytes).collect();
    let array: Vec<u8> = wide("bytes").into_iter().flat_map(u16::to_le_bytes).collect();
    let mut expected = vec![7, 0, 0, 0];
    expected.extend(name);
    expected.extend([0; 8]);
    // Version, level, no parameters of the first form; the opcode.
    expected.extend([2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend([1, 0, 0, 0, 1, 3]);
    // The second form: its size, one parameter with its size, an array of bytes.
    expected.extend([4 + 12 + 12, 0, 0, 0, 2, 1, 0, 0, 0, 12 + 12, 0, 0, 0]);
    expected.extend(array);
    expected.extend([19, 0, 0, 0, 6, 0, 0, 0]);
    assert_eq!(events[0].metadata, expected);
}

#[test]
fn bad_arguments_are_refused_as_in_a_clr() {
    let (_, report) = run(Generation::Net8Unix, |info| {
        let (name, mut out) = (wide("Own"), 0_u64);
        let config = config(&name, 1, 5);
        let nothing = EventProviderConfig { name: null(), ..config };
        // SAFETY: pointers are NULL, or to what is announced.
        unsafe {
            let refused = [
                info.EventPipeStartSession(0, &raw const config, 0, &raw mut out),
                info.EventPipeStartSession(1, null(), 0, &raw mut out),
                info.EventPipeStartSession(1, &raw const config, 0, null_mut()),
                info.EventPipeAddProviderToSession(0x123, config),
                info.EventPipeAddProviderToSession(0x123, nothing),
                info.EventPipeCreateProvider(null(), &raw mut out),
                info.EventPipeCreateProvider(name.as_ptr(), null_mut()),
                info.EventPipeGetProviderInfo(0, 0, null_mut(), null_mut()),
                info.EventPipeGetProviderInfo(0x123, 1, null_mut(), null_mut()),
                info.EventPipeWriteEvent(0, 0, null(), null(), null()),
            ];
            assert_eq!(refused, [HResult::INVALID_ARGUMENT; 10]);
            // The CLR ends what there is, and says nothing of what there is not.
            assert_eq!(info.EventPipeStopSession(0x123), HResult::OK);
            let own = provider(info, "Own");
            let (mut len, mut text) = (0, [0_u16; 5]);
            // Of the exact size it is too small.
            let exact = info.EventPipeGetProviderInfo(own, 4, &raw mut len, text.as_mut_ptr());
            assert_eq!((exact, len), (results::INSUFFICIENT_BUFFER, 4));
            assert_eq!(name_of(own), "Own");
            let object = EventParameter { kind: 1, element: 0, name: name.as_ptr() };
            let define = |name: *const u16, parameter, event| {
                info.EventPipeDefineEvent(own, name, 1, 0, 0, 0, 0, 0, 1, parameter, event)
            };
            let refused = [
                define(name.as_ptr(), &raw const object, &raw mut out),
                define(name.as_ptr(), null(), &raw mut out),
                define(null(), &raw const object, &raw mut out),
                define(name.as_ptr(), &raw const object, null_mut()),
            ];
            assert_eq!(refused, [HResult::INVALID_ARGUMENT; 4]);
        }
        for _ in 0..64 {
            start(info, "Own", 1, 5);
        }
        // SAFETY: as above.
        let more = unsafe { info.EventPipeStartSession(1, &raw const config, 0, &raw mut out) };
        assert_eq!(more, HResult::FAIL);
    });
    assert_eq!(report.findings(), []);
}

#[test]
fn ids_that_the_runtime_has_not_given_are_found() {
    let (_, report) = run(Generation::Net8Unix, |info| {
        assert_eq!(write(info, 0x123, &[]), HResult::INVALID_ARGUMENT);
        // SAFETY: NULL, which the method allows.
        let name = unsafe { info.EventPipeGetProviderInfo(0x456, 0, null_mut(), null_mut()) };
        assert_eq!(name, HResult::INVALID_ARGUMENT);
    });
    let kinds: Vec<_> = report.findings().iter().map(clrsim::Finding::kind).collect();
    assert_eq!(kinds, ["unknown-id", "unknown-id"]);
}
