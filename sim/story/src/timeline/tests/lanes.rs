//! Tests of the glyphs of threads and the arrows between them.

use super::*;
use crate::timeline::arrows::Lanes;

fn text(lanes: &Lanes) -> String {
    lanes.spans().iter().map(|span| &*span.text).collect()
}

fn link(from: ThreadIndex, to: ThreadIndex, waits: bool) -> Link {
    Link { from, to, waits }
}

fn drawn(pitch: usize, states: &[State<'_>], links: &[Link]) -> String {
    let mut lanes = Lanes::new(pitch, states, &[]);
    for link in links {
        lanes.draw(*link);
    }
    text(&lanes)
}

#[test]
fn lanes_take_a_third_of_the_width_and_two_to_four_characters_each() {
    for (lanes, width, expected) in [
        (0, 100, 4),
        (0, 9, 3),
        (3, 100, 4),
        (8, 100, 4),
        (9, 100, 3),
        (11, 100, 3),
        (12, 100, 2),
        (40, 100, 2),
        (1, 0, 2),
        (1, 8, 2),
        (1, 9, 3),
        (1, 12, 4),
    ] {
        assert_eq!(Lanes::pitch(lanes, width), expected, "{lanes} lanes in {width}");
    }
}

#[test]
fn a_glyph_is_the_status_of_a_thread() {
    let lives = State::default;
    let inside = || State { inside: vec!["hook"], ..lives() };
    let waits = || State { waits: Some("waits".into()), ..lives() };
    let suspended = |state: State<'static>| State { suspended_by: vec![MAIN].into(), ..state };
    let cases = [
        (lives(), true, '●', Tone::Running),
        (lives(), false, '│', Tone::Dim),
        (inside(), true, '◆', Tone::Callback),
        (inside(), false, '║', Tone::Callback),
        (waits(), false, '┊', Tone::Waiting),
        (suspended(lives()), false, '▒', Tone::Suspended),
        (suspended(waits()), false, '▒', Tone::Suspended),
        (State { life: Life::Waiting, ..waits() }, false, ' ', Tone::Plain),
        (State { life: Life::Ended, ..suspended(inside()) }, false, ' ', Tone::Plain),
    ];
    for (state, runs, char, tone) in cases {
        let running: &[_] = if runs { &[MAIN] } else { &[WORKER] };
        let spans = Lanes::new(2, core::slice::from_ref(&state), running).spans();
        assert_eq!(spans[0].text.chars().next(), Some(char), "{state:?}");
        assert_eq!(spans[0].tone, tone, "{state:?}");
    }
}

#[test]
fn a_mark_counts_the_locks_of_a_thread() {
    for (locks, expected) in [(0, "│  "), (1, "│' "), (2, "│\" "), (3, "│* "), (4, "│* ")]
    {
        let state = State { holds: vec![LockName::Profiler(0); locks].into(), ..State::default() };
        let lanes = Lanes::new(3, &[state], &[]);
        assert_eq!(text(&lanes), expected);
        assert_eq!(lanes.spans()[1].tone, Tone::Lock);
    }
}

#[test]
fn an_arrow_ends_beside_the_lane_of_its_target() {
    let states = vec![State::default(); 3];
    let cases: [(usize, &[Link], &str); 8] = [
        (4, &[link(MAIN, WORKER, false)], "│──▶│   │   "),
        (4, &[link(WORKER, MAIN, false)], "│◀──│   │   "),
        (4, &[link(WORKER, SAMPLER, false)], "│   │──▶│   "),
        (4, &[link(MAIN, WORKER, true)], "│┄┄▷│   │   "),
        (4, &[link(WORKER, MAIN, true)], "│◁┄┄│   │   "),
        (2, &[link(WORKER, MAIN, false)], "│◀│ │ "),
        (4, &[link(MAIN, MAIN, false)], "│   │   │   "),
        (4, &[link(MAIN, ThreadIndex(9), false)], "│───┼───┼───"),
    ];
    for (pitch, links, expected) in cases {
        assert_eq!(drawn(pitch, &states, links), expected);
    }
}

#[test]
fn an_arrow_crosses_lanes_and_hides_no_status() {
    let state = |suspended: bool| State {
        suspended_by: vec![MAIN; usize::from(suspended)].into(),
        ..State::default()
    };
    let ended = State { life: Life::Ended, ..State::default() };
    let over = |middle: State<'static>, from, to| {
        drawn(3, &[state(false), middle, state(false)], &[link(from, to, false)])
    };
    assert_eq!(over(state(false), MAIN, SAMPLER), "│──┼─▶│  ");
    assert_eq!(over(state(false), SAMPLER, MAIN), "│◀─┼──│  ");
    assert_eq!(over(state(true), MAIN, SAMPLER), "│──▒─▶│  ");
    // A thread that is over leaves no gap.
    assert_eq!(over(ended, MAIN, SAMPLER), "│────▶│  ");
    // Locks of the threads between are hidden.
    let owns = State { holds: vec![LockName::Profiler(0)].into(), ..State::default() };
    assert_eq!(over(owns, MAIN, SAMPLER), "│──┼─▶│  ");
}

#[test]
fn characters_of_one_tone_are_one_span() {
    let mut lanes = Lanes::new(3, &vec![State::default(); 2], &[MAIN]);
    lanes.draw(link(MAIN, WORKER, true));
    let spans: Vec<_> = lanes.spans().into_iter().map(|span| (span.text, span.tone)).collect();
    let expected = [
        ("●", Tone::Running),
        ("┄▷", Tone::Waiting),
        ("│", Tone::Dim),
        (" ", Tone::Lock),
        (" ", Tone::Plain),
    ];
    assert_eq!(spans, expected.map(|(text, tone)| (text.to_owned(), tone)));
    assert_eq!(Lanes::new(3, &[], &[]).spans(), []);
}
