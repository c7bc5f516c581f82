//! Tests of the status of threads after each turn.

use super::*;
use crate::timeline::state::states;

const HEAP: LockName = LockName::Runtime(Lock::ProcessHeap);
const NAMES: LockName = LockName::Profiler(0);
const WANTS: BlockReason = BlockReason::Lock(NAMES);

/// Asserts what is known of the main thread after each of its turns, one with each of these events.
fn assert_each<T: PartialEq + core::fmt::Debug>(
    turns: &[(TurnEvent, T)],
    known: impl Fn(&State<'_>) -> T,
) {
    let mut history = sampled();
    for (event, _) in turns {
        history.turn(MAIN, &[*event]);
    }
    for (states, (event, expected)) in states(&history, &[]).iter().zip(turns) {
        assert_eq!(known(&states[0]), *expected, "{event}");
    }
}

#[test]
fn locks_are_owned_from_taking_to_giving_back() {
    let turns = [
        (TurnEvent::Acquired(NAMES), vec![NAMES]),
        (TurnEvent::Acquired(HEAP), vec![NAMES, HEAP]),
        (TurnEvent::Acquired(NAMES), vec![NAMES, HEAP, NAMES]),
        // A lock that was taken twice is given back once for each time, the last first.
        (TurnEvent::Released(NAMES), vec![NAMES, HEAP]),
        (TurnEvent::Released(LockName::Profiler(1)), vec![NAMES, HEAP]),
        (TurnEvent::Released(NAMES), vec![HEAP]),
        (TurnEvent::Released(HEAP), vec![]),
    ];
    assert_each(&turns, |state| state.holds.to_vec());
}

#[test]
fn a_thread_waits_until_its_next_turn() {
    let turns = [
        (TurnEvent::Waits, Some("waits".to_owned())),
        (TurnEvent::TimedOut, None),
        (TurnEvent::Sleeps(5), Some("sleeps".to_owned())),
        (TurnEvent::Executed(1), None),
    ];
    assert_each(&turns, |state| state.waits.as_deref().map(str::to_owned));
}

#[test]
fn a_thread_keeps_its_mode() {
    let turns = [
        (TurnEvent::Executed(1), None),
        (TurnEvent::Mode { cooperative: true }, Some(true)),
        (TurnEvent::Executed(1), Some(true)),
        (TurnEvent::Mode { cooperative: false }, Some(false)),
    ];
    assert_each(&turns, |state| state.cooperative);
}

#[test]
fn code_of_the_profiler_is_left_with_all_inside_of_it() {
    use TurnEvent as Event;
    let kind = CallbackKind::ThreadCreated;
    let returned = Event::Returned("ForceGC", Outcome::Returned(HResult::OK));
    let turns = [
        (Event::Callback(kind), "ThreadCreated"),
        (Event::Called("ForceGC", None), "ThreadCreated ForceGC"),
        (Event::Hook, "ThreadCreated ForceGC hook"),
        (Event::HookOver, "ThreadCreated ForceGC"),
        (Event::Export, "ThreadCreated ForceGC export"),
        (Event::ExportOver, "ThreadCreated ForceGC"),
        (Event::Signal, "ThreadCreated ForceGC signal handler"),
        (Event::SignalOver, "ThreadCreated ForceGC"),
        (returned, "ThreadCreated"),
        (Event::Called("ForceGC", None), "ThreadCreated ForceGC"),
        // A jump has left the call.
        (Event::CallbackOver(kind), ""),
        (Event::CallbackOver(kind), ""),
    ];
    let turns = turns.map(|(event, inside)| (event, inside.to_owned()));
    assert_each(&turns, |state| state.inside.join(" "));
}

#[test]
fn a_thread_lives_from_its_first_turn_to_its_end() {
    let mut history = sampled();
    history.turn(MAIN, &[]);
    history.turn(SAMPLER, &[TurnEvent::Begins]);
    history.turn(SAMPLER, &[TurnEvent::Ends]);
    let lives: Vec<_> = states(&history, &[])
        .iter()
        .map(|states| states.iter().map(|state| state.life).collect::<Vec<_>>())
        .collect();
    // The worker, which never begins, was there before.
    let (waits, lives_on, ended) = (Life::Waiting, Life::Lives, Life::Ended);
    assert_eq!(lives[0], [lives_on, lives_on, waits]);
    assert_eq!(lives[1], [lives_on, lives_on, lives_on]);
    assert_eq!(lives[2], [lives_on, lives_on, ended]);
}

#[test]
fn a_thread_is_suspended_until_each_suspension_is_over() {
    let mut history = sampled();
    history.turn(SAMPLER, &[TurnEvent::Suspended(WORKER)]);
    history.turn(MAIN, &[TurnEvent::Suspended(WORKER)]);
    history.turn(SAMPLER, &[TurnEvent::Resumed(WORKER)]);
    history.turn(SAMPLER, &[TurnEvent::Resumed(MAIN)]);
    history.turn(MAIN, &[TurnEvent::Resumed(WORKER)]);
    let states = states(&history, &[]);
    let of_worker: Vec<_> = states.iter().map(|states| states[1].suspended_by.to_vec()).collect();
    assert_eq!(of_worker, [vec![SAMPLER], vec![SAMPLER, MAIN], vec![MAIN], vec![MAIN], vec![]]);
    let is_suspended: Vec<_> = states.iter().map(|states| states[1].is_suspended()).collect();
    assert_eq!(is_suspended, [true, true, true, true, false]);
}

#[test]
fn only_a_living_thread_waits_or_is_suspended() {
    for (life, expected) in [(Life::Waiting, false), (Life::Lives, true), (Life::Ended, false)] {
        let waits = Some("waits".into());
        let state = State { waits, suspended_by: vec![MAIN].into(), life, ..State::default() };
        assert_eq!((state.is_waiting(), state.is_suspended()), (expected, expected));
    }
    assert!(!State::default().is_waiting() && !State::default().is_suspended());
}

#[test]
fn what_was_recorded_replaces_what_was_derived() {
    let wants = edge(MAIN, WANTS, WORKER);
    let frozen = edge(MAIN, BlockReason::Suspended, SAMPLER);
    let mut history = sampled();
    history.turn(MAIN, &[TurnEvent::Acquired(HEAP), TurnEvent::Waits]);
    let status = ThreadStatus {
        stack: vec!["leaf".to_owned()].into(),
        holds: vec![NAMES],
        edges: vec![frozen, wants],
        suspended_by: vec![SAMPLER],
        cooperative: Some(true),
        ..ThreadStatus::default()
    };
    let joins = ThreadStatus {
        edges: vec![edge(WORKER, BlockReason::Join, MAIN)],
        ended: true,
        ..ThreadStatus::default()
    };
    let says = ThreadStatus { waits: Some("sleeps".to_owned()), ..ThreadStatus::default() };
    history.record(&[status, joins, says]);
    let all = states(&history, &[]);
    let [main, worker, sampler] = &all[0][..] else { panic!() };
    assert_eq!(
        (main.stack, &*main.holds, &*main.suspended_by),
        (&["leaf".to_owned()][..], &[NAMES][..], &[SAMPLER][..])
    );
    // A suspension is no wait.
    assert_eq!((&*main.edges, main.cooperative), (&[wants][..], Some(true)));
    assert_eq!(main.waits.as_deref(), Some("waits for the profiler's lock \"names\""));
    assert_eq!(worker.waits.as_deref(), Some("waits for the end of main"));
    assert_eq!((worker.life, main.life), (Life::Ended, Life::Lives));
    assert_eq!(sampler.waits.as_deref(), Some("sleeps"));
}

#[test]
fn waits_at_the_end_belong_to_the_last_turn() {
    let mut history = sampled();
    history.turn(MAIN, &[]);
    history.turn(WORKER, &[]);
    let wants = edge(MAIN, WANTS, WORKER);
    let recorded = ThreadStatus { edges: vec![wants], ..ThreadStatus::default() };
    history.record(&[recorded]);
    let (other, frozen) =
        (edge(MAIN, BlockReason::Join, SAMPLER), edge(WORKER, BlockReason::Suspended, SAMPLER));
    let all = states(&history, &[wants, other, frozen]);
    assert_eq!(all[0][0].edges, []);
    assert_eq!(all[1][0].edges, [wants, other], "each once");
    assert_eq!(all[1][1].edges, []);
    // The next turn of a thread ends its waits.
    history.turn(MAIN, &[]);
    assert_eq!(states(&history, &[])[2][0].edges, []);
}
