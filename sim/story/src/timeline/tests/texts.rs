//! Tests of words, of lines that are wrapped, and of what is escaped.

use super::*;
use crate::timeline::json::string;
use crate::timeline::words::{describe, events, instructions, kind, status, summary};
use crate::timeline::wrap::{GLUE, cut, fitted, wrapped};
use clr_explore::visible;
use std::borrow::Cow;

const WALK: &str = "DoStackSnapshot";
const HEAP: LockName = LockName::Runtime(Lock::ProcessHeap);
const OK: Outcome = Outcome::Returned(HResult::OK);

#[test]
fn lines_end_between_words_and_long_words_are_split() {
    let cases: [(&str, usize, &[&str]); 12] = [
        ("", 5, &[""]),
        ("one two three", 7, &["one two", "three"]),
        ("one two three", 6, &["one", "two", "three"]),
        ("one two three", 13, &["one two three"]),
        ("one two three", 12, &["one two", "three"]),
        ("  one   two ", 20, &["one two"]),
        ("abcdefgh ij", 3, &["abc", "def", "gh", "ij"]),
        ("abcdefgh i", 4, &["abcd", "efgh", "i"]),
        ("ab cdefgh", 5, &["ab", "cdefg", "h"]),
        ("abcd", 2, &["ab", "cd"]),
        ("äöü ß", 3, &["äöü", "ß"]),
        ("ab", 0, &["a", "b"]),
    ];
    for (text, width, expected) in cases {
        assert_eq!(fitted(text, width), expected, "{text:?} in {width}");
    }
    assert_eq!(wrapped("a longer\tone", 3), ["a", "longer", "one"]);
}

#[test]
fn no_line_ends_at_glue() {
    let text = format!("one{GLUE}· two");
    assert_eq!(fitted(&text, 9), ["one · two"]);
    assert_eq!(fitted(&text, 5), ["one ·", "two"]);
    assert_eq!(fitted(&format!("ab one{GLUE}·"), 7), ["ab", "one ·"]);
}

#[test]
fn an_ellipsis_stands_for_what_is_cut_off() {
    for (width, expected) in [(6, "äbcde"), (5, "äbcde"), (4, "äbc…"), (1, "…")] {
        assert_eq!(cut("äbcde", width), expected);
    }
}

#[test]
fn what_a_terminal_would_obey_becomes_visible() {
    assert_eq!(visible("Größe <T> \u{a0}🦀"), "Größe <T> \u{a0}🦀");
    for char in ['\0', '\n', '\u{7f}', '\u{9b}'] {
        assert_eq!(visible(&format!("a{char}b")), format!("a{}b", char.escape_unicode()));
    }
    let hidden = [
        '\u{61c}', '\u{200b}', '\u{200f}', '\u{2028}', '\u{202e}', '\u{2060}', '\u{2069}',
        '\u{feff}',
    ];
    for char in hidden {
        assert_eq!(visible(&char.to_string()), char.escape_unicode().to_string());
    }
    for char in ['\u{200a}', '\u{2010}', '\u{2027}', '\u{202f}', '\u{205f}', '\u{206a}'] {
        assert_eq!(visible(&char.to_string()), char.to_string());
    }
}

#[test]
fn no_tag_of_html_begins_in_quoted_text() {
    let cases = [
        ("plain text", r#""plain text""#),
        ("\"", r#""\"""#),
        ("\\", r#""\\""#),
        ("a\nb", r#""a\nb""#),
        ("</script>", r#""\u003c/script\u003e""#),
        ("&\t\0\u{1f}", r#""\u0026\\u{9}\\u{0}\\u{1f}""#),
        ("\u{2028}\u{2029}", r#""\\u{2028}\\u{2029}""#),
        (" é", r#"" é""#),
    ];
    for (text, expected) in cases {
        assert_eq!(string(text), expected);
    }
}

#[test]
fn a_wait_is_described_by_its_reason_if_that_is_known() {
    let history = sampled();
    let describe = |waits| describe(&history, TurnEvent::Waits, waits);
    assert_eq!(describe(None), "has to wait");
    assert_eq!(describe(Some("waits for event 1")), "has to wait for event 1");
    assert_eq!(describe(Some("sleeps")), "sleeps");
    assert_eq!(describe(Some("waits\u{7}")), "has to wait\\u{7}");
    assert_eq!(describe(Some("\u{7}")), "\\u{7}");
}

#[test]
fn names_in_events_are_made_visible() {
    let mut history = sampled();
    history.threads[1].name = "w\u{7}".to_owned();
    history.locks[0] = "n\u{202e}".to_owned();
    history.reasons[0] = "r\u{7}".to_owned();
    let lock = LockName::Profiler(0);
    for (event, expected) in [
        (TurnEvent::Suspended(WORKER), "suspends w\\u{7}"),
        (TurnEvent::Started(WORKER), "starts w\\u{7}"),
        (TurnEvent::Resumed(WORKER), "resumes w\\u{7}"),
        (TurnEvent::Context(WORKER), "reads the registers of w\\u{7}"),
        (TurnEvent::Called(WALK, Some(WORKER)), "calls DoStackSnapshot of w\\u{7}"),
        (TurnEvent::Called(WALK, None), "calls DoStackSnapshot"),
        (TurnEvent::Refused(0), "r\\u{7}"),
        (TurnEvent::Says("\r"), "\\u{d}"),
    ] {
        assert_eq!(describe(&history, event, None), expected);
    }
    for event in [TurnEvent::Acquired(lock), TurnEvent::Released(lock)] {
        let text = describe(&history, event, None);
        assert!(text.ends_with("the profiler's lock \"n\\u{202e}\""), "{text}");
    }
}

#[test]
fn related_events_are_reported_in_one() {
    use TurnEvent as Event;
    let history = sampled();
    let (called, returned) = (Event::Called(WALK, Some(WORKER)), Event::Returned(WALK, OK));
    let other = Event::Returned("ForceGC", OK);
    let (created, destroyed) = (CallbackKind::ThreadCreated, CallbackKind::ThreadDestroyed);
    let frame = Event::SnapshotCallback;
    let cases: [(&[Event], &[&str]); 11] = [
        (&[], &[]),
        (&[Event::Executed(2), Event::Executed(3)], &["executes 5 instructions"]),
        (
            &[Event::Executed(2), Event::TimedOut, Event::Executed(1)],
            &["executes 2 instructions", "has waited long enough", "executes an instruction"],
        ),
        (&[frame], &["gets a frame"]),
        (&[frame, frame, frame], &["gets 3 frames"]),
        (&[Event::TimedOut, Event::TimedOut], &["has waited long enough (2 times)"]),
        (&[called, returned, Event::Ends], &["DoStackSnapshot of worker: S_OK", "ends"]),
        (&[called, other], &["calls DoStackSnapshot of worker", "ForceGC: S_OK"]),
        (
            &[called, frame, returned],
            &["calls DoStackSnapshot of worker", "gets a frame", "DoStackSnapshot: S_OK"],
        ),
        (
            &[Event::Callback(created), Event::CallbackOver(created), Event::Ends],
            &["enters ThreadCreated, leaves it", "ends"],
        ),
        (
            &[Event::Callback(created), Event::CallbackOver(destroyed)],
            &["enters ThreadCreated", "leaves ThreadDestroyed"],
        ),
    ];
    for (events, expected) in cases {
        let described: Vec<_> = events.iter().map(|event| (*event, None)).collect();
        assert_eq!(summary(&history, &described), expected);
    }
    // Waits are alike only if they have the same reason.
    let waits = |reason| (Event::Waits, Some(reason));
    let reported = summary(&history, &[waits("waits a"), waits("waits a"), waits("waits b")]);
    assert_eq!(reported, ["has to wait a (2 times)", "has to wait b"]);
}

#[test]
fn instructions_are_counted_as_far_as_numbers_go() {
    let events = |events: &[TurnEvent]| {
        instructions(&events.iter().map(|event| (*event, None)).collect::<Vec<_>>())
    };
    assert_eq!(events(&[TurnEvent::Executed(4), TurnEvent::Ends, TurnEvent::Executed(3)]), 7);
    assert_eq!(events(&[TurnEvent::Executed(u32::MAX), TurnEvent::Executed(1)]), u32::MAX);
}

#[test]
fn a_sleep_is_not_followed_by_a_wait() {
    use TurnEvent as Event;
    let left = |list: &[Event]| {
        let (events_of, statuses) = (list.to_vec(), Vec::new());
        events(&Turn { at: 1, thread: MAIN, events: events_of, statuses }).collect::<Vec<_>>()
    };
    let sleeps = Event::Sleeps(5);
    assert_eq!(left(&[sleeps, Event::Waits, Event::Waits]), [sleeps, Event::Waits]);
    assert_eq!(left(&[Event::TimedOut, Event::Waits]), [Event::TimedOut, Event::Waits]);
    assert_eq!(left(&[sleeps, Event::TimedOut]), [sleeps, Event::TimedOut]);
}

#[test]
fn a_status_is_reported_from_its_reason_to_its_mode() {
    let history = sampled();
    let reported = |state: &State<'_>| {
        let lines = status(&history, state).into_iter();
        lines.map(|(words, _)| words).collect::<Vec<_>>()
    };
    assert_eq!(reported(&State { life: Life::Waiting, ..State::default() }), ["has not begun"]);
    assert_eq!(reported(&State { life: Life::Ended, ..State::default() }), ["has ended"]);
    assert_eq!(reported(&State::default()), ["could run"]);
    let full = State {
        waits: Some(Cow::Borrowed("waits for event 1")),
        suspended_by: Cow::Owned(vec![WORKER, SAMPLER]),
        inside: vec!["ThreadCreated", "hook"],
        holds: Cow::Owned(vec![HEAP, LockName::Profiler(1)]),
        cooperative: Some(true),
        ..State::default()
    };
    let expected = [
        "suspended by worker and sampler",
        "waits for event 1",
        "in ThreadCreated, in hook",
        "owns the process heap and the profiler's lock \"samples\"",
        "cooperative",
    ];
    assert_eq!(reported(&full), expected);
    let preemptive = State { cooperative: Some(false), ..State::default() };
    assert_eq!(reported(&preemptive), ["could run", "preemptive"]);
}

#[test]
fn each_kind_of_thread_has_a_word() {
    let kinds = [ThreadKind::App, ThreadKind::Profiler, ThreadKind::ManagedProfiler].map(kind);
    assert_eq!(kinds, ["program", "profiler", "profiler, has run managed code"]);
}
