//! Tests of the profiler's events, and of what an interleaving records of waits.

use super::*;
use crate::Explorer;

const FIRST: ThreadIndex = ThreadIndex(0);

#[test]
fn a_timed_event_tells_how_long_ago_it_was_set() {
    let load: &super::Load<'_> = &|setup| {
        let event = setup.timed_event();
        setup.thread("", move |me| {
            assert!(!me.was_set_before(event, 0), "it was never set");
            me.set(event);
            let set_at = me.now();
            assert!(!me.was_set_before(event, 0), "it is set now");
            me.sleep(10);
            let ago = me.now() - set_at;
            assert!(ago >= 10);
            assert!(me.was_set_before(event, ago - 1) && !me.was_set_before(event, ago));
            // A reset does not change when it was set, another setting does.
            me.reset(event);
            let ago = me.now() - set_at;
            assert!(me.was_set_before(event, ago - 1));
            me.set(event);
            assert!(!me.was_set_before(event, 0));
        });
    };
    assert_eq!(verdict(load), None);
}

#[test]
fn the_time_of_another_event_is_not_known() {
    let failed = verdict(&|setup| {
        let (_, event) = (setup.timed_event(), setup.event());
        setup.thread("", move |me| {
            me.set(event);
            let _ = me.was_set_before(event, 0);
        });
    });
    let words = "the time of an event is asked for that is not timed".to_owned();
    assert_eq!(failed, Some(Verdict::Failed { by: FIRST, words }));
}

/// Only the setting of a timed event shows the time, which each turn of another thread advances.
#[test]
fn orders_before_an_event_count_only_if_it_is_timed() {
    let histories = |timed: bool| {
        super::count(&move |setup: &mut Setup<'_>| {
            let event = if timed { setup.timed_event() } else { setup.event() };
            let lock = setup.lock("");
            setup.thread("sets", move |me| me.set(event));
            setup.thread("other", move |me| drop(me.lock(lock)));
        })
    };
    assert_eq!(histories(false), 1);
    assert!(histories(true) > 1);
    let resets = super::count(&|setup: &mut Setup<'_>| {
        let (event, lock) = (setup.timed_event(), setup.lock(""));
        setup.thread("resets", move |me| me.reset(event));
        setup.thread("other", move |me| drop(me.lock(lock)));
    });
    assert_eq!(resets, 1);
}

/// Returns the events of the first thread in many interleavings, one after the other.
fn recorded(load: &super::Load<'_>) -> Vec<Vec<TurnEvent>> {
    let process = nothing();
    let mut explorer = Explorer::new(&process).unwrap();
    (0..50)
        .map(|seed| {
            let (mut search, detail) = (Random::new(seed), HistoryDetail::Events);
            let ending = explorer.run(load, &mut search, Limits::default(), detail);
            let turns = ending.history.unwrap().turns.into_iter();
            turns.filter(|turn| turn.thread == FIRST).flat_map(|turn| turn.events).collect()
        })
        .collect()
}

#[test]
fn a_wait_has_timed_out_exactly_if_it_was_not_notified() {
    let histories = recorded(&|setup| {
        let (lock, condition) = (setup.lock(""), setup.condition());
        setup.thread("waits", move |me| {
            let guard = me.lock(lock);
            let woken = me.wait_on(condition, lock, Some(50));
            me.say(if woken { "woken" } else { "late" });
            drop(guard);
        });
        setup.thread("notifies", move |me| me.notify_one(condition));
    });
    let mut both = [false; 2];
    for events in histories {
        let woken = events.contains(&TurnEvent::Says("woken"));
        assert_eq!(events.contains(&TurnEvent::TimedOut), !woken, "{events:?}");
        both[usize::from(woken)] = true;
    }
    assert_eq!(both, [true, true]);
}

/// A notification that comes when no thread waits is told, but not on behalf of an object that remembers it.
#[test]
fn a_notification_that_no_thread_hears_is_an_event() {
    let unheard = |events: &Vec<TurnEvent>| events.contains(&TurnEvent::Unheard(0));
    for remembers in [false, true] {
        let histories = recorded(&|setup| {
            let condition = setup.condition();
            setup.thread("notifies", move |me| {
                if remembers {
                    me.wake(condition, true);
                } else {
                    me.notify_one(condition);
                }
            });
        });
        assert!(histories.iter().all(|events| unheard(events) != remembers));
    }
    let histories = recorded(&|setup| {
        let (lock, condition) = (setup.lock(""), setup.condition());
        setup.thread("notifies", move |me| me.notify_all(condition));
        setup.thread("waits", move |me| {
            let _guard = me.lock(lock);
            me.wait_on(condition, lock, Some(50));
        });
    });
    assert!(histories.iter().any(unheard) && !histories.iter().all(unheard));
}

#[test]
fn what_is_unwound_at_the_end_has_not_timed_out() {
    let histories = recorded(&|setup| {
        let (lock, condition) = (setup.lock(""), setup.condition());
        setup.thread("waits", move |me| {
            let _guard = me.lock(lock);
            me.wait_on(condition, lock, None);
        });
        setup.thread("fails", move |me| me.fail("it is over"));
    });
    assert!(histories.iter().any(|events| events.contains(&TurnEvent::Waits)));
    for events in histories {
        assert!(!events.contains(&TurnEvent::TimedOut), "{events:?}");
    }
}
