//! Tests of reports that are joined.

use super::*;

const MAIN: ThreadIndex = ThreadIndex(0);
const WORKER: ThreadIndex = ThreadIndex(1);
const SAMPLER: ThreadIndex = ThreadIndex(2);

fn failure(words: &str, number: u64, times: u64) -> Failure {
    let verdict = Verdict::Failed { by: MAIN, words: words.to_owned() };
    let (schedule, history) = (ScheduleString::default(), History::default());
    Failure { verdict, number, schedule, history, times, repeats: true }
}

fn report(failure: Option<Failure>, schedules: u64, turns: u64) -> Report {
    Report { failure, schedules, turns, ..Report::default() }
}

fn schedule(text: &str) -> ScheduleString {
    text.parse().unwrap()
}

#[test]
fn a_search_is_continued_up_to_its_first_failure() {
    let failed = report(Some(failure("a", 3, 1)), 4, 40);
    let next = report(Some(failure("b", 5, 1)), 10, 100);
    assert_eq!(failed.clone().then(next.clone()), failed, "it has ended already");
    let went_on = report(None, 4, 40).then(next);
    assert_eq!(went_on, report(Some(failure("b", 5, 1)), 14, 140));
    assert!(!went_on.survives() && report(None, 1, 1).survives());
}

#[test]
fn the_same_fault_is_counted_and_another_one_added() {
    let one = report(Some(failure("a", 3, 2)), 4, 40);
    let further = vec![failure("b", 8, 1), failure("c", 9, 5)];
    let next = Report { further, ..report(Some(failure("a", 7, 3)), 10, 100) };
    let both = one.and(next.clone());
    let expected = [failure("a", 3, 5), failure("b", 8, 1), failure("c", 9, 5)];
    assert!(both.failures().eq(&expected), "{both:?}");
    assert_eq!((both.schedules, both.turns), (14, 140));
    // One that is known as a further one, too.
    let more = both.and(report(Some(failure("c", 20, 1)), 1, 1));
    assert_eq!(more.failures().map(|one| one.times).collect::<Vec<_>>(), [5, 1, 6]);
    assert_eq!(report(None, 0, 0).and(next.clone()), next);
}

#[test]
fn a_breach_is_noted_once_for_each_thread_and_rule() {
    let (log, doubled) = (ProfilerRule::LogWhileSuspended, ProfilerRule::ResumeDoubled);
    let broken = vec![(SAMPLER, log, schedule("clr1:1b"))];
    let next = vec![
        (SAMPLER, log, schedule("clr1:2b")),
        (SAMPLER, doubled, schedule("clr1:3b")),
        (WORKER, log, schedule("clr1:4b")),
    ];
    let one = Report { broken, ..Report::default() };
    let both = one.and(Report { broken: next, ..Report::default() });
    let expected = [
        (SAMPLER, log, schedule("clr1:1b")),
        (SAMPLER, doubled, schedule("clr1:3b")),
        (WORKER, log, schedule("clr1:4b")),
    ];
    assert_eq!(both.broken, expected);
}
