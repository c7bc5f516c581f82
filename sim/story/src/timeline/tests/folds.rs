//! Tests of turns that are drawn together, and of repetitions.

use super::*;
use crate::timeline::state::states;

fn folded(history: &History, fold: bool) -> Vec<Item> {
    items(history, &states(history, &[]), fold)
}

/// Returns each item as text: the turns with their words, or the repetition.
fn reported(history: &History, fold: bool) -> Vec<String> {
    let tell = |item: &Item| match item {
        Item::Entry(entry) => format!("{:?} {}", entry.turns, entry.texts.join(", ")),
        Item::Again { entries, times, last } => format!("{entries} again {times}, to {last}"),
    };
    folded(history, fold).iter().map(tell).collect()
}

const RUNS: TurnEvent = TurnEvent::Executed(1);
const SAYS: TurnEvent = TurnEvent::Says("hello");

#[test]
fn consecutive_turns_of_a_thread_are_one_entry() {
    let mut history = sampled();
    for (thread, event) in [(MAIN, SAYS), (MAIN, TurnEvent::Hook), (WORKER, SAYS), (MAIN, SAYS)] {
        history.turn(thread, &[event]);
    }
    assert_eq!(reported(&history, true), ["0..2 hello, enters a hook", "2..3 hello", "3..4 hello"]);
    let each = ["0..1 hello", "1..2 enters a hook", "2..3 hello", "3..4 hello"];
    assert_eq!(reported(&history, false), each);
}

#[test]
fn time_that_is_skipped_begins_an_entry() {
    let mut history = sampled();
    for at in [1, 2, 4, 15] {
        history.turn_at(at, MAIN, &[SAYS]);
    }
    assert_eq!(reported(&history, true), ["0..2 hello (2 times)", "2..3 hello", "3..4 hello"]);
    let pauses = |fold| {
        let items = folded(&history, fold);
        let pause = |item: &Item| match item {
            Item::Entry(entry) => entry.pause,
            Item::Again { .. } => panic!("{item:?}"),
        };
        items.iter().map(pause).collect::<Vec<_>>()
    };
    // A turn itself takes a microsecond.
    assert_eq!(pauses(true), [0, 1, 10]);
    assert_eq!(pauses(false), [0, 0, 1, 10]);
}

#[test]
fn actions_on_other_threads_and_waits_are_kept_apart() {
    let (suspends, resumes) = (TurnEvent::Suspended(WORKER), TurnEvent::Resumed(WORKER));
    let (starts, reads) = (TurnEvent::Started(WORKER), TurnEvent::Context(WORKER));
    let waits = TurnEvent::Waits;
    let cases: [(&[TurnEvent], &[usize]); 8] = [
        (&[SAYS, suspends, SAYS, reads, SAYS], &[5]),
        (&[starts, resumes], &[2]),
        (&[suspends, waits], &[1, 2]),
        (&[reads, waits], &[1, 2]),
        (&[starts, SAYS, waits], &[2, 3]),
        (&[SAYS, waits, SAYS, resumes], &[3, 4]),
        (&[waits, SAYS, waits], &[3]),
        (&[SAYS, waits, suspends, waits], &[2, 3, 4]),
    ];
    for (turns, expected) in cases {
        let mut history = sampled();
        for event in turns {
            history.turn(SAMPLER, &[*event]);
        }
        let ends: Vec<_> = folded(&history, true)
            .into_iter()
            .map(|item| match item {
                Item::Entry(entry) => entry.turns.end,
                Item::Again { .. } => panic!("{item:?}"),
            })
            .collect();
        assert_eq!(ends, expected, "{turns:?}");
    }
}

#[test]
fn an_entry_links_its_thread_to_those_that_it_acts_on_or_waits_for() {
    let mut history = sampled();
    history.turn(SAMPLER, &[TurnEvent::Suspended(WORKER), TurnEvent::Context(WORKER)]);
    history.turn(SAMPLER, &[TurnEvent::Started(MAIN), TurnEvent::Resumed(WORKER)]);
    history.turn(SAMPLER, &[TurnEvent::Waits]);
    let status = ThreadStatus {
        edges: vec![
            edge(SAMPLER, BlockReason::Join, MAIN),
            edge(SAMPLER, BlockReason::Join, WORKER),
        ],
        ..ThreadStatus::default()
    };
    history.record(&[ThreadStatus::default(), ThreadStatus::default(), status]);
    history.turn(MAIN, &[RUNS]);
    let links: Vec<_> = folded(&history, false)
        .into_iter()
        .map(|item| match item {
            Item::Entry(entry) => entry.links,
            Item::Again { .. } => panic!("{item:?}"),
        })
        .collect();
    let link = |to, waits| Link { from: SAMPLER, to, waits };
    assert_eq!(links[0], [link(WORKER, false), link(WORKER, false)]);
    assert_eq!(links[1], [link(MAIN, false), link(WORKER, false)]);
    assert_eq!(links[2], [link(MAIN, true), link(WORKER, true)]);
    assert_eq!(links[3], []);
}

#[test]
fn a_wait_is_reported_with_the_reason_that_was_recorded() {
    let mut history = sampled();
    history.turn(MAIN, &[TurnEvent::Waits]);
    history.record(&[ThreadStatus {
        waits: Some("waits for event 1".to_owned()),
        ..ThreadStatus::default()
    }]);
    assert_eq!(reported(&history, true), ["0..1 has to wait for event 1"]);
}

#[test]
fn instructions_of_several_threads_are_one_entry() {
    let mut history = sampled();
    for thread in [MAIN, WORKER, MAIN, SAMPLER] {
        history.turn(thread, &[TurnEvent::Executed(2), RUNS]);
    }
    history.turn(WORKER, &[SAYS]);
    history.turn(MAIN, &[RUNS]);
    let expected = [
        "0..4 3 threads execute 12 instructions in 4 turns",
        "4..5 hello",
        "5..6 executes an instruction",
    ];
    assert_eq!(reported(&history, true), expected);
    let items = folded(&history, true);
    let Item::Entry(first) = &items[0] else { panic!() };
    assert_eq!(first.threads, [MAIN, WORKER, SAMPLER]);
    assert_eq!(reported(&history, false).len(), 6);
    // After a pause they are reported again.
    let mut history = sampled();
    for (at, thread) in [(1, MAIN), (2, WORKER), (9, MAIN)] {
        history.turn_at(at, thread, &[RUNS]);
    }
    let expected =
        ["0..2 2 threads execute 2 instructions in 2 turns", "2..3 executes an instruction"];
    assert_eq!(reported(&history, true), expected);
}

/// Creates an interleaving in which two threads take turns, with these words.
fn saying(words: impl IntoIterator<Item = &'static str>) -> History {
    let mut history = sampled();
    for (words, turn) in words.into_iter().zip(0..) {
        history.turn(ThreadIndex(turn % 2), &[TurnEvent::Says(words)]);
    }
    history
}

#[test]
fn a_repetition_is_drawn_once_if_that_spares_three_entries() {
    let pair = ["a", "b"];
    let repeated = |times| reported(&saying(core::iter::repeat_n(pair, times).flatten()), true);
    assert_eq!(repeated(2), ["0..1 a", "1..2 b", "2..3 a", "3..4 b"]);
    assert_eq!(repeated(3), ["0..1 a", "1..2 b", "2 again 2, to 5"]);
    assert_eq!(repeated(50), ["0..1 a", "1..2 b", "2 again 49, to 99"]);
    let four = ["a", "b", "c", "d"];
    let twice = reported(&saying([four, four].concat()), true);
    assert_eq!(twice, ["0..1 a", "1..2 b", "2..3 c", "3..4 d", "4 again 1, to 7"]);
    // An incomplete repetition and what follows are drawn.
    let history = saying(["x", "b", "a", "b", "a", "b", "a", "c"]);
    let mut expected = vec!["0..1 x", "1..2 b", "2..3 a"];
    expected.extend(["2 again 2, to 6", "7..8 c"]);
    assert_eq!(reported(&history, true), expected);
    assert_eq!(reported(&history, false).len(), 8);
}

#[test]
fn one_entry_that_is_repeated_is_a_repetition() {
    let paused = |count: u64| {
        let mut history = sampled();
        for turn in 0..count {
            history.turn_at(10 * turn + 1, MAIN, &[SAYS]);
        }
        reported(&history, true)
    };
    // Before the first entry no time is skipped.
    assert_eq!(paused(4), ["0..1 hello", "1..2 hello", "2..3 hello", "3..4 hello"]);
    assert_eq!(paused(5), ["0..1 hello", "1..2 hello", "1 again 3, to 4"]);
}

#[test]
fn a_repetition_has_at_most_sixteen_entries() {
    const WORDS: [&str; 18] =
        ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r"];
    let twice = |length: usize| reported(&saying([&WORDS[..length]; 2].concat()), true);
    let sixteen = twice(16);
    assert_eq!((sixteen.len(), &*sixteen[16]), (17, "16 again 1, to 31"));
    assert_eq!(twice(18).len(), 36);
}

#[test]
fn entries_repeat_only_with_the_same_threads_links_and_pauses() {
    // Three times the same words, of which one differs in its thread, its link or its pause.
    let mut threads = sampled();
    for thread in [MAIN, WORKER, MAIN, WORKER, SAMPLER, WORKER] {
        threads.turn(thread, &[SAYS]);
    }
    assert_eq!(reported(&threads, true).len(), 6);
    let mut links = sampled();
    for thread in &mut links.threads {
        thread.name = "same".to_owned();
    }
    for target in [WORKER, WORKER, SAMPLER] {
        links.turn(MAIN, &[TurnEvent::Suspended(target)]);
        links.turn(SAMPLER, &[SAYS]);
    }
    assert_eq!(reported(&links, true).len(), 6);
    let mut pauses = sampled();
    for at in [1, 11, 21, 31, 42] {
        pauses.turn_at(at, MAIN, &[SAYS]);
    }
    assert_eq!(reported(&pauses, true).len(), 5);
    let mut words = sampled();
    for (words_of, thread) in
        [("a", MAIN), ("b", WORKER), ("a", MAIN), ("b", WORKER), ("a", MAIN), ("c", WORKER)]
    {
        words.turn(thread, &[TurnEvent::Says(words_of)]);
    }
    assert_eq!(reported(&words, true).len(), 6);
}
