//! Tests that the remaining code is unwound at the end of an interleaving: its destructors do not wait
//! any more.

use super::*;

/// Calls every operation that may wait when it is dropped.
struct Tidies<'t, 'k, 'b> {
    me: &'t CurrentThread<'k, 'b>,
    lock: ProfilerLock,
    event: EventObject,
    dropped: Rc<Cell<u32>>,
}

impl Drop for Tidies<'_, '_, '_> {
    fn drop(&mut self) {
        let me = self.me;
        let other = me.target(ThreadIndex(1 - me.index().0)).unwrap();
        me.point();
        me.sleep(1_000);
        drop(me.lock(self.lock));
        let _ = me.try_acquire(self.lock, 1_000);
        me.wait_for(self.event);
        let _ = me.wait_at_most(self.event, 10);
        me.join(ThreadIndex(1 - me.index().0));
        me.allocate();
        let _ = other.suspend();
        let _ = other.context();
        let _ = other.resume();
        let _ = other.resume();
        let _ = me.info().get_current_thread_id();
        let _ = me.info().suspend_runtime();
        let _ = me.info().enum_threads();
        me.fail("reported too late");
        me.bark();
        self.dropped.set(self.dropped.get() + 1);
    }
}

/// Loads two threads with such a guard, which end in `end`.
fn tidying<'p>(
    dropped: &Rc<Cell<u32>>,
    end: impl Fn(&CurrentThread<'_, '_>, ProfilerLock) + Clone + 'p,
) -> impl Fn(&mut Setup<'p>) {
    let dropped = Rc::clone(dropped);
    move |setup| {
        let (lock, event) = (setup.lock(""), setup.event());
        for _ in 0..2 {
            let (dropped, end) = (Rc::clone(&dropped), end.clone());
            setup.thread("", move |me| {
                let _tidies = Tidies { me, lock, event, dropped };
                let _guard = me.lock(lock);
                end(me, lock);
            });
        }
    }
}

#[test]
fn destructors_do_not_wait_after_the_end_of_a_history() {
    let dropped = Rc::new(Cell::new(0));
    // Each thread takes its lock twice.
    let report = search(
        &tidying(&dropped, |me, lock| {
            me.point();
            me.acquire(lock);
        }),
        &Budget::random(1, 1),
    );
    let failure = report.failure.unwrap();
    let Verdict::Deadlock(_) = failure.verdict else { panic!("{:?}", failure.verdict) };
    assert_eq!(report.broken, []);
    // One or both threads had begun, in the search and in the replay.
    assert!(dropped.get() >= 2);
    let said = failure.history.turns.iter().flat_map(|turn| &turn.events).last().copied();
    assert_eq!(said, Some(crate::TurnEvent::Waits));
}

/// Code that panics does not wait either: a coroutine that returns control in a destructor could
/// not be unwound.
#[test]
fn code_that_panics_does_not_wait() {
    let dropped = Rc::new(Cell::new(0));
    let load = tidying(&dropped, |me, _| {
        me.point();
        panic!("no such thing");
    });
    let failure = search(&load, &Budget::random(1, 50)).failure.unwrap();
    let Verdict::Failed { words, .. } = failure.verdict else { panic!("{:?}", failure.verdict) };
    assert_eq!(words, "no such thing");
    assert!(dropped.get() >= 2);
}

#[test]
fn code_that_panics_ends_the_history() {
    let number: &Load<'_> = &|setup| setup.thread("", |_| std::panic::panic_any(7_u8));
    let words = "the code has panicked".to_owned();
    assert_eq!(verdict(number), Some(Verdict::Failed { by: ThreadIndex(0), words }));
}

#[test]
fn a_search_can_run_in_a_destructor_during_a_panic() {
    struct Searches<'s>(&'s Cell<bool>);
    impl Drop for Searches<'_> {
        fn drop(&mut self) {
            let load: &Load<'_> = &|setup| {
                let locks = [setup.lock(""), setup.lock("")];
                for index in 0..2 {
                    setup.thread("", move |me| {
                        me.acquire(locks[index]);
                        me.acquire(locks[1 - index]);
                    });
                }
            };
            self.0.set(!search(load, &Budget::random(1, 100)).survives());
        }
    }
    let found = Cell::new(false);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _searches = Searches(&found);
        panic!("outside");
    }));
    assert!(panicked.is_err() && found.get());
}

struct Counts(Rc<Cell<u32>>);
impl Drop for Counts {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn threads_that_sleep_or_wait_at_the_end_of_the_program_are_unwound() {
    let process = executing(&[("Main", vec![Statement::Work(3)])]);
    let dropped = Rc::new(Cell::new(0));
    let load = |setup: &mut Setup<'_>| {
        let event = setup.event();
        let (first, second) = (Counts(Rc::clone(&dropped)), Counts(Rc::clone(&dropped)));
        setup.thread("sampler", move |me| {
            let _first = first;
            loop {
                me.sleep(10_000);
            }
        });
        setup.thread("exporter", move |me| {
            let _second = second;
            me.wait_for(event);
        });
    };
    let report = check(&process, &load, &Budget::random(5, 40)).unwrap();
    assert!(report.survives(), "{:?}", report.failure);
    assert_eq!(dropped.get(), 80);
}
