//! Tests that calls of profiling methods under a schedule have the runtime's own answers, and effects.

use super::*;
use crate::Explorer;

const MAIN: ThreadIndex = ThreadIndex(0);
const NET9: Generation = Generation::Net9Unix;

/// Lets the program run until the runtime knows its thread. Returns the thread's id, or `None` if it has ended.
fn main_id(me: &CurrentThread<'_, '_>) -> Option<ThreadId> {
    loop {
        me.point();
        let id = me.target(MAIN).unwrap().id();
        if me.has_ended(MAIN) {
            return None;
        }
        if id.0 != 0 {
            return Some(id);
        }
    }
}

/// Executes `ask` on a thread of the profiler that the runtime does not know, in some interleavings, while the program runs.
/// Returns the events of that thread.
fn asking(
    load: impl Fn(&mut Setup<'_>),
    ask: fn(&CurrentThread<'_, '_>, ThreadId),
) -> Vec<TurnEvent> {
    let process = executing_on(NET9, &[("Main", vec![Statement::Work(60)])]);
    let mut explorer = Explorer::new(&process).unwrap();
    let asked = Rc::new(Cell::new(0));
    let load = |setup: &mut Setup<'_>| {
        load(setup);
        let asked = Rc::clone(&asked);
        setup.thread("asks", move |me| {
            if let Some(id) = main_id(me) {
                ask(me, id);
                asked.set(asked.get() + 1);
            }
        });
    };
    let mut events = Vec::new();
    for seed in 0..10 {
        let limits = Limits { instructions: 5, ..Limits::default() };
        let ending = explorer.run(&load, &mut Random::new(seed), limits, HistoryDetail::Events);
        assert_eq!(ending.verdict, None, "{seed}");
        let turns = ending.history.unwrap().turns.into_iter();
        events.extend(turns.filter(|turn| turn.thread != MAIN).flat_map(|turn| turn.events));
    }
    assert!(asked.get() > 0);
    events
}

#[test]
fn code_is_found_by_its_address_and_its_function() {
    asking(
        |_| {},
        |me, _| {
            let ip = {
                let world = me.kernel.world.borrow();
                world.linked().entries[world.expanded().placed[0].index()]
            };
            let (info, later) = (me.info(), me.names_later());
            let function = later.get_function_from_ip(ip).unwrap();
            assert_ne!(function.0, 0);
            assert_eq!(info.get_function_from_ip(ip).unwrap(), function);
            let (_, rejit) = later.get_function_from_ip2(ip).unwrap();
            assert_eq!(info.get_function_from_ip2(ip).unwrap(), (function, rejit));
            assert_eq!(info.get_function_from_ip3(ip).unwrap(), (function, rejit));
            let range = later.get_code_info(function).unwrap();
            assert_eq!(range.start, ip);
            assert_eq!(info.get_code_info(function).unwrap(), range);
            let nothing = [CodeRange { start: 0, size: 0 }; 2];
            let [mut two, mut three, mut four] = [nothing; 3];
            assert_eq!(info.get_code_info2(function, &mut two).unwrap(), 1);
            assert_eq!(info.get_code_info3(function, rejit, &mut three).unwrap(), 1);
            assert_eq!(info.get_code_info4(ip, &mut four).unwrap(), 1);
            assert_eq!([two, three, four].map(|ranges| ranges[0]), [range; 3]);
            assert_eq!(
                info.get_function_info2(function, None, 0).unwrap(),
                later.get_function_info2(function, None, 0).unwrap()
            );
        },
    );
}

#[test]
fn threads_are_listed_with_their_ids_and_handles() {
    asking(
        |_| {},
        |me, main| {
            let info = me.info();
            assert_eq!(info.enum_threads().unwrap(), [main]);
            let os = me.os_of(MAIN).unwrap();
            assert_eq!(info.get_thread_info(main).unwrap(), os.0);
            let handle = info.get_handle_from_thread(main).unwrap();
            assert_eq!(me.thread_with_handle(handle), Some(MAIN));
            assert_eq!((me.thread_with_handle(0), me.thread_with_handle(1)), (None, None));
            assert_eq!(me.thread_with(os), Some(MAIN));
            assert_eq!(me.thread_with(OsThreadId(77)), None);
        },
    );
}

#[test]
fn the_event_mask_is_the_one_that_was_set() {
    asking(
        |_| {},
        |me, _| {
            let before = me.info().get_event_mask().unwrap();
            let mask = EventMask(before.0 & !EventMask::MONITOR_THREADS.0);
            me.info().set_event_mask(mask).unwrap();
            assert_eq!(me.info().get_event_mask().unwrap(), mask);
            assert_ne!(mask, before);
        },
    );
}

#[test]
fn the_runtime_is_suspended_until_it_is_resumed() {
    asking(
        |_| {},
        |me, _| {
            let suspended = || me.kernel.runtime.process.get().suspended_by_profiler;
            assert!(!suspended());
            me.info().suspend_runtime().unwrap();
            assert!(suspended());
            me.info().resume_runtime().unwrap();
            assert!(!suspended());
        },
    );
}

#[test]
fn a_forced_collection_calls_back() {
    let handle = |setup: &mut Setup<'_>| {
        setup.on(CallbackKind::GarbageCollectionStarted, |me| me.say("collects"));
    };
    let events = asking(handle, |me, _| {
        // A thread in a callback of the GC, or one that has suspended the runtime, may not force one.
        me.info().force_gc().unwrap();
    });
    let count = |event| events.iter().filter(|it| **it == event).count();
    let forced = count(TurnEvent::Called("ForceGC", None));
    let collected = count(TurnEvent::Callback(CallbackKind::GarbageCollectionStarted));
    assert!(forced > 0 && collected >= forced, "{events:?}");
    assert_eq!(count(TurnEvent::Returned("ForceGC", Outcome::Returned(HResult::OK))), forced);
}

#[test]
fn a_thread_is_known_to_the_runtime_after_it_was_initialized() {
    let process = executing_on(Generation::CoreClr31Windows, &[("Main", vec![Statement::Work(9)])]);
    let mut explorer = Explorer::new(&process).unwrap();
    let load = |setup: &mut Setup<'_>| {
        setup.thread("stranger", |me| {
            let is_known = || me.kernel.runtime.thread(me.os(), |thread| thread.initialized);
            assert_eq!(is_known(), Some(false));
            let _ = me.info().initialize_current_thread();
            assert_eq!(is_known(), Some(true));
        });
    };
    let (limits, detail) = (Limits::default(), HistoryDetail::Nothing);
    assert_eq!(explorer.run(&load, &mut Random::new(1), limits, detail).verdict, None);
}
