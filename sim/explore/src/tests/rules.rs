//! Tests of documented rules that a profiler breaks without harm.

use super::*;
use crate::ProfilerRule as Rule;

const MAIN: ThreadIndex = ThreadIndex(0);

type Body = fn(&CurrentThread<'_, '_>);

/// Returns the rules that a profiler breaks in some interleavings of a program with one thread.
fn broken_on(generation: Generation, load: impl Fn(&mut Setup<'_>)) -> BTreeSet<Rule> {
    let process = executing_on(generation, &[("Main", vec![Statement::Work(60)])]);
    // A walk may also come too late.
    let limits = Limits { instructions: 5, ..Limits::default() };
    let budget = Budget { keep_going: true, limits, ..Budget::random(3, 60) };
    let report = check(&process, &load, &budget).unwrap();
    let late = |failure: &Failure| matches!(failure.verdict, Verdict::DestroyedThread { .. });
    assert!(report.failures().all(late), "{report}");
    report.broken.into_iter().map(|(_, rule, _)| rule).collect()
}

fn broken(load: impl Fn(&mut Setup<'_>)) -> BTreeSet<Rule> {
    broken_on(Generation::CoreClr31Windows, load)
}

/// A handler breaks a rule by a function that is not async-signal-safe, though nothing is suspended.
#[test]
fn what_a_signal_handler_may_not_do_is_named() {
    let bodies: [(Body, Rule); 4] = [
        (|me| me.allocate(), Rule::AllocationInHandler),
        (|me| me.log(), Rule::LogInHandler),
        (|me| me.load_library(), Rule::LoadingInHandler),
        (|me| me.look_up_function_entry(), Rule::LoadingInHandler),
    ];
    for (body, rule) in bodies {
        let on = |handles: bool| {
            broken_on(Generation::Net8Unix, |setup| {
                setup.on_signal(move |me| {
                    if handles {
                        body(me);
                    }
                });
                setup.thread("", move |me| {
                    me.signal(MAIN);
                    body(me);
                });
            })
        };
        assert_eq!(on(true), [rule].into());
        assert_eq!(on(false), [].into());
    }
    let locks = broken_on(Generation::Net8Unix, |setup| {
        let lock = setup.lock("");
        setup.on_signal(move |me| drop(me.lock(lock)));
        setup.thread("", |me| me.signal(MAIN));
    });
    assert_eq!(locks, [Rule::LockInHandler].into());
}

/// Executes `body` while the main thread is suspended.
fn suspending(me: &CurrentThread<'_, '_>, body: Body) {
    let main = me.target(MAIN).unwrap();
    if main.suspend().is_ok() {
        body(me);
        main.resume().unwrap();
    }
}

const FORBIDDEN: [(&str, Body, Rule); 4] = [
    ("allocates", |me| me.allocate(), Rule::AllocationWhileSuspended),
    ("logs", |me| me.log(), Rule::LogWhileSuspended),
    ("loads", |me| me.load_library(), Rule::LoadingWhileSuspended),
    ("looks up", |me| me.look_up_function_entry(), Rule::LoadingWhileSuspended),
];

#[test]
fn what_a_thread_may_not_do_depends_on_its_own_suspensions() {
    for (case, body, rule) in FORBIDDEN {
        let during = broken(|setup| setup.thread("", move |me| suspending(me, body)));
        assert_eq!(during, [rule].into(), "{case}");
        let after = broken(|setup| {
            setup.thread("", move |me| {
                body(me);
                suspending(me, |_| {});
                body(me);
            });
        });
        assert_eq!(after, [].into(), "{case}");
        let other = broken(|setup| {
            setup.thread("suspends", |me| suspending(me, |me| me.point()));
            setup.thread("other", body);
        });
        assert_eq!(other, [].into(), "{case}");
    }
}

#[test]
fn the_whole_runtime_counts_as_suspended_threads() {
    for (case, body, rule) in FORBIDDEN {
        let with = |before: Body, after: Body| {
            broken_on(Generation::Net9Unix, |setup| {
                setup.thread("", move |me| {
                    before(me);
                    me.info().suspend_runtime().unwrap();
                    me.info().resume_runtime().unwrap();
                    after(me);
                });
                // Another thread does it meanwhile.
                setup.thread("other", body);
            })
        };
        assert_eq!(with(|_| {}, body), [].into(), "{case}");
        let during = broken_on(Generation::Net9Unix, |setup| {
            setup.thread("", move |me| {
                me.info().suspend_runtime().unwrap();
                body(me);
                me.info().resume_runtime().unwrap();
            });
        });
        assert_eq!(during, [rule].into(), "{case}");
    }
}

#[test]
fn a_lock_is_not_taken_while_a_thread_is_suspended() {
    let locks = |load: fn(&CurrentThread<'_, '_>, crate::ProfilerLock)| {
        broken(move |setup| {
            let lock = setup.lock("");
            setup.thread("", move |me| load(me, lock));
        })
    };
    let rule: BTreeSet<_> = [Rule::LockWhileSuspended].into();
    let during = locks(|me, lock| {
        let main = me.target(MAIN).unwrap();
        if main.suspend().is_ok() {
            drop(me.lock(lock));
            main.resume().unwrap();
        }
    });
    assert_eq!(during, rule);
    let before = locks(|me, lock| {
        let _lock = me.lock(lock);
        suspending(me, |_| {});
    });
    assert_eq!(before, [].into());
}

#[test]
fn only_a_thread_that_never_ran_managed_code_suspends_others() {
    let rule: BTreeSet<_> = [Rule::SuspenderRanManagedCode].into();
    let known = broken(|setup| setup.managed_thread("", |me| suspending(me, |_| {})));
    assert_eq!(known, rule);
    let stranger = broken(|setup| setup.thread("", |me| suspending(me, |_| {})));
    assert_eq!(stranger, [].into());
}

#[test]
fn a_thread_is_resumed_as_often_as_it_was_suspended() {
    let times = |suspensions: u32, resumptions: u32| {
        broken(move |setup| {
            setup.thread("", move |me| {
                let main = me.target(MAIN).unwrap();
                for _ in 0..suspensions {
                    if main.suspend().is_err() {
                        return;
                    }
                }
                for number in 0..resumptions {
                    assert_eq!(main.resume().is_ok(), number < suspensions);
                }
            });
        })
    };
    assert_eq!(times(1, 1), [].into());
    assert_eq!(times(2, 2), [].into());
    assert_eq!(times(1, 2), [Rule::ResumeDoubled].into());
    assert_eq!(times(0, 1), [Rule::ResumeDoubled].into());
}

#[test]
fn no_lock_is_held_over_a_call_that_may_trigger_a_collection() {
    let calls = |call: Body, held: bool| {
        broken_on(Generation::Net9Unix, move |setup| {
            let lock = setup.lock("");
            setup.thread("", move |me| {
                let _lock = held.then(|| me.lock(lock));
                call(me);
            });
        })
    };
    let triggers: [Body; 4] = [
        |me| _ = me.info().get_function_from_ip2(1),
        |me| _ = me.info().get_function_from_ip3(1),
        |me| _ = me.info().get_code_info4(1, &mut []),
        |me| _ = me.info().enum_threads(),
    ];
    let rule: BTreeSet<_> = [Rule::LockOverGcTrigger].into();
    for call in triggers {
        assert_eq!(calls(call, true), rule);
        assert_eq!(calls(call, false), [].into());
    }
    let others: [Body; 2] =
        [|me| _ = me.info().get_function_from_ip(1), |me| _ = me.info().get_event_mask()];
    for call in others {
        assert_eq!(calls(call, true), [].into());
    }
}

#[test]
fn the_first_call_of_a_thread_is_made_while_none_is_suspended() {
    let calls = |before: bool| {
        broken(move |setup| {
            setup.thread("", move |me| {
                if before {
                    let _ = me.info().get_current_thread_id();
                }
                suspending(me, |me| _ = me.info().get_current_thread_id());
            });
        })
    };
    assert_eq!(calls(false), [Rule::FirstCallWhileSuspended].into());
    assert_eq!(calls(true), [].into());
}
