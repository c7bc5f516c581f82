//! Tests of interleavings drawn in the terminal.

use super::*;

fn plain(history: &History) -> Timeline<'_> {
    Timeline { history, title: "an interleaving", ending: "", edges: &[], replay: None, facts: &[] }
}

pub(crate) fn drawn(timeline: &Timeline<'_>, shape: RowOptions) -> String {
    let rows: Vec<_> = timeline.rows(shape).iter().map(ToString::to_string).collect();
    rows.join("\n") + "\n"
}

#[test]
fn a_deadlock() {
    let (history, edges) = frozen_in_malloc();
    let timeline = Timeline {
        title: "a thread is frozen in malloc",
        ending: ENDING,
        edges: &edges,
        replay: Some("1:random:7f3a:0120212"),
        facts: &[
            ("runtime", "net9-windows"),
            (
                "avoided by",
                "collect into memory that was allocated before the thread was suspended, and write nothing",
            ),
        ],
        ..plain(&history)
    };
    insta::assert_snapshot!("a_deadlock", drawn(&timeline, RowOptions::default()));
    let narrow = RowOptions { width: 70, fold: false, frames: 2 };
    insta::assert_snapshot!("a_deadlock_turn_by_turn", drawn(&timeline, narrow));
}

#[test]
fn repetitions_are_printed_once() {
    let mut story = Story::new(&[("main", ThreadKind::App), ("worker", ThreadKind::App)]);
    story.turn(MAIN, &[TurnEvent::Executed(1)]);
    for _ in 0..400 {
        story.turn(MAIN, &[TurnEvent::System("tries to take the lock")]);
        story.turn(WORKER, &[TurnEvent::System("tries to suspend main"), TurnEvent::Sleeps(1)]);
    }
    story.turn(MAIN, &[TurnEvent::Ends]);
    insta::assert_snapshot!(drawn(&plain(&story.history), RowOptions::default()));
}

#[test]
fn rows_are_no_wider_than_asked() {
    let history = long(2000);
    for width in [70, 80, 100, 200] {
        for fold in [true, false] {
            let rows = plain(&history).rows(RowOptions { width, fold, frames: 3 });
            for row in &rows {
                assert!(row.to_string().chars().count() <= width, "{width}: {row}");
            }
            assert_eq!(fold, rows.len() < 1500, "{} rows", rows.len());
        }
    }
}

#[test]
fn without_recorded_statuses_they_are_derived() {
    let (mut history, _) = frozen_in_malloc();
    for turn in &mut history.turns {
        turn.statuses.clear();
    }
    let shape = RowOptions { fold: false, ..RowOptions::default() };
    insta::assert_snapshot!(drawn(&plain(&history), shape));
}

#[test]
fn names_give_no_orders_to_the_terminal() {
    let mut story = Story::new(&[
        ("\u{1b}[31mred\u{7}", ThreadKind::App),
        ("right\u{202e}left\nnext", ThreadKind::App),
        ("", ThreadKind::Profiler),
    ]);
    story.stack(MAIN, &["\u{9b}2J\u{2066}"]);
    story.set(WORKER).waits = Some("\u{1b}]0;title\u{7}".to_owned());
    story.turn(MAIN, &[TurnEvent::Suspended(WORKER)]);
    story.turn(WORKER, &[TurnEvent::Waits]);
    story.turn(SAMPLER, &[TurnEvent::Says("\r\u{1b}c")]);
    let timeline = Timeline { title: "\u{1b}[2J", ending: "\u{7}", ..plain(&story.history) };
    for shape in [RowOptions::default(), RowOptions { fold: false, width: 1, frames: 1 }] {
        let text = drawn(&timeline, shape);
        let obeyed = |char: char| char.is_control() && char != '\n';
        assert!(!text.contains(obeyed) && !text.contains(['\u{202e}', '\u{2066}']), "{text:?}");
    }
}

#[test]
fn an_empty_history_has_no_rows() {
    let text = drawn(&plain(&History::default()), RowOptions { width: 0, fold: true, frames: 0 });
    assert!(text.starts_with('a'), "{text}");
}
