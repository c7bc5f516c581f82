//! Tests of threads as a profiler sees them, and as interleavings record them.

use super::*;
use crate::Explorer;
use crate::tests::kernels::MAIN as FIRST;
use clr_runtime::profiling::Policy;
use clr_unwind::Memory as _;
use std::sync::Arc;

const MAIN: ThreadIndex = ThreadIndex(0);
/// Limits with which threads of the program can be found in the middle of their work.
const SHORT: Limits = Limits { turns: 20_000, instructions: 5, every_instruction: false };

/// Executes `ask` on a thread of the profiler that has suspended the main thread, in some interleavings.
fn suspended(generation: Generation, ask: fn(&CurrentThread<'_, '_>)) {
    let process = executing_on(generation, &[("Main", vec![Statement::Work(200)])]);
    let asked = std::rc::Rc::new(std::cell::Cell::new(0));
    let load = |setup: &mut Setup<'_>| {
        let asked = std::rc::Rc::clone(&asked);
        setup.thread("sampler", move |me| {
            let main = me.target(MAIN).unwrap();
            while main.id() == ThreadId(0) && !me.has_ended(MAIN) {
                me.point();
            }
            me.sleep(10);
            if main.suspend().is_ok() {
                if main.top_managed().is_some() {
                    asked.set(asked.get() + 1);
                    ask(me);
                }
                main.resume().unwrap();
            }
        });
    };
    let budget = Budget { limits: SHORT, ..Budget::random(1, 40) };
    let report = check(&process, &load, &budget).unwrap();
    assert!(report.survives(), "{report}");
    assert!(asked.get() > 5, "{}", asked.get());
}

#[test]
fn a_suspended_thread_is_seen_as_it_is() {
    for generation in [Generation::CoreClr31Windows, Generation::Net9Unix] {
        suspended(generation, |me| {
            let main = me.target(MAIN).unwrap();
            let top = main.top_managed().unwrap();
            let activations = me.kernel.world.borrow().activations(0);
            assert!(activations.iter().any(|one| one.registers.rip == top.rip));
            let first = activations.last().unwrap().registers.rip;
            assert!(main.begins_at(first) && !main.begins_at(first + 1));
            assert!(main.is_on_stack(top.rip) && !main.is_on_stack(0x1234));
            assert!(me.is_on_stack(main.id(), top.rip) && !me.is_on_stack(main.id(), 0x1234));
            // Of the profiler's own threads nothing is known.
            assert!(me.is_on_stack(ThreadId(0), 0x1234));
            assert_eq!(me.target(me.index()).unwrap().top_managed(), None);
            assert!(me.target(ThreadIndex(9)).is_none());
            let (mut read, mut expected) = ([0; 16], [1; 16]);
            main.read(top.rsp(), &mut read).unwrap();
            me.kernel.runtime.memory.borrow().read(top.rsp(), &mut expected).unwrap();
            assert_eq!(read, expected);
            assert!(main.read(8, &mut read).is_err());
        });
    }
}

#[test]
fn a_profiler_may_believe_in_another_root() {
    suspended(Generation::CoreClr31Windows, |me| {
        let stack = me.target(MAIN).unwrap().stack();
        assert!(stack.limit < stack.base);
        let other = me.target(MAIN).unwrap().with_root(Some(5)).stack();
        assert_eq!(other.root, StackRoot::ReturnAddress(5));
        assert_eq!((other.limit, other.base), (stack.limit, stack.base));
        assert_ne!(stack.root, other.root);
        assert_eq!(me.target(MAIN).unwrap().with_root(None).stack().root, stack.root);
    });
}

#[test]
fn code_of_methods_is_in_the_map_for_signal_handlers_alone() {
    suspended(Generation::Net9Unix, |me| {
        let method = me.target(MAIN).unwrap().top_managed().unwrap().rip;
        assert!(me.modules_for(Policy::Signal).find(method).is_some());
        assert!(me.modules_for(Policy::FramePointers).find(method).is_none());
        assert!(me.modules().find(method).is_none());
        assert!(me.has_signals());
    });
    suspended(Generation::CoreClr31Windows, |me| assert!(!me.has_signals()));
}

#[test]
fn registers_may_be_written_where_the_thread_still_is() {
    suspended(Generation::CoreClr31Windows, |me| {
        let main = me.target(MAIN).unwrap();
        let context = main.context().unwrap();
        main.set_context(&context.registers);
    });
    let process = executing(&[("Main", vec![Statement::Work(200)])]);
    let load = |setup: &mut Setup<'_>| {
        setup.thread("sampler", |me| {
            let main = me.target(MAIN).unwrap();
            if main.suspend().is_err() {
                return;
            }
            let old = main.context().unwrap().registers;
            main.resume().unwrap();
            me.sleep(100);
            if main.suspend().is_ok() {
                main.set_context(&old);
                main.resume().unwrap();
            }
        });
    };
    let budget = Budget { limits: SHORT, ..Budget::random(1, 40) };
    let failure = check(&process, &load, &budget).unwrap().failure.unwrap();
    let words = "a thread continues at a place that it had already left".to_owned();
    assert_eq!(failure.verdict, Verdict::Failed { by: ThreadIndex(1), words });
}

#[test]
fn each_thread_takes_back_its_own_suspension() {
    let load: &Load<'_> = &|setup| {
        let (first, second) = (setup.event(), setup.event());
        let by = |me: &CurrentThread<'_, '_>| {
            let state = me.kernel.state.borrow();
            state.threads[2].suspended_by.iter().map(|by| by.0).collect::<Vec<_>>()
        };
        setup.thread("first", move |me| {
            let other = me.target(ThreadIndex(2)).unwrap();
            if other.suspend().is_err() {
                return me.set(first);
            }
            me.set(first);
            me.wait_for(second);
            other.resume().unwrap();
            let left = by(me);
            assert!(left == [1] || left.is_empty(), "{left:?}");
        });
        setup.thread("second", move |me| {
            me.wait_for(first);
            let other = me.target(ThreadIndex(2)).unwrap();
            let suspended = other.suspend().is_ok();
            me.set(second);
            me.join(ThreadIndex(0));
            if suspended {
                other.resume().unwrap();
                assert_eq!(by(me), [] as [u32; 0]);
            }
        });
        setup.thread("other", |me| me.point());
    };
    assert_eq!(verdict(load), None);
}

#[test]
fn locks_are_owned_or_shared_by_a_thread() {
    let load: &Load<'_> = &|setup| {
        let (lock, event) = (setup.lock(""), setup.event());
        setup.thread("owner", move |me| {
            assert!(!me.owns(lock));
            let guard = me.lock(lock);
            assert!(me.owns(lock));
            me.set(event);
            me.join(ThreadIndex(1));
            drop(guard);
            assert!(!me.owns(lock));
            assert!(me.try_share(lock, 0) && me.try_share(lock, 0), "it is free");
            assert!(!me.owns(lock));
            me.unlock(lock);
            me.unlock(lock);
            assert_eq!(format!("{me:?}"), "Thread(ThreadIndex(0))");
        });
        setup.thread("other", move |me| {
            me.wait_for(event);
            assert!(!me.owns(lock) && !me.try_share(lock, 0) && !me.try_acquire(lock, 0));
            assert!(!me.has_ended(ThreadIndex(0)) && me.has_ended(ThreadIndex(9)));
        });
    };
    assert_eq!(verdict(load), None);
    let after = verdict(&|setup| {
        setup.thread("first", |_| {});
        setup.thread("second", |me| {
            me.join(ThreadIndex(0));
            assert!(me.has_ended(ThreadIndex(0)) && !me.has_ended(me.index()));
        });
    });
    assert_eq!(after, None);
}

#[test]
fn threads_that_are_started_have_the_ids_of_the_profilers_threads() {
    let process = executing(&[("Main", vec![Statement::Work(1)])]);
    let load = |setup: &mut Setup<'_>| {
        setup.thread("first", |me| {
            let started = me.spawn("second", |me| assert_eq!(me.os(), OsThreadId(0x2001)));
            assert_eq!((me.os(), started), (OsThreadId(0x2000), ThreadIndex(2)));
            assert_eq!(me.os_of(started), Some(OsThreadId(0x2001)));
        });
    };
    assert!(check(&process, &load, &Budget::exhaustive(1_000)).unwrap().survives());
}

#[test]
fn the_order_of_making_objects_matters_and_that_of_looking_them_up_does_not() {
    let histories = |bodies: [fn(&CurrentThread<'_, '_>); 2]| {
        count(&move |setup: &mut Setup<'_>| {
            for body in bodies {
                setup.thread("", body);
            }
        })
    };
    assert_eq!(histories([|me| me.changes_objects(), |me| me.looks_up_object()]), 2);
    assert_eq!(histories([|me| me.looks_up_object(), |me| me.looks_up_object()]), 1);
    assert_eq!(histories([|me| me.changes_objects(), |me| me.changes_objects()]), 2);
    assert_eq!(histories([|me| me.shares(), |me| me.looks_up_object()]), 1);
}

/// Records an interleaving with statuses.
fn recorded(load: &Load<'_>, process: &crate::TestedProcess) -> History {
    let mut explorer = Explorer::new(process).unwrap();
    let ending = explorer.run(load, &mut Random::new(3), SHORT, HistoryDetail::Statuses);
    ending.history.unwrap()
}

#[test]
fn a_recorded_wait_has_its_reason() {
    let history = recorded(
        &|setup| {
            let (lock, condition, event) = (setup.lock(""), setup.condition(), setup.event());
            setup.thread("event", move |me| me.wait_for(event));
            setup.thread("condition", move |me| {
                let _guard = me.lock(lock);
                me.wait_on(condition, lock, None);
            });
            setup.thread("sleeps", |me| me.sleep(1_000));
            setup.thread("lasts", |me| (0..40).for_each(|_| me.point()));
        },
        &nothing(),
    );
    let last: Vec<_> = history.turns.iter().map(|turn| &turn.statuses).collect();
    for (thread, words) in [(0, "waits for event 0"), (1, "waits on condition 0"), (2, "sleeps")] {
        let found: std::collections::BTreeSet<_> =
            last.iter().filter_map(|statuses| statuses[thread].waits.as_deref()).collect();
        assert_eq!(found, [words].into());
    }
    let ready = last.iter().filter(|statuses| statuses[3].waits.is_some()).count();
    assert_eq!(ready, 0, "a thread that could run waits for nothing");
}

#[test]
fn a_recorded_stack_has_the_code_of_the_profiler_and_is_shared_while_it_stays() {
    let process = executing_on(Generation::Net9Unix, &[("Main", vec![Statement::Work(100)])]);
    let history = recorded(
        &|setup| {
            setup.hide_places();
            setup.on(CallbackKind::ThreadCreated, |me| me.point());
            setup.on_signal(|me| me.point());
            setup.thread("sampler", |me| {
                for _ in 0..3 {
                    me.sleep(20);
                    me.signal(MAIN);
                }
            });
        },
        &process,
    );
    let leaves: std::collections::BTreeSet<_> =
        history.turns.iter().filter_map(|turn| turn.statuses[0].stack.first().cloned()).collect();
    for code in ["profiler: ThreadCreated", "profiler: signal handler", "Main"] {
        assert!(leaves.contains(code), "{code}: {leaves:?}");
    }
    for pair in history.turns.windows(2) {
        let [before, after] = pair else { panic!() };
        for (before, after) in before.statuses.iter().zip(&after.statuses) {
            let same = before.stack == after.stack;
            assert_eq!(Arc::ptr_eq(&before.stack, &after.stack), same, "{before:?} {after:?}");
        }
    }
    let last = &history.turns.last().unwrap().statuses;
    assert!(last[0].ended && last[0].stack.is_empty(), "{last:?}");
    // The runtime knows no mode of the profiler's thread, and one of the program's while it lives.
    assert!(history.turns.iter().all(|turn| turn.statuses[1].cooperative.is_none()));
    assert!(history.turns.iter().any(|turn| turn.statuses[0].cooperative == Some(true)));
}

#[test]
fn what_a_thread_waits_for_decides_when_it_can_run() {
    let (build, id) = (build(), coroutine());
    let kernel = kernel(&build);
    let decides = |waiting: Option<Waiting>| {
        begin(&kernel, id);
        let mut state = kernel.state.borrow_mut();
        only(&mut state, &[FIRST, ONE, TWO]);
        if let Some(waiting) = waiting {
            wait(&mut state, ONE, waiting, None);
        }
        drop(state);
        let mut waits = vec![(ThreadIndex(9), Footprint::ALL)];
        kernel.waits(&[ThreadIndex(0), ThreadIndex(2)], &mut waits);
        let [(ThreadIndex(1), decides)] = waits[..] else { panic!("{waits:?}") };
        decides
    };
    let own = Footprint::thread(ThreadIndex(1)).read();
    let lock = |lock| Footprint::lock(LockName::Profiler(lock)).read();
    for (waiting, expected) in [
        (Waiting::Lock(1), lock(1)),
        (Waiting::Shared(0), lock(0)),
        (Waiting::Condition(2, 7), Footprint::condition(2).read()),
        (Waiting::Event(1), Footprint::event(1).read()),
        (Waiting::Join(ThreadIndex(2)), Footprint::thread(ThreadIndex(2)).read()),
        (Waiting::Time, Footprint::ALL),
    ] {
        assert_eq!(decides(Some(waiting)), own | expected, "{waiting:?}");
    }
    assert_eq!(decides(None), Footprint::ALL);
    // A suspended thread waits for its resumption alone, unless it is in the system.
    let mut waits = Vec::new();
    begin(&kernel, id);
    wait(&mut kernel.state.borrow_mut(), ONE, Waiting::Lock(1), None);
    kernel.runtime.threads.borrow_mut()[ONE].suspended = 1;
    let others = [0, 2, 3].map(ThreadIndex);
    kernel.waits(&others, &mut waits);
    assert_eq!(waits, [(ThreadIndex(1), own)]);
    kernel.state.borrow_mut().threads[ONE].in_system = true;
    kernel.waits(&others, &mut waits);
    assert_eq!(waits, [(ThreadIndex(1), own | lock(1))]);
}

#[test]
fn a_search_of_nothing_has_one_history() {
    let report = search(&|_| {}, &Budget::exhaustive(10));
    assert_eq!((report.schedules, report.turns), (1, 0));
}
