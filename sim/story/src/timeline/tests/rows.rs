//! Tests of interleavings drawn for the terminal.

use super::*;

const HEAP: LockName = LockName::Runtime(Lock::ProcessHeap);
/// Options without folding.
const EACH: RowOptions = RowOptions { width: 100, fold: false, frames: 8 };

fn plain(history: &History) -> Timeline<'_> {
    Timeline { history, title: "an interleaving", ending: "", edges: &[], replay: None, facts: &[] }
}

fn texts(rows: &[TimelineRow]) -> Vec<String> {
    rows.iter().map(ToString::to_string).collect()
}

/// Returns the rows from the first turn on.
fn body(timeline: &Timeline<'_>, options: RowOptions) -> Vec<String> {
    let rows = texts(&timeline.rows(options));
    let heads = timeline.history.threads.len();
    let legend = rows.iter().position(String::is_empty).unwrap();
    rows[legend + 1 + heads..].to_vec()
}

/// Creates an interleaving in which the sampler suspends the owner of the heap, and allocates.
fn frozen() -> (History, [Edge; 2]) {
    use TurnEvent as Event;
    let wants = edge(SAMPLER, BlockReason::Lock(HEAP), WORKER);
    let is_frozen = edge(WORKER, BlockReason::Suspended, SAMPLER);
    let stack = |frames: &[&str]| frames.iter().map(ToString::to_string).collect();
    let worker = ThreadStatus {
        stack: stack(&["malloc", "strdup", "Worker.Run", "Thread.Start"]),
        holds: vec![HEAP],
        cooperative: Some(false),
        ..ThreadStatus::default()
    };
    let suspended =
        ThreadStatus { suspended_by: vec![SAMPLER], edges: vec![is_frozen], ..worker.clone() };
    let main = ThreadStatus {
        stack: stack(&["Main"]),
        cooperative: Some(true),
        ..ThreadStatus::default()
    };
    let sampler = ThreadStatus { stack: stack(&["loop"]), ..ThreadStatus::default() };
    let blocked = ThreadStatus { edges: vec![wants], ..sampler.clone() };
    let mut history = sampled();
    let started = ThreadStatus { stack: stack(&[]), holds: vec![], ..worker.clone() };
    history.turn(MAIN, &[Event::Executed(3)]);
    history.record(&[main.clone(), started, ThreadStatus::default()]);
    history.turn(WORKER, &[Event::Executed(2), Event::Acquired(HEAP)]);
    history.record(&[main.clone(), worker.clone(), ThreadStatus::default()]);
    history.turn(SAMPLER, &[Event::Begins]);
    history.record(&[main.clone(), worker, sampler.clone()]);
    history.turn_at(120, SAMPLER, &[Event::Suspended(WORKER)]);
    history.record(&[main.clone(), suspended.clone(), sampler.clone()]);
    history.turn(MAIN, &[Event::Callback(CallbackKind::ThreadCreated)]);
    history.record(&[main.clone(), suspended.clone(), sampler]);
    history.turn(SAMPLER, &[Event::System("allocates"), Event::Waits]);
    history.record(&[main, suspended, blocked]);
    (history, [wants, is_frozen])
}

#[test]
fn a_deadlock_is_drawn_with_its_end() {
    let (history, edges) = frozen();
    let facts = [
        ("runtime", "net9-windows"),
        ("avoided by", "memory that was allocated before the thread was suspended, and no other"),
    ];
    let timeline = Timeline {
        title: "the sampler waits for a thread that it has suspended itself",
        ending: "deadlock: worker and sampler cannot go on\nallocate nothing while a thread is suspended",
        edges: &edges,
        replay: Some("clr1:2c"),
        facts: &facts,
        ..plain(&history)
    };
    let options = RowOptions { width: 64, fold: false, frames: 3 };
    insta::assert_snapshot!("a_deadlock", texts(&timeline.rows(options)).join("\n"));
    let mut derived = history.clone();
    for turn in &mut derived.turns {
        turn.statuses.clear();
    }
    let timeline = Timeline { history: &derived, edges: &[], facts: &[], ..timeline };
    insta::assert_snapshot!("a_deadlock_derived", texts(&timeline.rows(options)).join("\n"));
}

#[test]
fn a_row_has_its_time_its_lanes_the_name_and_the_words() {
    let mut history = sampled();
    history.turn(MAIN, &[TurnEvent::Says("hello")]);
    history.turn_at(12_345, WORKER, &[]);
    // Times are as wide as the last one; a name is as wide as the longest.
    let expected = [
        "    1  ●   │   │   main     hello",
        "       │   │   │   … 12343 µs are skipped",
        "12345  │   ●   │   worker   goes on",
    ];
    assert_eq!(body(&plain(&history), EACH)[..3], expected);
    let rows = plain(&history).rows(EACH);
    let first = rows.iter().find(|row| row.to_string() == expected[0]).unwrap();
    let tones: Vec<_> = first.spans.iter().map(|span| span.tone).collect();
    let lane = [Tone::Running, Tone::Lock, Tone::Plain];
    let (dim, other) = ([Tone::Dim], [Tone::Dim, Tone::Lock, Tone::Plain]);
    let expected = [&dim[..], &lane, &other, &other, &[Tone::Head, Tone::Plain]].concat();
    assert_eq!(tones, expected);
}

#[test]
fn long_names_are_cut_and_long_words_go_on_in_the_next_row() {
    let mut history = history(&[("a thread with a name of many words", ThreadKind::App)]);
    history.turn(MAIN, &[TurnEvent::Says("one two three four five six seven")]);
    // Twenty characters are for the name, and at least 24 for the words, however narrow it is.
    let expected = [
        " 1  ●  a thread with a nam…  one two three four five",
        "    │                        six seven",
    ];
    assert_eq!(body(&plain(&history), RowOptions { width: 10, ..EACH })[..2], expected);
    let wide = body(&plain(&history), EACH);
    let expected = " 1  ●   a thread with a nam…  one two three four five six seven";
    assert_eq!(wide[0], expected);
    assert_eq!(body(&plain(&history), RowOptions { width: 63, ..EACH })[0], expected);
    assert_ne!(body(&plain(&history), RowOptions { width: 62, ..EACH })[0], expected);
}

/// Words have what the time, the lanes and the name leave: here 28 characters are in front of them.
#[test]
fn words_end_at_the_width() {
    let mut history = sampled();
    let words = TurnEvent::Says("one two three four five sixes!");
    history.turn_at(12_345, MAIN, &[words]);
    let expected = "12345  ●   │   │   main     one two three four five sixes!";
    assert_eq!(body(&plain(&history), RowOptions { width: 58, ..EACH })[0], expected);
    assert_ne!(body(&plain(&history), RowOptions { width: 57, ..EACH })[0], expected);
}

#[test]
fn entries_of_several_threads_have_no_name() {
    let mut history = sampled();
    history.turn(MAIN, &[TurnEvent::Executed(1)]);
    history.turn(WORKER, &[TurnEvent::Executed(1)]);
    let expected = " 1  ●   ●   │   2 threads execute 2 instructions in 2 turns";
    let fold = |width| RowOptions { width, fold: true, frames: 8 };
    assert_eq!(body(&plain(&history), fold(100))[0], expected);
    // The words may take the place of the name.
    assert_eq!(body(&plain(&history), fold(59))[0], expected);
    assert_ne!(body(&plain(&history), fold(58))[0], expected);
}

#[test]
fn repetitions_are_counted() {
    let drawn = |times: u64, words: &[&'static str]| {
        let mut history = sampled();
        for _ in 0..times {
            for (words, thread) in words.iter().zip([MAIN, WORKER, MAIN, WORKER]) {
                history.turn(thread, &[TurnEvent::Says(words)]);
            }
        }
        body(&plain(&history), RowOptions::default())
    };
    let twice = drawn(2, &["a", "b", "c", "d"]);
    assert_eq!(twice[4], "    │   │   │   … the last 4 of these once more, until 8 µs");
    let thrice = drawn(3, &["a", "b"]);
    assert_eq!(thrice[2], "    │   │   │   … the last 2 of these 2 more times, until 6 µs");
    let mut paused = sampled();
    for turn in 0..5 {
        paused.turn_at(1 + 10 * turn, MAIN, &[TurnEvent::Says("a")]);
    }
    let same = "    │   │   │   … the same 3 more times, until 41 µs";
    assert_eq!(body(&plain(&paused), RowOptions::default())[3], same);
}

/// The words of a repetition may take the place of the name: of seven characters and two blanks.
#[test]
fn repetitions_are_wrapped_at_the_width() {
    let mut history = sampled();
    for words in ["a", "b", "c", "d"].repeat(2) {
        let thread = if "ac".contains(words) { MAIN } else { WORKER };
        history.turn(thread, &[TurnEvent::Says(words)]);
    }
    let drawn = |width| body(&plain(&history), RowOptions { width, ..RowOptions::default() });
    // At least 24 characters are for words.
    let narrow = drawn(10);
    assert_eq!(narrow[4], "    │ │ │ … the last 4 of these once more,");
    assert_eq!(narrow[5], "    │ │ │ until 8 µs");
    let wide = "    │   │   │   … the last 4 of these once more, until 8 µs";
    assert_eq!(drawn(59)[4], wide);
    assert_ne!(drawn(58)[4], wide);
}

#[test]
fn the_legend_is_wrapped_at_the_width() {
    let legend = |width| {
        let history = History::default();
        let timeline = Timeline { title: "a", ..plain(&history) };
        let rows = texts(&timeline.rows(RowOptions { width, ..EACH }));
        rows[1..rows.iter().position(String::is_empty).unwrap()].to_vec()
    };
    let one = "● runs   │ could run   ◆ ║ the same in a callback or a profiling method   ┊ waits   \
               ▒ is suspended   ' \" * owns one lock, two, more";
    assert_eq!(legend(200), [one]);
    // There are three blanks behind each item, the last one included.
    let needed = one.chars().count() + 3;
    assert_eq!(legend(needed), [one]);
    assert_eq!(legend(needed - 1).len(), 2);
    let narrow = legend(1);
    assert_eq!(narrow.len(), 6);
    assert_eq!((&*narrow[0], &*narrow[5]), ("● runs", "' \" * owns one lock, two, more"));
}

#[test]
fn a_status_takes_as_many_rows_as_it_needs() {
    let mut history = history(&[("main", ThreadKind::App)]);
    history.turn(MAIN, &[]);
    let status = ThreadStatus {
        waits: Some("waits for event 1".to_owned()),
        holds: vec![LockName::Profiler(0)],
        cooperative: Some(true),
        ..ThreadStatus::default()
    };
    history.record(&[status]);
    let drawn = |width| body(&plain(&history), RowOptions { width, ..EACH })[1..].to_vec();
    let one = "  main  waits for event 1  owns the profiler's lock \"names\"  cooperative";
    // Two characters are kept free behind each part.
    assert_eq!(drawn(74), ["", one]);
    let two = [
        "",
        "  main  waits for event 1  owns the profiler's lock \"names\"",
        "        cooperative",
    ];
    assert_eq!(drawn(73), two);
    let three = [
        "",
        "  main  waits for event 1",
        "        owns the profiler's lock \"names\"",
        "        cooperative",
    ];
    assert_eq!(drawn(10), three);
}

#[test]
fn a_stack_is_drawn_up_to_the_number_of_frames() {
    let mut history = history(&[("main", ThreadKind::App)]);
    history.turn(MAIN, &[]);
    let stack = ["one", "two", "three"].map(str::to_owned).into_iter().collect();
    history.record(&[ThreadStatus { stack, ..ThreadStatus::default() }]);
    let drawn = |frames| body(&plain(&history), RowOptions { frames, ..EACH })[3..].to_vec();
    assert_eq!(drawn(3), ["    one", "    two", "    three"]);
    assert_eq!(drawn(2), ["    one", "    two", "    … 1 more"]);
    assert_eq!(drawn(0), ["    … 3 more"]);
}

#[test]
fn facts_are_wrapped_beside_their_names() {
    let history = History::default();
    let facts = [("runtime", "net9"), ("way", "one two three four five six")];
    let drawn = |width, replay| {
        let timeline = Timeline { facts: &facts, replay, ..plain(&history) };
        body(&timeline, RowOptions { width, ..EACH })
    };
    let narrow = ["", "runtime net9", "way one two three four", "    five six"];
    assert_eq!(drawn(24, None), narrow);
    // At least twenty characters are for the text.
    assert_eq!(drawn(0, None), narrow);
    let wide = ["", "runtime net9", "way one two three four five six", "replay clr1:"];
    assert_eq!(drawn(31, Some("clr1:")), wide);
    let none = Timeline { replay: Some("clr1:"), ..plain(&history) };
    assert_eq!(body(&none, EACH), ["", "replay clr1:"]);
    assert_eq!(body(&plain(&history), EACH), [] as [&str; 0]);
}
