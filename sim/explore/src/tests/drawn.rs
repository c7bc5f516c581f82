//! Tests on small generated programs that searches of steps leave out no outcome.

use super::*;
use clr_generate::Choices as _;
use clr_world::content::ContentHasher;

/// An action of a thread.
#[derive(Clone, Copy, Debug)]
enum Action {
    Acquire(usize),
    Release(usize),
    Try(usize),
    TryFor(usize),
    Set(usize),
    Reset(usize),
    Wait(usize),
    WaitFor(usize),
    Sleep,
    Suspend(u32),
    Resume(u32),
    Join(u32),
    Note,
    Allocate,
    Share(usize),
    TryShare(usize),
    WaitOn(usize),
    WaitOnFor(usize),
    NotifyOne,
    NotifyAll,
    Spawn,
}

const LOCKS: usize = 2;
const EVENTS: usize = 2;

fn action(seeded: &mut Seeded, threads: u32) -> Action {
    let lock = seeded.below(LOCKS as u32) as usize;
    let other = seeded.below(threads);
    match seeded.below(20) {
        0..=3 => Action::Acquire(lock),
        4..=7 => Action::Release(lock),
        8 | 9 => Action::Try(lock),
        10 => Action::TryFor(lock),
        11 => Action::Set(lock % EVENTS),
        12 => Action::Reset(lock % EVENTS),
        13 => Action::Wait(lock % EVENTS),
        14 => Action::WaitFor(lock % EVENTS),
        15 => Action::Sleep,
        16 => Action::Suspend(other),
        17 => Action::Resume(other),
        18 => {
            if seeded.below(2) == 0 {
                Action::Join(other)
            } else {
                Action::Allocate
            }
        }
        _ => Action::Note,
    }
}

/// Draws an action that does not depend on time.
fn untimed(seeded: &mut Seeded, threads: u32) -> Action {
    without_time(action(seeded, threads))
}

/// Returns the action without a limit of time.
fn without_time(action: Action) -> Action {
    match action {
        Action::TryFor(lock) => Action::Try(lock),
        Action::WaitFor(event) => Action::Wait(event),
        Action::WaitOnFor(lock) => Action::WaitOn(lock),
        Action::Sleep => Action::Note,
        other => other,
    }
}

/// Draws an action with the objects that actions of `action` lack.
fn other_action(seeded: &mut Seeded, _: u32) -> Action {
    let lock = seeded.below(LOCKS as u32) as usize;
    match seeded.below(14) {
        0 => Action::Acquire(lock),
        1..=3 => Action::Release(lock),
        4 | 5 => Action::Share(lock),
        6 => Action::TryShare(lock),
        7 | 8 => Action::WaitOn(lock),
        9 => Action::WaitOnFor(lock),
        10 => Action::NotifyOne,
        11 => Action::NotifyAll,
        12 => Action::Spawn,
        _ => Action::Note,
    }
}

/// The observations of the threads, in their order.
#[derive(Default)]
struct Observed {
    seen: RefCell<Vec<(u32, u32)>>,
    /// The profiler keeps nothing else, and reports each access.
    is_kept: bool,
}

type Log = Rc<Observed>;

impl Observed {
    fn note(&self, me: &CurrentThread<'_, '_>, what: u32) {
        if self.is_kept {
            me.shares();
        }
        self.seen.borrow_mut().push((me.index().0, what));
    }

    /// Returns the observations of each thread in its own order.
    fn by_thread(&self) -> Vec<(u32, u32)> {
        let mut seen = self.seen.borrow().clone();
        seen.sort_by_key(|(thread, _)| *thread);
        seen
    }
}

fn act(
    me: &CurrentThread<'_, '_>,
    action: Action,
    locks: &[ProfilerLock],
    events: &[EventObject],
    condition: ConditionVariable,
    log: &Log,
) {
    let saw = |what: bool| log.note(me, what.into());
    match action {
        Action::Acquire(lock) => me.acquire(locks[lock]),
        Action::Release(lock) => me.unlock(locks[lock]),
        Action::Try(lock) => saw(me.try_acquire(locks[lock], 0)),
        Action::TryFor(lock) => saw(me.try_acquire(locks[lock], 2)),
        Action::Set(event) => me.set(events[event]),
        Action::Reset(event) => me.reset(events[event]),
        Action::Wait(event) => me.wait_for(events[event]),
        Action::WaitFor(event) => saw(me.wait_at_most(events[event], 3)),
        Action::Sleep => me.sleep(2),
        Action::Suspend(other) => {
            saw(me.target(ThreadIndex(other)).unwrap().suspend().is_ok());
        }
        Action::Resume(other) => saw(me.target(ThreadIndex(other)).unwrap().resume().is_ok()),
        Action::Join(other) => me.join(ThreadIndex(other)),
        // The effect that others observe depends on the order.
        Action::Note => {
            me.point();
            let count = log.seen.borrow().iter().filter(|(_, what)| *what >= 10).count() as u32;
            log.note(me, 10 + count);
        }
        Action::Allocate => me.allocate(),
        Action::Share(lock) => me.share(locks[lock]),
        Action::TryShare(lock) => saw(me.try_share(locks[lock], 0)),
        Action::WaitOn(lock) | Action::WaitOnFor(lock) => {
            let limit = matches!(action, Action::WaitOnFor(_)).then_some(3);
            me.acquire(locks[lock]);
            saw(me.wait_on(condition, locks[lock], limit));
            me.unlock(locks[lock]);
        }
        Action::NotifyOne => me.notify_one(condition),
        Action::NotifyAll => me.notify_all(condition),
        Action::Spawn => {
            let log = Rc::clone(log);
            me.spawn("", move |me| act(me, Action::Note, &[], &[], condition, &log));
        }
    }
}

/// Returns the outcome as text: the kind of the end, and the observations of each thread in its own
/// order.
fn reported(verdict: Option<Verdict>, log: &Log) -> String {
    let seen = log.by_thread();
    let verdict = match verdict {
        Some(Verdict::Deadlock(mut edges)) => {
            edges.sort_unstable();
            format!("{edges:?}")
        }
        other => format!("{other:?}"),
    };
    format!("{verdict} {seen:?}")
}

/// Returns the first generated program for which a search leaves out an outcome.
fn difference_of(
    action: fn(&mut Seeded, u32) -> Action,
    lengths: [u32; 2],
    is_kept: bool,
    seeds: core::ops::Range<u64>,
) -> Option<String> {
    for seed in seeds {
        let mut seeded = Seeded::new(seed);
        let threads = 2 + seeded.below(2);
        let [of_two, of_three] = lengths;
        let length = if threads == 2 { of_two } else { of_three };
        let actions: Vec<Vec<Action>> = (0..threads)
            .map(|_| (0..=seeded.below(length)).map(|_| action(&mut seeded, threads)).collect())
            .collect();
        let log = Rc::new(Observed { is_kept, ..Observed::default() });
        let load = |setup: &mut Setup<'_>| {
            log.seen.take();
            if is_kept {
                let log = Rc::clone(&log);
                setup.keeps(move || ContentHasher::of(&log.by_thread()));
            }
            let locks: Vec<_> = (0..LOCKS).map(|_| setup.lock("")).collect();
            let condition = setup.condition();
            let events: Vec<_> = (0..EVENTS).map(|_| setup.event()).collect();
            for actions in &actions {
                let (actions, log) = (actions.clone(), Rc::clone(&log));
                let (locks, events) = (locks.clone(), events.clone());
                setup.thread("", move |me| {
                    for (place, action) in actions.into_iter().enumerate() {
                        me.is_at(place as u64);
                        act(me, action, &locks, &events, condition, &log);
                    }
                });
            }
        };
        for bound in [None, Some(1), Some(2)] {
            let tell = |verdict| reported(verdict, &log);
            let (all, _) = outcomes_of(Interleavings::new(bound), &load, tell);
            let (some, _) = outcomes_of(Exhaustive::new(bound).to_each_end(), &load, tell);
            let budget =
                Budget::exhaustive(100_000).by(Strategy::Exhaustive { preemptions: bound });
            let parts = Explorer::new(&nothing()).unwrap().parts(&load, &budget);
            let of_part = |part: &crate::Part| {
                let search = Exhaustive::new(bound).after(part.beginning()).to_each_end();
                outcomes_of(search, &load, tell).0
            };
            // Each seventh, as parts learn nothing from each other.
            let in_parts = (seed % 7 == 0).then(|| parts.iter().flat_map(of_part).collect());
            let some = in_parts
                .map_or(Some(some.clone()), |parts: BTreeSet<_>| (parts == some).then_some(parts));
            let some = some.unwrap_or_default();
            if all != some {
                let lost: Vec<_> = all.difference(&some).collect();
                return Some(format!("seed {seed}, bound {bound:?}: {actions:?}\nlost {lost:#?}"));
            }
        }
    }
    None
}

/// A thread that waits for an event must be chosen while the event is set.
#[test]
fn a_wait_can_end_before_its_event_is_reset() {
    let load = |setup: &mut Setup<'_>| {
        let event = setup.event();
        setup.thread("waits", move |me| me.wait_for(event));
        setup.thread("sets", move |me| {
            me.set(event);
            me.reset(event);
            me.point();
            me.join(ThreadIndex(0));
        });
    };
    for sleeping in [false, true] {
        let found = outcomes(&load, sleeping, |verdict| format!("{verdict:?}"));
        let found: Vec<_> = found.iter().map(String::as_str).collect();
        assert_eq!(found, ["None", "Some(LostWakeUp(ThreadIndex(0)))"]);
    }
}

#[test]
fn conditions_shared_locks_and_new_threads_leave_out_none_either() {
    assert_eq!(difference_of(other_action, [2, 1], false, 0..400), None);
}

#[test]
fn searches_of_contents_leave_out_no_outcome() {
    assert_eq!(difference_of(action, [4, 2], true, 0..200), None);
    assert_eq!(difference_of(other_action, [2, 1], true, 0..200), None);
    // Turns that depend on time have no contents.
    assert_eq!(difference_of(untimed, [4, 2], true, 200..500), None);
    let other = |seeded: &mut Seeded, threads| without_time(other_action(seeded, threads));
    assert_eq!(difference_of(other, [2, 1], true, 200..500), None);
}

#[test]
fn reductions_leave_out_no_outcome() {
    assert_eq!(difference_of(action, [4, 2], false, 0..400), None);
}
