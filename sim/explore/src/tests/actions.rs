//! Tests of what code of the profiler can do: jumps, reports, nested calls, hooks and objects made late.

use super::*;
use crate::Explorer;
use clr_world::stubs::Hooks;

const MAIN: ThreadIndex = ThreadIndex(0);

/// Calls a method of the runtime that calls it again, up to a depth.
fn nests(me: &CurrentThread<'_, '_>, depth: u32) {
    let _ = me.call_runtime("Nested", |_| {
        if depth > 1 {
            nests(me, depth - 1);
        }
        Ok(())
    });
}

#[test]
fn calls_are_nested_eight_times_at_most() {
    let nested = |depth: u32| verdict(&move |setup| setup.thread("", move |me| nests(me, depth)));
    assert_eq!(nested(8), None);
    let words = "calls are nested in callbacks without end".to_owned();
    assert_eq!(nested(9), Some(Verdict::Failed { by: MAIN, words }));
    // Calls one after the other are not nested.
    let many = verdict(&|setup| setup.thread("", |me| (0..20).for_each(|_| nests(me, 1))));
    assert_eq!(many, None);
}

#[test]
fn an_unwinder_that_interrupts_itself_is_a_fault() {
    let unwinding = |interrupts: bool| {
        let process = on(Generation::Net9Unix, &Program::default(), &[]);
        let load = move |setup: &mut Setup<'_>| {
            setup.on_signal(move |me| {
                if interrupts {
                    me.unwind();
                }
            });
            setup.thread("unwinds", |me| {
                me.unwind();
                me.unwind();
            });
            // Another thread has data of its own.
            setup.thread("also", |me| me.unwind());
            setup.thread("sends", |me| me.signal(MAIN));
        };
        check(&process, &load, &Budget::random(0, 200)).unwrap()
    };
    assert!(unwinding(false).survives());
    let failure = unwinding(true).failure.unwrap();
    let outcome = Outcome::AccessViolation { at: 0 };
    assert_eq!(failure.verdict, Verdict::ProcessKilled { by: MAIN, outcome });
}

#[test]
fn a_hook_is_executed_where_code_calls_it() {
    let program = Program {
        functions: vec![function("Main", vec![Statement::Work(3)])],
        ..Program::default()
    };
    let start = [("main", ThreadStart::Managed(FunctionIndex(0)))];
    let process = |hooks| {
        let generation = Generation::CoreClr31Windows;
        TestedProcess::new(&program, &BTreeMap::new(), hooks, generation, &start).unwrap()
    };
    let calls = |process: &TestedProcess| {
        let calls = Rc::new(Cell::new(0));
        let counted = Rc::clone(&calls);
        let load = move |setup: &mut Setup<'_>| {
            let counted = Rc::clone(&counted);
            setup.on_hook(move |me| {
                counted.set(counted.get() + 1);
                assert_eq!(me.index(), MAIN);
                // Another turn begins here.
                me.point();
            });
        };
        assert!(check(process, &load, &Budget::random(0, 1)).unwrap().survives());
        calls.get()
    };
    // The function is entered and left.
    assert_eq!((calls(&process(Hooks::Fast)), calls(&process(Hooks::None))), (2, 0));
    // Without a handler a hook ends no turn: with one a turn ends there, and the handler has its own.
    let turns = |load: &super::Load<'_>| {
        let report = check(&process(Hooks::Fast), load, &Budget::random(0, 1)).unwrap();
        assert!(report.survives());
        report.turns
    };
    assert_eq!(turns(&|setup| setup.on_hook(|_| {})), turns(&|_| {}) + 4);
}

#[test]
fn an_export_without_a_handler_ends_no_turn() {
    let turns = |exports: bool| {
        let process = executing(&[("Main", vec![Statement::Work(3)])]);
        let exports = exports.then_some(FunctionIndex(0));
        let process = process.exporting(exports);
        let report = check(&process, &|_| {}, &Budget::random(0, 1)).unwrap();
        assert!(report.survives());
        report.turns
    };
    assert_eq!(turns(true), turns(false));
}

#[test]
fn a_condition_variable_that_was_made_late_wakes_all_that_wait() {
    let woken = Rc::new(RefCell::new(std::collections::BTreeSet::new()));
    let known = Rc::clone(&woken);
    let load: &super::Load<'_> = &move |setup| {
        let lock = setup.lock("");
        let known = Rc::clone(&known);
        let _ = setup.condition();
        setup.thread("makes", move |me| {
            let conditions = [me.new_condition(), me.new_condition()];
            assert_ne!(conditions[0], conditions[1]);
            let waiting = Rc::new(Cell::new(0));
            let count = Rc::new(Cell::new(0));
            for _ in 0..2 {
                let (waiting, count) = (Rc::clone(&waiting), Rc::clone(&count));
                me.spawn("waits", move |me| {
                    let guard = me.lock(lock);
                    waiting.set(waiting.get() + 1);
                    if me.wait_on(conditions[1], lock, Some(500)) {
                        count.set(count.get() + 1);
                    }
                    drop(guard);
                });
            }
            for _ in 0..4 {
                me.point();
            }
            let guard = me.lock(lock);
            let waited = waiting.get();
            me.notify_all(conditions[1]);
            drop(guard);
            me.join(ThreadIndex(1));
            me.join(ThreadIndex(2));
            known.borrow_mut().insert((waited, count.get()));
        });
    };
    let report = check(&nothing(), load, &Budget::random(0, 300)).unwrap();
    assert!(report.survives(), "{report}");
    // Those that wait at that moment are woken, and no other.
    assert_eq!(*woken.borrow(), [(0, 0), (1, 1), (2, 2)].into());
}

/// Only the owner of a lock can take it again.
#[test]
fn a_reentrant_lock_has_as_many_histories_as_a_plain_one() {
    let taking = |kind: LockKind, times: u32| {
        count(&move |setup: &mut Setup<'_>| {
            let lock = setup.lock_of("", kind);
            for _ in 0..2 {
                setup.thread("", move |me| (0..times).for_each(|_| drop(me.lock(lock))));
            }
        })
    };
    for times in [1, 2] {
        assert_eq!(taking(LockKind::Reentrant, times), taking(LockKind::Plain, times));
    }
}

#[test]
fn the_process_ends_with_all_its_threads_if_an_exception_is_not_caught() {
    let raise =
        clr_codegen::RuntimeCall { kind: clr_codegen::RuntimeCallKind::Raise, target: None };
    let bodies = [("Main", vec![Statement::Runtime(raise)]), ("Other", vec![Statement::Work(200)])];
    for generation in [Generation::CoreClr31Windows, Generation::Net9Unix] {
        let process = executing_on(generation, &bodies);
        let load = |setup: &mut Setup<'_>| {
            setup.on_crash(|me| me.say("crashes"));
            let never = setup.event();
            setup.thread("waits", move |me| me.wait_for(never));
        };
        let mut explorer = Explorer::new(&process).unwrap();
        for seed in 0..20 {
            let (limits, detail) =
                (Limits { instructions: 9, ..Limits::default() }, HistoryDetail::Statuses);
            let ending = explorer.run(&load, &mut Random::new(seed), limits, detail);
            assert_eq!(ending.verdict, None, "{generation} {seed}");
            let history = ending.history.unwrap();
            let events: Vec<_> = history.turns.iter().flat_map(|turn| &turn.events).collect();
            assert!(events.contains(&&TurnEvent::Says("crashes")));
            let last = &history.turns.last().unwrap().statuses;
            assert!(last.iter().all(|status| status.ended), "{generation} {seed}");
        }
    }
}
