//! Tests that each bug planted into the scheduler is noticed.

use super::super::planted_bug::Bug;
use super::{
    accesses, counting, determinism, drawn, objects, program, schedules, signals, verdicts, waiting,
};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The tests, by name.
const TESTS: [(&str, fn()); 22] = [
    ("counts", counting::counts),
    ("no outcome left out", || assert_eq!(drawn::difference(0..60), None)),
    ("no outcome left out by contents", drawn::by_contents),
    ("reset events", drawn::reset_events),
    ("replays", schedules::replays),
    ("same twice", determinism::same_twice),
    ("modes", program::modes),
    ("frames of walks", program::frames_of_walks),
    ("suspended owner", verdicts::suspended_owner),
    ("suspended stands still", verdicts::suspended_stands_still),
    ("suspends and resumes", verdicts::suspends_and_resumes),
    ("patience", waiting::patience),
    ("sleepers", waiting::sleepers),
    ("suspended timers", waiting::suspended_timers),
    ("signals in waits", waiting::signals_in_waits),
    ("walks beside a program", accesses::walks),
    ("suspensions beside a program", accesses::suspensions),
    ("questions", accesses::questions),
    ("a signal in a suspension", signals::in_a_suspension),
    ("a lost wake-up", objects::lost_wake_up),
    ("any waiter is woken", objects::wakes_any),
    ("a thread started later", objects::started_later),
];

const BUGS: [Bug; 24] = [
    Bug::LostResume,
    Bug::DoubleSuspension,
    Bug::SuspensionIgnored,
    Bug::MissedSafePoint,
    Bug::UnlockIsNoPoint,
    Bug::ReplayOffByOne,
    Bug::EventWithoutFootprint,
    Bug::ReadsAreForgotten,
    Bug::WaitsForEver,
    Bug::OrderIsForgotten,
    Bug::LocksHaveNoContents,
    Bug::ProgressIsForgotten,
    Bug::TimersForgotten,
    Bug::StateCarriedOver,
    Bug::WaitingTakesNoSignals,
    Bug::SuspendedTimersRun,
    Bug::LongestSleeperFirst,
    Bug::WalkWithoutFootprint,
    Bug::SuspensionWithoutFootprint,
    Bug::QuestionWithoutFootprint,
    Bug::SignalsAwaitResume,
    Bug::WaitIsNoPoint,
    Bug::OldestWaiterFirst,
    Bug::StartedNeverRuns,
];

#[test]
fn each_planted_mistake_is_noticed() {
    let mut table = String::new();
    for bug in BUGS {
        let found = TESTS
            .iter()
            .filter(|(_, test)| bug.within(|| catch_unwind(AssertUnwindSafe(test)).is_err()));
        let found: Vec<_> = found.map(|(name, _)| *name).collect();
        assert!(!found.is_empty(), "{bug:?}");
        writeln!(table, "{bug:?}: {}", found.join(", ")).unwrap();
    }
    insta::assert_snapshot!(table);
}
